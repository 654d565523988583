"""Writes that stay interruptible: signals are handled even while a slow reader blocks the stream."""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

from rota.errors import EnvironmentFault

#: So much can be written to a pipe without waiting once it has room.
_PIPE_BUF: Final = 4096
_LOOK_S: Final = 0.2


class InterruptibleWriter:
    """A stream whose reader may be slow.

    While a write waits, `waiting` is called again and again; it may raise. Raises `EnvironmentFault` if the stream
    cannot be written to, and `BrokenPipeError` if its reader is gone.
    """

    def __init__(self, stream: BinaryIO, waiting: Callable[[], None] = lambda: None) -> None:
        self._stream = stream
        self._waiting = waiting
        self._fd = _waits(stream)

    def write(self, data: bytes) -> None:
        if self._fd < 0:
            with _told():
                self._stream.write(data)
            return
        self._stream.flush()
        view = memoryview(data)
        while view:
            while not select.select([], [self._fd], [], _LOOK_S)[1]:
                self._waiting()
            try:
                with _told():
                    view = view[os.write(self._fd, view[:_PIPE_BUF]) :]
            except BlockingIOError:  # others made it so, and its room is too small
                self._waiting()

    def flush(self) -> None:
        with _told():
            self._stream.flush()


@contextmanager
def _told() -> Iterator[None]:
    """Convert an `OSError` to an `EnvironmentFault` that names the output."""
    try:
        yield
    except (BrokenPipeError, BlockingIOError):
        raise
    except OSError as error:
        raise EnvironmentFault(
            f"the output cannot be written: {(error.strerror or str(error)).lower()}",
            hint="jobs are not affected; 'rota logs' prints what is kept",
        ) from error


def _waits(stream: BinaryIO) -> int:
    """The descriptor of a stream whose reader may be slow; -1 if there is none."""
    try:
        fd = stream.fileno()
        mode = os.fstat(fd).st_mode
    except (OSError, ValueError):
        return -1
    return fd if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode) else -1
