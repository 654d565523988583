"""The filter typed after `/`: selectors for the manager, and plain text that is searched for here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from rota.core.jobs.command import one_line
from rota.errors import BadInput

if TYPE_CHECKING:
    from rota.wire.views import JobView

_SELECTOR: Final = re.compile(
    r"@.+|\d+(-\d+)?|(name|exit|older|user|host|group|queue|project|gang|pool)=.+|cmd~.+|last"
)


class Filter(Struct, frozen=True):
    """Jobs that match any of the selectors and contain every piece of text."""

    words: tuple[str, ...] = ()
    text: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join([*self.words, *self.text])

    def selectors(self, states: tuple[str, ...]) -> list[str]:
        """The same for jobs in these states."""
        return [
            f"state={state},{word}" if word else f"state={state}"
            for state in states
            for word in self.words or [""]
        ]


def parse_filter(text: str) -> Filter:
    """Raises `BadInput`."""
    words, pieces = [], []
    for word in text.split():
        if word.startswith("state="):
            raise BadInput("the tabs choose the state", hint="filter by @group, host=x, user=x, ids or text")
        if all(_SELECTOR.fullmatch(part) for part in word.split(",")):
            words.append(word)
        elif word != "all":
            pieces.append(word.casefold())
    return Filter(tuple(words), tuple(pieces))


def found_in(job: JobView, pieces: tuple[str, ...]) -> bool:
    """Are all pieces in the job's command, name, group, host or reason?"""
    command = one_line(job.cmd)
    reason = job.reason.message if job.reason else ""
    text = "\n".join((command, job.name, *(job.groups or [job.group]), job.host or "", reason)).casefold()
    return all(piece in text for piece in pieces)
