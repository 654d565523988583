"""What jobs say about their progress: a file for each seat, to which the job in it has a descriptor.

A job may write as much as it likes and is never blocked. Only its last line is read, when the job is sampled, so
short jobs are never read. Whose a file is, its first line says where a launcher may start a job by itself, or
outlives this runner; elsewhere the file is empty when a job begins.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Final

from rota.core.attempts.leases import JobProgress
from rota.core.attempts.progress_lines import read_progress
from rota.runner.identity import PROGRESS
from rota.runner.log import say
from rota.runner.report.connection import Connection
from rota.runner.start.environment import PROGRESS_FD
from rota.runner.task import Seat, Task
from rota.wire import codec
from rota.wire.reports import Report

#: Read of a file at once; longer lines do not count.
_TAIL: Final = 4096
#: A file that has grown to this size is emptied.
_LARGE: Final = 1 << 20
#: A job is looked at no more often.
_EVERY_S: Final = 0.9
#: Files of seats that are gone are removed when there are so many more than seats.
_SPARE: Final = 64


class ToldProgress:
    """The files of a runner."""

    def __init__(self, directory: str, seats: dict[int, Seat], connection: Connection) -> None:
        """`directory`: that of this runner. `seats`: those that it has now."""
        self._directory = f"{directory}/{PROGRESS}"
        self._seats = seats
        self._connection = connection
        self._made: dict[int, bytes] = {}  #: seat → the path of its file, for the shell
        self._used = os.path.isdir(self._directory)  # by a runner whose place this one takes

    def command(self, seat: Seat, task: Task, text: bytes) -> bytes:
        """A command line with the descriptor, for a task whose environment has `tells`."""
        try:
            path = self._made.get(seat.id) or self._make(seat.id)
            if not task.launcher.lasting:
                self._empty(seat.id)
                return b"exec %d>>%b;%b" % (PROGRESS_FD, path, text)
        except OSError as error:
            say(f"no progress of jobs: {error}")
            self._made.pop(seat.id, None)
            return b"exec %d>/dev/null;%b" % (PROGRESS_FD, text)
        # The file may still hold what the last job in this seat has said.
        return b"{ echo %b>%b;} 2>/dev/null&&exec %d>>%b;%b" % (_mark(task), path, PROGRESS_FD, path, text)

    def look(self, tasks: Iterable[Task], now: float) -> None:
        """Tell the manager what these tasks have said since they were looked at."""
        if not self._used or not self._connection.joined:
            return
        found = []
        for task in tasks:
            if task.env.tells and task.status is None and not task.part and now >= task.told_at + _EVERY_S:
                task.told_at = now
                told = self._read(task)
                if told is not None:
                    found.append(told)
        if found:
            self._connection.send(codec.frame(Report(0, progress=found)))

    def _make(self, seat: int) -> bytes:
        if not self._used:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            self._used = True
        if len(self._made) > 2 * len(self._seats) + _SPARE:
            for gone in self._made.keys() - self._seats.keys():
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._path(gone))
                del self._made[gone]
        os.close(os.open(self._path(seat), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        made = self._made[seat] = _quoted(self._path(seat))
        return made

    def _empty(self, seat: int) -> None:
        """Forget what the last job in this seat has said; nearly all say nothing."""
        path = self._path(seat)
        if os.stat(path).st_size:
            os.truncate(path, 0)

    def _path(self, seat: int) -> str:
        return f"{self._directory}/{seat}"

    def _read(self, task: Task) -> JobProgress | None:
        try:
            file = os.open(self._path(task.seat.id), os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            size = os.fstat(file).st_size
            mark = _mark(task) + b"\n" if task.launcher.lasting else b""
            if size == task.told_size or os.pread(file, len(mark), 0) != mark:
                return None
            tail = os.pread(file, _TAIL, max(0, size - _TAIL))
            if size > _LARGE:
                os.ftruncate(file, 0)
                size = os.write(file, mark) if mark else 0
        except OSError:
            return None
        finally:
            os.close(file)
        task.told_size = size
        whole = tail[: tail.rfind(b"\n") + 1].replace(b"\r", b"\n").strip()
        return read_progress(whole.rpartition(b"\n")[2], task.key)


def _mark(task: Task) -> bytes:
    """The first line of a file: whose it is."""
    return b"lease=%d" % task.key[2]


def _quoted(path: str) -> bytes:
    return b"'%b'" % os.fsencode(path).replace(b"'", b"'\\''")
