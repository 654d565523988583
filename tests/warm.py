"""`rota` commands, managers and runners that need not wait for an interpreter.

Each is a process of its own, with the arguments, environment, directory and descriptors that it would have anyway.
But it is forked from one that has loaded Rota already (`tests/zygote.py`), which saves most of its time on a
processor. `Deployment.popen`, the tours of the documentation and tests with the mark `cold` start processes as a
shell does, and what these start is real as well; with `ROTA_TEST_COLD=1` all tests do.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.zygote import ROOM, Popen, Request

#: The variable that asks for commands with an interpreter of their own.
COLD = "ROTA_TEST_COLD"

_ZYGOTE = Path(__file__).with_name("zygote.py")
_NUMBER = struct.Struct("i")


class Warm:
    """The process that commands are forked from, as the tests see it. It ends with them."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._env = _general(os.environ)
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        Popen.line = self._socket
        with theirs:
            # What forks are called and what is in their environment is written where these words are.
            command = [sys.executable, "-P", str(_ZYGOTE), str(theirs.fileno()), "-" * ROOM]
            env = self._env | {"ROOM": "-" * ROOM}
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=env
            )

    def can_run(self, args: tuple[str, ...], env: Mapping[str, str]) -> bool:
        """An interpreter reads some of its environment only when it starts; and a manager is no command."""
        if _general(env) != self._env or "--foreground" in args:
            return False
        try:
            self._request(args, env, "").packed()
        except ValueError:
            return False
        return True

    def _request(
        self, args: tuple[str, ...], env: Mapping[str, str], cwd: str, namespaces: Sequence[str] = ()
    ) -> Request:
        argv = [sys.executable, self._program, *args]
        return Request(argv, dict(env), cwd, targets=[0, 1, 2], namespaces=namespaces)

    def popen(self, args: list[str], **options: Any) -> subprocess.Popen[bytes]:
        """What `subprocess.Popen` would have returned, of a part of Rota with the environment of this process."""
        return (Popen if _general(os.environ) == self._env else subprocess.Popen)(args, **options)

    def close(self) -> None:
        """It ends when nobody can ask any more."""
        self._socket.close()
        self._process.wait()

    def run(
        self,
        args: tuple[str, ...],
        *,
        env: Mapping[str, str],
        cwd: str,
        input: bytes | None,
        timeout: float,
        namespaces: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[bytes]:
        """What `subprocess.run` would have returned or raised."""
        stdin, feed = (os.open(os.devnull, os.O_RDONLY), -1) if input is None else os.pipe()
        (out, out_end), (err, err_end), (story, story_end) = os.pipe(), os.pipe(), os.pipe()
        ends = [stdin, out_end, err_end, story_end]
        socket.send_fds(self._socket, [self._request(args, env, cwd, namespaces).packed()], ends)
        for end in ends:
            os.close(end)
        said, left = {out: b"", err: b"", story: b""}, memoryview(input or b"")
        deadline: float | None = time.monotonic() + timeout
        with selectors.DefaultSelector() as waiting:
            for pipe in said:
                waiting.register(pipe, selectors.EVENT_READ)
            if feed >= 0:
                os.set_blocking(feed, False)
                waiting.register(feed, selectors.EVENT_WRITE)
            while waiting.get_map():
                if deadline is not None and time.monotonic() > deadline and said[story]:
                    (pid,) = _NUMBER.unpack_from(said[story])
                    os.kill(pid, signal.SIGKILL)
                    deadline = None
                patience = None if deadline is None else max(0.01, deadline - time.monotonic())
                for key, _ in waiting.select(patience):
                    pipe = key.fd
                    if pipe == feed:
                        left = _written(pipe, left)
                        more = len(left) > 0
                    else:
                        data = os.read(pipe, 1 << 16)
                        said[pipe] += data
                        more = data != b""
                    if not more:
                        waiting.unregister(pipe)
                        os.close(pipe)
        if deadline is None:
            raise subprocess.TimeoutExpired([self._program, *args], timeout, said[out], said[err])
        ((_pid,), (status,)) = _NUMBER.iter_unpack(said[story])
        return subprocess.CompletedProcess([self._program, *args], status, said[out], said[err])


def _written(pipe: int, data: memoryview) -> memoryview:
    """What is left of it; nothing once nobody reads."""
    try:
        return data[os.write(pipe, data[: 1 << 16]) :] if data else data
    except BrokenPipeError:
        return data[:0]


def _general(env: Mapping[str, str]) -> dict[str, str]:
    """What a command of another deployment has in its environment as well."""
    ours = ("NO_COLOR", "PYTHONFAULTHANDLER", "PYTEST_CURRENT_TEST", "CLUSTER_OF")
    return {key: value for key, value in env.items() if not key.startswith("ROTA_") and key not in ours}
