"""What kept the engine from deciding, and about what.

A bug is no refusal. It may have left the world half changed, so the open batch is dropped, and the manager starts
anew from what is on disk (ADR 40).
"""

from __future__ import annotations

from rota.core.events import Event
from rota.core.rows import EventRow


class Undecided(Exception):
    """A bug kept the engine from deciding; its cause is the error. The world may be half changed."""

    def __init__(self, place: str, event: Event | None = None) -> None:
        super().__init__(place)
        self.place = place  #: the kind of the event, or the part of a turn that belongs to no event
        self.event = event  #: None: a bug outside of any handler
        self.dropped: list[EventRow] = []  #: lines of stories that were dropped with the batch

    @property
    def job(self) -> int:
        """The job whose story belongs to it; 0: none."""
        return getattr(self.__cause__, "job", 0) or getattr(self.event, "job", 0)

    def __str__(self) -> str:
        cause = self.__cause__
        return f"a bug in {self.place}: {type(cause).__name__}: {cause}"


def undecided(place: str, cause: BaseException) -> Undecided:
    """The same for an error outside of any handler."""
    found = Undecided(place)
    found.__cause__ = cause
    return found
