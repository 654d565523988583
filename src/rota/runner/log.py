"""The runner's log: plain lines with a time stamp. Never raises.

The `logging` module is not used: loading it would slow the start of every runner.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from rota.launcher import log as launcher_log

_fd = 2


def open_log(path: str) -> None:
    """Write to this file from now on instead of standard error."""
    global _fd
    _fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def say(message: str) -> None:
    """Log one line. Control characters are escaped, so no text of a manager or job can forge another line."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    if not message.isprintable():
        message = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message)
    line = f"{stamp} runner[{os.getpid()}] {message}\n"
    try:
        os.write(_fd, line.encode("utf-8", "backslashreplace"))
    except OSError:
        pass  # a full disk must not stop jobs


def say_exception(doing: str) -> None:
    """Log the exception that is being handled, with its traceback."""
    import traceback

    for line in (f"{doing}:", *traceback.format_exc().splitlines()):
        say(line)


def say_all(messages: Iterable[str]) -> None:
    """Log several lines."""
    for message in messages:
        say(message)


launcher_log.send_to(say)
