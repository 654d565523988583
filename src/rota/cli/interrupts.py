"""Signals during `rota run`: the first is remembered and acted on between messages, the second ends us."""

from __future__ import annotations

import os
import signal
import sys
import time
from types import FrameType
from typing import Final

from rota.cli.terminal import is_terminal

#: A signal is acted on much sooner, unless we cannot go on, as when nobody reads our output.
_STUCK_S: Final = 1.0
_WATCHED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """A context in which signals wait to be asked for."""

    def __init__(self) -> None:
        self.pending: int | None = None
        self.cancelling = False
        self._came_at = 0.0
        self._old: dict[int, object] = {}

    def __enter__(self) -> Interrupts:
        for number in _WATCHED:
            old = signal.getsignal(number)
            if old is not signal.SIG_IGN:  # nohup means it
                self._old[number] = old
                signal.signal(number, self._came)
        return self

    def __exit__(self, *_: object) -> None:
        for number, old in self._old.items():
            signal.signal(number, old)  # type: ignore[arg-type]

    def _came(self, number: int, _frame: FrameType | None) -> None:
        stuck = self.pending is not None and time.monotonic() - self._came_at > _STUCK_S
        if stuck or (self.cancelling and number != signal.SIGHUP):
            # Asked twice: leave at once, whatever we are in the middle of.
            os._exit(128 + number)
        if self.pending is None:
            self.pending = number
            self._came_at = time.monotonic()

    def take(self) -> int | None:
        """The signal that came since the last call, if one did."""
        number, self.pending = self.pending, None
        return number


def ask() -> str:
    """Ask on the terminal what to do: `detach`, `cancel` or `keep`. Another Ctrl-C means cancel."""
    if not is_terminal(sys.stderr):
        return "cancel"
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with open("/dev/tty", encoding="utf-8", errors="replace") as terminal:
            while True:
                sys.stderr.write("\nrota: [d]etach, [c]ancel, [k]eep waiting? ")
                sys.stderr.flush()
                line = terminal.readline()
                for word in ("detach", "cancel", "keep"):
                    if line[:1].lower() == word[0]:
                        return word
                if not line:
                    return "detach"
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return "cancel"
    except OSError:
        return "cancel"
    finally:
        signal.signal(signal.SIGINT, old)
