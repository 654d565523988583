"""What users and projects used and asked for, kept for as long as it may count, in spans that grow with age.

Settings of fair share may change at any time, so what it is reckoned from is kept and not only its result. Of the
last days every hour is kept, then every day, then every week: old use has faded, and an hour more or less of its
age makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

HOUR_S: Final = 3600.0
DAY_S: Final = 24 * HOUR_S
#: Up to which age use is kept in spans of which length. What is older is forgotten.
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


class History:
    """Sums by span, user and project."""

    def __init__(self, *, first_s: float = HOUR_S) -> None:
        self.first_s = first_s  #: the shortest span
        #: (length of the span, its number) → who → [used, asked]
        self._spans: dict[tuple[float, int], dict[UserProject, list[float]]] = {}
        self._compacted = 0.0

    def add(self, who: UserProject, used: float, asked: float, at: float) -> None:
        """So much was used, and asked for, at that time."""
        self._add((self.first_s, int(at // self.first_s)), who, used, asked)

    def _add(self, span: tuple[float, int], who: UserProject, used: float, asked: float) -> None:
        rows = self._spans.get(span)
        if rows is None:
            rows = self._spans[span] = {}
        row = rows.get(who)
        if row is None:
            rows[who] = [used, asked]
        else:
            row[0] += used
            row[1] += asked

    def all(self, now: float) -> Iterator[Used]:
        """Everything, each as of the middle of its span, but never later than now."""
        self.compact(now)
        for (length, number), rows in self._spans.items():
            at = min(now, (number + 0.5) * length)
            for who, (used, asked) in rows.items():
                yield Used(at, who, used, asked)

    def copy(self) -> History:
        """One of its own that knows the same."""
        new = History(first_s=self.first_s)
        new._compacted = self._compacted
        new._spans = {span: {who: row[:] for who, row in rows.items()} for span, rows in self._spans.items()}
        return new

    def compact(self, now: float) -> None:
        """Put what has become old together, and forget what is older than anything that counts."""
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
