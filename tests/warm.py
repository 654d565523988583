"""`rota` commands that need not wait for an interpreter.

Each command is a process of its own, with the arguments, environment, directory and pipes that it would have
anyway. But it is forked from one that has loaded Rota already, which saves most of its time on a processor.
`Deployment.popen`, the tours of the documentation and `tests/cli/test_contract.py` start commands as a shell does;
with `ROTA_TEST_COLD=1` all tests do.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping

#: The variable that asks for commands with an interpreter of their own.
COLD = "ROTA_TEST_COLD"

_MOST = 100_000  #: bytes of one request
_NUMBER = struct.Struct("i")


class Warm:
    """The process that commands are forked from, as the tests see it. It ends with them."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._env = _general(os.environ)
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-P", __file__, program, str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=self._env
            )

    def can_run(self, args: tuple[str, ...], env: Mapping[str, str]) -> bool:
        """An interpreter reads some of its environment only when it starts; and a manager is no command."""
        return _general(env) == self._env and "--foreground" not in args and len(_request(args, env, "")) < _MOST

    def close(self) -> None:
        """It ends when nobody can ask any more."""
        self._socket.close()
        self._process.wait()

    def run(
        self, args: tuple[str, ...], *, env: Mapping[str, str], cwd: str, input: bytes | None, timeout: float
    ) -> subprocess.CompletedProcess[bytes]:
        """What `subprocess.run` would have returned or raised."""
        stdin, feed = (os.open(os.devnull, os.O_RDONLY), -1) if input is None else os.pipe()
        (out, out_end), (err, err_end), (story, story_end) = os.pipe(), os.pipe(), os.pipe()
        ends = [stdin, out_end, err_end, story_end]
        socket.send_fds(self._socket, [_request(args, env, cwd)], ends)
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
    ours = ("NO_COLOR", "PYTHONFAULTHANDLER", "PYTEST_CURRENT_TEST")
    return {key: value for key, value in env.items() if not key.startswith("ROTA_") and key not in ours}


def _request(args: tuple[str, ...], env: Mapping[str, str], cwd: str) -> bytes:
    return json.dumps([args, dict(env), cwd]).encode()


# ------------------------------------------------------------------ the other process


def _load() -> None:
    """All that commands load when they are called, but what only a screen needs."""
    import rota.cli
    import rota.client

    for package in (rota.cli, rota.client):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not module.name.startswith("rota.cli.screen"):
                importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def _serve(program: str, requests: socket.socket) -> None:
    """Fork commands until nobody asks any more. Returns, with all set up, in the process of each command."""
    running: dict[int, tuple[int, int]] = {}  #: what becomes readable at its end → its id, and where that is told
    with selectors.DefaultSelector() as waiting:
        waiting.register(requests, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select():
                if key.fd != requests.fileno():
                    pid, story = running.pop(key.fd)
                    waiting.unregister(key.fd)
                    os.close(key.fd)
                    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                    os.write(story, _NUMBER.pack(status))
                    os.close(story)
                    continue
                request, ends, _flags, _address = socket.recv_fds(requests, _MOST * 2, 4, socket.MSG_CMSG_CLOEXEC)
                if not request:
                    raise SystemExit(0)
                pid = os.fork()
                if pid == 0:
                    for handle, (_pid, told) in running.items():
                        os.close(handle)
                        os.close(told)
                    requests.close()
                    _become(program, request, ends)
                    return
                for end in ends[:3]:
                    os.close(end)
                os.write(ends[3], _NUMBER.pack(pid))
                handle = os.pidfd_open(pid)
                running[handle] = pid, ends[3]
                waiting.register(handle, selectors.EVENT_READ)


def _become(program: str, request: bytes, ends: list[int]) -> None:
    args, env, cwd = json.loads(request)
    for number, end in enumerate(ends[:3]):
        os.dup2(end, number)
    for end in ends:
        os.close(end)
    # Those that are there have looked at what was there before.
    sys.stdin = os.fdopen(0, "r", encoding=sys.stdin.encoding, errors=sys.stdin.errors)
    sys.stdout = os.fdopen(1, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)
    sys.stderr = os.fdopen(2, "w", 1, encoding=sys.stderr.encoding, errors=sys.stderr.errors)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = [program, *args]


if __name__ == "__main__":
    _load()
    try:
        _serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
    except KeyboardInterrupt:
        raise SystemExit(0) from None
    from rota.cli.main import main

    try:
        main()
    except SystemExit as leaving:
        # Taking an interpreter apart takes longer than most commands.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(leaving.code or 0))
