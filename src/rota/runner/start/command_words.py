"""What must be executed for each kind of command."""

from __future__ import annotations

from collections.abc import Callable

from rota.core.jobs.command import Call, Command
from rota.launcher.base import CannotRun, Words, shell
from rota.runner.start.calls import words_of_call

BASH = b"/bin/bash"


def words_of(command: Command, *, pipefail: bool, prepare: Callable[[bytes], bytes] | None = None) -> Words:
    """What must be executed for a command. `prepare`: makes what a shell reads of its text. Raises `CannotRun`."""
    words: Words
    if isinstance(command, str):
        text = command.encode("utf-8", "surrogateescape")
        if prepare is not None:
            text = prepare(text)
        words = (BASH, [b"bash", b"-o", b"pipefail", b"-c", text]) if pipefail else shell(text)
    elif isinstance(command, Call):
        words = words_of_call(command)
    else:
        words = None, [word.encode("utf-8", "surrogateescape") for word in command]
        if not words[1] or not words[1][0]:
            raise CannotRun(127, "the command is empty")
    if any(b"\0" in word for word in words[1]):
        raise CannotRun(126, "the command contains a NUL character")
    return words
