"""The history of what users and projects used and asked for, in spans that grow with age.

Fair share settings may change at any time, so the inputs are kept, not only the result. Recent use is kept by the
hour, older use by the day, then by the week: old use has decayed so far that its exact time does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from rota.plan.snapshot import state

HOUR_S: Final = 3600.0
DAY_S: Final = 24 * HOUR_S
#: (age, length): up to this age, use is kept in spans of this length. Older use is dropped.
_TIERS: Final = ((3 * DAY_S, HOUR_S), (35 * DAY_S, DAY_S), (400 * DAY_S, 7 * DAY_S))
KEPT_S: Final = _TIERS[-1][0]

#: User and project.
UserProject = tuple[str, str]


class Used(NamedTuple):
    """Core-seconds of one user and project, as of a moment."""

    at: float
    who: UserProject
    used: float
    asked: float


@state
class History:
    """Sums by span, user and project."""

    first_s: float  #: the shortest span
    #: (length of the span, its number) → user and project → used, asked
    _spans: dict[tuple[float, int], dict[UserProject, tuple[float, float]]]
    _compacted: float

    def __init__(self, *, first_s: float = HOUR_S) -> None:
        self.first_s = first_s
        self._spans = {}
        self._compacted = 0.0

    def add(self, who: UserProject, used: float, asked: float, at: float) -> None:
        """Add core-seconds used and asked for at a time."""
        self._add((self.first_s, int(at // self.first_s)), who, used, asked)

    def _add(self, span: tuple[float, int], who: UserProject, used: float, asked: float) -> None:
        rows = self._spans.get(span)
        if rows is None:
            rows = self._spans[span] = {}
        before_used, before_asked = rows.get(who, (0.0, 0.0))
        rows[who] = before_used + used, before_asked + asked

    def all(self, now: float) -> Iterator[Used]:
        """All entries, each dated to the middle of its span, never later than now."""
        self.compact(now)
        for (length, number), rows in self._spans.items():
            at = min(now, (number + 0.5) * length)
            for who, (used, asked) in rows.items():
                yield Used(at, who, used, asked)

    def compact(self, now: float) -> None:
        """Merge old spans into longer ones, and drop spans older than `KEPT_S`."""
        if now - self._compacted < DAY_S:
            return
        self._compacted = now
        for span in sorted(self._spans):
            length, number = span
            age = now - (number + 1) * length
            wanted = next((its for most, its in _TIERS if age <= most), None)
            if wanted is not None and (wanted <= length or wanted == HOUR_S):
                continue
            rows = self._spans.pop(span)
            if wanted is not None:
                to = (wanted, int((number + 0.5) * length // wanted))
                for who, (used, asked) in rows.items():
                    self._add(to, who, used, asked)
