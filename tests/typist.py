"""Somebody at a real pseudo-terminal: types, sees what is shown, resizes the window, leaves."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_DEADLINE_S = 60.0


class Typist:
    """One program in a terminal of its own, as its session's leader."""

    def __init__(
        self, argv: Sequence[str], *, env: dict[str, str], cwd: Path, rows: int = 30, cols: int = 90
    ) -> None:
        self._master, slave = pty.openpty()
        self.resize(rows, cols)
        self.before = termios.tcgetattr(slave)
        self._slave = slave
        self.shown = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.process = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**env, "TERM": "xterm"},
            cwd=cwd,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def resize(self, rows: int, cols: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupts(self, until: str) -> None:
        """Ctrl-C, as often as it takes until this is shown: one that comes between two programs is nobody's."""
        end = time.monotonic() + _DEADLINE_S
        while until not in self.shown and time.monotonic() < end:
            self.type("\x03")
            again = time.monotonic() + 1.0
            while until not in self.shown and time.monotonic() < again:
                self._look()
        self.sees(until)

    def sees(self, text: str) -> str:
        """Wait until this is shown; what was shown before it and it. It is then forgotten."""
        end = time.monotonic() + _DEADLINE_S
        while text not in self.shown:
            assert time.monotonic() < end, f"waited in vain for {text!r}; shown is {self.shown!r}"
            if not self._look() and self.process.poll() is not None:
                assert text in self.shown, f"it ended; shown is {self.shown!r}"
        at = self.shown.index(text) + len(text)
        seen, self.shown = self.shown[:at], self.shown[at:]
        return seen

    def _look(self) -> bool:
        if not select.select([self._master], [], [], 0.1)[0]:
            return False
        with contextlib.suppress(OSError):
            self.shown += self._decoder.decode(os.read(self._master, 65536))
        return True

    def ends(self) -> int:
        """The exit status, once it has ended."""
        end = time.monotonic() + _DEADLINE_S
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it does not end; shown is {self.shown!r}"
            self._look()
        while self._look():
            pass
        return int(self.process.returncode)

    @property
    def restored(self) -> bool:
        """Is the terminal as it was?"""
        return bool(termios.tcgetattr(self._slave) == self.before)

    def hang_up(self) -> None:
        """The window is closed."""
        self.process.send_signal(signal.SIGHUP)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._slave)
        os.close(self._master)


@contextlib.contextmanager
def typing_in(argv: Sequence[str], **options: Any) -> Iterator[Typist]:
    """A typist who is gone at the end."""
    typist = Typist(argv, **options)
    try:
        yield typist
    finally:
        typist.close()
