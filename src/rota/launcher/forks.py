"""Templates, seen from their launcher: processes that have imported a module and fork for each call of a function.

What a template does itself is in `template.py`, which may run under another interpreter.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rota.launcher import procfs
from rota.launcher.base import Begun, NotReady, Refused, StartOrder

#: What executes calls: a file that needs nothing but the standard library of the interpreter that runs it.
FILE: Final = os.fsencode(Path(__file__).with_name("template.py"))
#: A template that does not fork within this time is killed: it was stopped, or the machine is in trouble.
_PATIENCE_S: Final = 5.0
_MOST_SAID: Final = 4096


def request_file(request: bytes) -> int:
    """A file without a name that has this content. Raises `OSError`."""
    fd = os.memfd_create("call", os.MFD_CLOEXEC)
    try:
        while request:  # a single write takes 2 GiB, or less after a signal
            request = request[os.write(fd, request) :]
        os.lseek(fd, 0, os.SEEK_SET)
    except BaseException:
        os.close(fd)
        raise
    return fd


class Forks:
    """The templates of a launcher in this process."""

    def __init__(self) -> None:
        self._sockets: dict[int, socket.socket] = {}
        self._said: dict[int, bytearray] = {}  #: and not heard yet
        self._ready: set[int] = set()

    def add(self, pid: int, control: socket.socket) -> None:
        """A template was started that has the other end of this socket."""
        control.setblocking(False)
        self._sockets[pid] = control
        self._said[pid] = bytearray()

    def end(self, pid: int) -> str:
        """Let a template end; why it has ended by itself, if it said so."""
        if pid not in self._sockets:
            return ""
        why = ""
        try:
            while (words := self._words(pid)) is not None:
                why = words.get("why", why)
        except NotReady as gone:
            why = why or gone.why
        self._sockets.pop(pid).close()
        del self._said[pid]
        self._ready.discard(pid)
        return why

    def fork(self, order: StartOrder, stdio: Sequence[int], request: int) -> Begun:
        """Have a template fork for a call. Raises `NotReady`, and then nothing was begun, or `Refused`."""
        pid = order.fork_of
        control = self._sockets.get(pid)
        if control is None:
            raise NotReady("gone")
        if not self._is_ready(pid):
            raise NotReady("")
        settings = json.dumps(
            {
                "cwd": os.fsdecode(order.cwd),
                "cores": list(order.cores),
                "cgroups": list(order.cgroups),
                "variables": [entry.decode("latin-1") for entry in order.variables.entries()],
            }
        ).encode()
        try:
            heard, go = os.pipe()
        except OSError as error:
            raise Refused(f"cannot prepare: {error.strerror}") from None
        try:
            try:
                control.settimeout(_PATIENCE_S)
                socket.send_fds(control, [struct.pack("!I", len(settings))], [*stdio, request, heard])
                control.sendall(settings)
                answer = self._words(pid)
            except OSError:
                raise self._stuck(pid) from None
            finally:
                os.close(heard)
                control.setblocking(False)
            if answer is None:
                raise self._stuck(pid)
            if "why" in answer:
                raise NotReady(str(answer["why"]))
            child = answer.get("pid")
            if not isinstance(child, int) or child < 2:
                raise Refused(f"a template cannot fork: {answer.get('error')}")
            seen = procfs.process(child)
            if seen is None or seen.ppid != os.getpid():
                raise NotReady("gone")
            os.write(go, b"!")
        finally:
            os.close(go)  # without the word that it waits for, a fork ends before it does anything
        return Begun(child, seen.start_time)

    def _stuck(self, pid: int) -> NotReady:
        """It does not answer, or cannot be asked."""
        try:
            os.kill(pid, signal.SIGKILL)  # a child that was not reaped, or `end` would have been called
        except OSError:
            pass
        return NotReady("gone")

    def _is_ready(self, pid: int) -> bool:
        """Has it imported its module? Raises `NotReady` if it has ended or gives up."""
        if pid in self._ready:
            return True
        words = self._words(pid)
        if words is None:
            return False
        if "why" in words:
            raise NotReady(str(words["why"]))
        self._ready.add(pid)
        return True

    def _words(self, pid: int) -> dict[str, Any] | None:
        """The next line that it says; None: nothing yet. Raises `NotReady` if it is gone."""
        said = self._said[pid]
        while b"\n" not in said:
            try:
                more = self._sockets[pid].recv(_MOST_SAID)
            except (BlockingIOError, TimeoutError):
                return None
            except OSError:
                raise NotReady("gone") from None
            if not more or len(said) > _MOST_SAID:
                raise NotReady("gone")
            said += more
        line, _, self._said[pid] = said.partition(b"\n")
        try:
            words = json.loads(line)
        except ValueError:
            raise NotReady("gone") from None
        return words if isinstance(words, dict) else {}
