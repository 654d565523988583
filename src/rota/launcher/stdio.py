"""Prepares standard input, output and error of a process that is about to start."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections.abc import Iterable, Sequence

from rota.launcher import libc
from rota.launcher.base import Captured, Discarded, IntoFile, OnTerminal, Piped, Refused, Stdio
from rota.launcher.output_files import open_for_output
from rota.launcher.pipes import HeldPipes

_MOST = 0xFFFF


class PreparedStdio:
    """What a child does with its descriptors, and which are ours afterwards."""

    __slots__ = ("_actions", "_more", "_ours", "_theirs", "actions_at", "sources")

    def __init__(self, stdio: Stdio, null: int, more: Sequence[int] = ()) -> None:
        """`null`: a descriptor of /dev/null. `more`: what it inherits as descriptors 3 and following; these belong
        to the caller. Raises `Refused` or `CannotRun`."""
        self._more = more
        self.sources: tuple[int, ...] = ()  #: our numbers of what becomes 0, 1, 2 and more, if that was copied
        self._ours: list[int] = []
        self._theirs: list[int] = []
        self._actions: libc.FileActions | None = None
        self.actions_at = 0  #: for `libc.spawn`
        try:
            self._prepare(stdio, null)
        except BaseException as error:
            self.failed()
            if isinstance(error, OSError):
                raise Refused(f"cannot prepare: {error.strerror}") from None
            raise

    def _prepare(self, stdio: Stdio, null: int) -> None:
        match stdio:
            case Captured(pipes, out, err):
                assert isinstance(pipes, HeldPipes)
                if out or err or self._more:
                    self._copy((null, self._file(out, pipes.out_write), self._file(err, pipes.err_write)))
                else:
                    self.actions_at = pipes.actions_at
            case OnTerminal(rows, cols):
                self._terminal(rows, cols)
            case Piped():
                self._pipes()
            case IntoFile(directory):
                self._ours.append(output := unnamed_file(directory))
                self._copy((null, output, output))
            case Discarded():
                self._copy((null, null, null))

    def _copy(self, given: Iterable[int]) -> None:
        self.sources = sources = *given, *self._more
        self._use(libc.FileActions([(fd, target) for target, fd in enumerate(sources)]))

    def _use(self, actions: libc.FileActions) -> None:
        self._actions = actions
        self.actions_at = actions.address

    def _file(self, path: str, otherwise: int) -> int:
        if not path:
            return otherwise
        self._theirs.append(open_for_output(path))
        return self._theirs[-1]

    def _terminal(self, rows: int, cols: int) -> None:
        master, slave = os.openpty()
        self._ours.append(master)
        self._theirs.append(slave)  # closed after the start: the terminal ends with its last user
        os.set_blocking(master, False)
        resize(master, rows, cols)
        # A leader of a session that has no terminal gets the first one that it opens.
        name = os.fsencode(os.ttyname(slave))
        self._use(libc.FileActions([(0, 1), (0, 2)], opens=[(0, name)]))

    def _pipes(self) -> None:
        children = []
        for target in range(3):
            read, write = os.pipe()
            child, ours = (read, write) if target == 0 else (write, read)
            self._theirs.append(child)
            self._ours.append(ours)
            os.set_blocking(ours, False)
            children.append(child)
        self._copy(children)

    def started(self) -> tuple[int, ...]:
        """The process has inherited what is its own: the descriptors that are ours now."""
        self._close(self._theirs)
        return tuple(self._ours)

    def failed(self) -> None:
        """It was not started."""
        self._close(self._ours + self._theirs)

    def _close(self, fds: list[int]) -> None:
        for fd in fds:
            os.close(fd)
        if self._actions is not None:
            self._actions.close()


def resize(terminal: int, rows: int, cols: int) -> None:
    """Set the size of a terminal. Programs in its foreground get SIGWINCH. Raises `OSError`."""
    size = struct.pack("HHHH", min(max(rows, 0), _MOST), min(max(cols, 0), _MOST), 0, 0)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)


def unnamed_file(directory: str) -> int:
    """A file that vanishes with its last descriptor. Raises `OSError`."""
    try:
        return os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError:
        return os.memfd_create("output")
