"""The keyboard while a session of a pipeline is watched: single keys, which are not shown.

The terminal is only touched while this process is in its foreground: otherwise it would be stopped for that.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Mapping
from types import FrameType
from typing import Final

_READ: Final = 256


class Keys:
    """The terminal at stdin, if there is one."""

    def __init__(self) -> None:
        self._fd = -1
        self._before: list[object] | None = None
        try:
            if sys.stdin is not None and os.isatty(sys.stdin.fileno()):
                self._fd = sys.stdin.fileno()
        except (OSError, ValueError):
            pass

    @property
    def foreground(self) -> bool:
        """Is there a terminal, and are its keys for us?"""
        try:
            return self._fd >= 0 and os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return False

    @property
    def background(self) -> bool:
        """Is there a terminal whose keys are for others?"""
        return self._fd >= 0 and not self.foreground

    def take(self) -> None:
        """Have keys come one by one, unseen."""
        if self._before is not None or not self.foreground:
            return
        try:
            before = termios.tcgetattr(self._fd)
            mode = termios.tcgetattr(self._fd)
            mode[3] &= ~(termios.ECHO | termios.ICANON)
            termios.tcsetattr(self._fd, termios.TCSADRAIN, mode)
        except termios.error:
            return
        self._before = before

    def restore(self) -> None:
        """Leave the terminal as it was."""
        before, self._before = self._before, None
        if before is not None and self.foreground:
            try:
                termios.tcsetattr(self._fd, termios.TCSADRAIN, before)  # type: ignore[arg-type]
            except termios.error:
                pass  # the terminal is gone

    def forget(self) -> None:
        """Forget what was typed before there was a question."""
        if self.foreground:
            try:
                termios.tcflush(self._fd, termios.TCIFLUSH)
            except termios.error:
                pass

    def pressed(self) -> str:
        """The key that was pressed, in lower case; empty: none."""
        if not self.foreground or not select.select([self._fd], [], [], 0)[0]:
            return ""
        try:
            typed = os.read(self._fd, _READ).decode("ascii", "replace")
        except OSError:
            return ""
        return "" if typed[:1] in ("", "\x1b") else typed[0].lower()  # an arrow key is no letter

    def shell(self, words: list[str], *, cwd: str, env: Mapping[str, str]) -> None:
        """Let an interactive program have the terminal until it ends. Raises `OSError`."""
        self.restore()
        # What is typed there is not for us. Handlers, not SIG_IGN: that would be passed on to its children.
        before = {number: signal.signal(number, _nothing) for number in _OF_THE_SHELL}
        try:
            subprocess.Popen(words, cwd=cwd, env=dict(env)).wait()
        finally:
            self._to_the_foreground()
            for number, handler in before.items():
                signal.signal(number, handler)
            self.take()

    def _to_the_foreground(self) -> None:
        """A shell with job control may leave its own process group there."""
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            os.tcsetpgrp(self._fd, os.getpgrp())
        except OSError:
            pass  # the terminal is gone
        finally:
            signal.signal(signal.SIGTTOU, before)


_OF_THE_SHELL: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    pass
