"""One run of a hook of the site: its process, its output, and how to signal it."""

from __future__ import annotations

import os
from collections.abc import Callable

from rota.launcher.base import Begun, Key, Launcher
from rota.runner.log import say

#: Bytes of a hook's output that are logged, and characters of its last line that are reported.
_LOGGED = 4096
_TOLD = 200

PROLOGUE = "prologue"
EPILOGUE = "epilogue"
SUSPEND = "suspend"
RESUME = "resume"
#: No hook, but like them no process of any job: forks for calls of functions (`start.calls`).
TEMPLATE = "template"

#: Called when a script is over, with what was wrong, or an empty text.
Done = Callable[[str], None]


class Script:
    """One run of a hook."""

    __slots__ = ("deadline", "done", "key", "late", "launcher", "name", "output", "pid")

    def __init__(
        self, name: str, key: Key, launcher: Launcher, begun: Begun, *, deadline: float, done: Done
    ) -> None:
        self.name = name
        self.key = key  #: of the lease for which it runs
        self.launcher = launcher
        self.pid = begun.pid
        self.output = begun.fds[0] if begun.fds else -1  #: an unnamed file
        self.deadline = deadline  #: when it is killed
        self.late = ""  #: why it was killed
        self.done = done


def send(script: Script, number: int) -> None:
    try:
        script.launcher.signal(script.pid, number)
    except OSError:
        pass


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
        say(f"{script.name} of job {script.key[0]}: {line}")
    return text.splitlines()[-1].strip()[:_TOLD]
