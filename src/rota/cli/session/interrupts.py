"""Signals during commands that wait.

`rota run` queues the first one and handles it between messages; the second ends the process. In other commands
Ctrl-C ends the process at once, after a line about what becomes of the jobs.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import click

from rota.cli.render.printing import print_err
from rota.cli.render.text import is_terminal

#: A closed terminal reads as an empty key, which detaches.
_CHOICES: Final = {"d": "detach", "c": "cancel", "k": "keep", "": "detach"}
#: A signal that is still pending after this time means that the process is stuck, for example in a write that
#: nobody reads.
_STUCK_S: Final = 1.0
_WATCHED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Context manager that queues signals until `take()`. Before a second one ends the process, `leaving` is
    called."""

    def __init__(self, leaving: Callable[[], None] = lambda: None) -> None:
        self._leaving = leaving
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
            # The second signal: exit at once.
            self._leaving()
            os._exit(128 + number)
        if self.pending is None:
            self.pending = number
            self._came_at = time.monotonic()

    def take(self) -> int | None:
        """The signal that came since the last call, if one did."""
        number, self.pending = self.pending, None
        return number


@contextmanager
def explain_interrupt(what_is: Callable[[], str]) -> Iterator[None]:
    """On Ctrl-C in the block, print what has become of the jobs, and abort."""
    try:
        yield
    except KeyboardInterrupt:
        own_line = [""] if is_terminal(sys.stderr) else []  # the terminal shows ^C
        print_err(*own_line, f"rota: interrupted; {what_is()}")
        raise click.Abort from None  # all has been said


def ask() -> str:
    """Ask on the terminal what to do: `detach`, `cancel` or `keep`. Another Ctrl-C means `cancel`."""
    if not is_terminal(sys.stderr):
        return "cancel"
    import termios
    import tty

    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
        before = termios.tcgetattr(terminal)
        try:
            tty.setcbreak(terminal)  # one key, without Enter
            print_err("", "rota: [d]etach, [c]ancel, [k]eep waiting? ", end="")
            sys.stderr.flush()
            while True:
                key = os.read(terminal, 1).decode("ascii", "replace").lower()
                if word := _CHOICES.get(key):
                    print_err(word)
                    return word
        finally:
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)
            os.close(terminal)
    except KeyboardInterrupt:
        print_err("cancel")
        return "cancel"
    except (OSError, termios.error):
        return "cancel"
    finally:
        signal.signal(signal.SIGINT, old)
