"""One run of a hook of the site: its process, its output, and how to signal it."""

from __future__ import annotations

import os
from collections.abc import Callable

from rota.runner.log import say

#: Bytes of a hook's output that are logged, and characters of its last line that are reported.
_LOGGED = 4096
_TOLD = 200

PROLOGUE = "prologue"
EPILOGUE = "epilogue"
SUSPEND = "suspend"
RESUME = "resume"

#: Called when a script is over, with what was wrong, or an empty text.
Done = Callable[[str], None]


class Script:
    """One run of a hook."""

    __slots__ = ("deadline", "done", "job", "late", "name", "output", "pid")

    def __init__(self, name: str, job: int, pid: int, output: int, deadline: float, done: Done) -> None:
        self.name = name
        self.job = job
        self.pid = pid
        self.output = output  #: an unnamed file
        self.deadline = deadline  #: when it is killed
        self.late = ""  #: why it was killed
        self.done = done


def send(script: Script, number: int) -> None:
    try:
        os.killpg(script.pid, number)  # not reaped, so the pid cannot have been reused
    except OSError:
        pass


def unnamed_file(directory: str) -> int:
    """For what a hook prints; it vanishes with its last descriptor. Raises `OSError`."""
    try:
        return os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError:
        return os.memfd_create("hook")


def log_output(script: Script) -> str:
    """Log what it printed; returns its last line."""
    try:
        size = os.fstat(script.output).st_size
        text = os.pread(script.output, _LOGGED, max(0, size - _LOGGED)).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    finally:
        os.close(script.output)
    if not text:
        return ""
    for line in text.splitlines():
        say(f"{script.name} of job {script.job}: {line}")
    return text.splitlines()[-1].strip()[:_TOLD]
