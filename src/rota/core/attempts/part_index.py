"""Which jobs have parts, and where. Data only; `core.attempts.parts` keeps it."""

from __future__ import annotations


class PartIndex:
    """State of the feature `parts`."""

    __slots__ = ("at", "closing", "moved")

    def __init__(self) -> None:
        self.at: dict[str, set[int]] = {}  #: host → jobs with a part there
        self.closing: set[int] = set()  #: jobs whose attempt has ended while some parts are open
        self.moved: set[int] = set()  #: jobs with a part at another runner than the one asked first
