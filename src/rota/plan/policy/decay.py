"""Decaying usage: after a half-life it counts half, beyond a window not at all.

All use decays at the same rate, so amounts are stored as of one moment and shares need no update as time passes.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log
from typing import Final

from rota.plan.policy.usage_history import HOUR_S, History, UserProject
from rota.plan.snapshot import snapshot, state

_MOST_HALVINGS: Final = 64.0
#: A user with less than this part of all use is not active.
_TRACE: Final = 1e-6
#: Use leaves the window in so many steps, or hourly.
_STEPS: Final = 24


@state
class Usage:
    """Resource-seconds that users and projects have used and asked for, with decay."""

    half_life_s: float
    window_s: float | None
    _history: History | None
    _looked: int  #: the span at which the window was last applied
    _as_of: float
    _pairs: dict[UserProject, tuple[float, float]]  #: used, asked
    _used: dict[str, float]
    _asked: dict[str, float]
    _by_project: dict[str, float]
    _all_used: float
    _all_asked: float

    def __init__(
        self, half_life_s: float, *, window_s: float | None = None, history: History | None = None
    ) -> None:
        self.half_life_s = half_life_s
        self.window_s = window_s
        if window_s is not None and history is None:
            history = History(first_s=min(HOUR_S, window_s / _STEPS))
        self._history = history if window_s is not None else None
        self._looked = -1
        self._as_of = 0.0
        self._pairs, self._used, self._asked, self._by_project = {}, {}, {}, {}
        self._all_used = self._all_asked = 0.0

    @classmethod
    def of(cls, history: History, now: float, *, half_life_s: float, window_s: float | None) -> Usage:
        """The usage that a history amounts to now. The history is not changed."""
        found = cls(half_life_s, window_s=window_s, history=snapshot(history) if window_s is not None else None)
        found._count(history, now)
        return found

    def _count(self, history: History, now: float) -> None:
        self._as_of = now
        since = now - self.window_s if self.window_s is not None else 0.0
        for at, who, used, asked in history.all(now):
            if at >= since:
                self._add(who, used, asked, at)

    # -- use comes

    def add(self, user: str, project: str, used: float, asked: float, at: float) -> None:
        """Add resource-seconds used and asked for at a time."""
        if self._history is not None:
            self._history.add((user, project), used, asked, at)
        self._add((user, project), used, asked, at)

    def charge(self, who: UserProject, width: float, since: float, until: float) -> None:
        """Add resources held from one moment to another, used as asked for. Decays within that span, too."""
        held = width * max(0.0, until - since)
        if self._history is not None:
            self._history.add(who, held, held, (since + until) / 2)
        halvings = max(0.0, until - since) / self.half_life_s
        if halvings > 1e-6:
            held = width * self.half_life_s / log(2) * (1 - 0.5**halvings)
        self._add(who, held, held, until)

    def _add(self, who: UserProject, used: float, asked: float, at: float) -> None:
        halvings = (at - self._as_of) / self.half_life_s
        if abs(halvings) > _MOST_HALVINGS:
            # Weights would overflow: move the reference time.
            if not self._all_used and not self._all_asked:
                self._as_of, halvings = at, 0.0
            elif halvings > 0:
                self._fade(0.5**halvings)
                self._as_of, halvings = at, 0.0
        weight = 2.0**halvings
        user, project = who
        used, asked = weight * used, weight * asked
        before_used, before_asked = self._pairs.get(who, (0.0, 0.0))
        self._pairs[who] = before_used + used, before_asked + asked
        self._used[user] = self._used.get(user, 0.0) + used
        self._asked[user] = self._asked.get(user, 0.0) + asked
        self._by_project[project] = self._by_project.get(project, 0.0) + used
        self._all_used += used
        self._all_asked += asked

    def _fade(self, factor: float) -> None:
        for amounts in (self._used, self._asked, self._by_project):
            for name in amounts:
                amounts[name] *= factor
        self._pairs = {who: (used * factor, asked * factor) for who, (used, asked) in self._pairs.items()}
        # Sum the parts again: totals that round differently would give shares above 1.
        self._all_used, self._all_asked = sum(self._used.values()), sum(self._asked.values())

    def look(self, now: float) -> None:
        """Drop use that has left the window."""
        history = self._history
        if history is None or self._looked == (span := int(now // history.first_s)):
            return
        self._looked = span
        for sums in (self._pairs, self._used, self._asked, self._by_project):
            sums.clear()
        self._all_used = self._all_asked = 0.0
        self._count(history, now)

    # -- results

    def used(self, user: str, at: float) -> float:
        """Decayed resource-seconds that a user used, as of a time."""
        return self._used.get(user, 0.0) * self._faded(at)

    def asked(self, user: str, at: float) -> float:
        """Decayed resource-seconds that a user asked for."""
        return self._asked.get(user, 0.0) * self._faded(at)

    def used_by_project(self, project: str, at: float) -> float:
        """Decayed resource-seconds that a project used."""
        return self._by_project.get(project, 0.0) * self._faded(at)

    def _faded(self, at: float) -> float:
        halvings = (at - self._as_of) / self.half_life_s
        return float(0.5 ** max(-_MOST_HALVINGS, halvings))

    def share_used(self, user: str) -> float:
        """The user's part of all use, which does not depend on the time; 0 if there is no use."""
        return _share(self._used.get(user, 0.0), self._all_used)

    def share_asked(self, user: str) -> float:
        """The user's part of all that was asked for."""
        return _share(self._asked.get(user, 0.0), self._all_asked)

    def share_of_project(self, project: str) -> float:
        """The project's part of all use."""
        return _share(self._by_project.get(project, 0.0), self._all_used)

    def active(self, jobs: Iterable[UserProject] = ()) -> set[UserProject]:
        """Users and projects with use that counts, or with waiting or running jobs (`jobs`)."""
        least_used, least_asked = _TRACE * self._all_used, _TRACE * self._all_asked
        found = {who for who, (used, asked) in self._pairs.items() if used > least_used or asked > least_asked}
        found.update(jobs)
        return found


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
