"""The launcher's log: standard error, which its agent has pointed to a file; in the runner's process, its log."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable

LOG = "log"  #: the name of that file
_MOST = 1 << 20
_written = 0


_sink: Callable[[str], None] | None = None


def send_to(sink: Callable[[str], None]) -> None:
    """Give all lines to this function from now on."""
    global _sink
    _sink = sink


def say(text: str) -> None:
    """Write a line, unless very much was written already: a job may cause lines."""
    global _written
    if _sink is not None:
        _sink(text)
        return
    line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n"
    _written += len(line)
    if _written < _MOST:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(line)
            sys.stderr.flush()


def say_exception(doing: str) -> None:
    import traceback

    say(f"{doing}: {traceback.format_exc()}")
