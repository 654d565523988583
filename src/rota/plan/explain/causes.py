"""The causes for which a job waits: without one of them it would begin earlier.

Each candidate is removed in a trial. If none alone makes a difference, a small set that does together is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import Final, NamedTuple

from rota.plan.explain.trials import (
    ASLEEP,
    AWAY,
    DEADLINE,
    DEPENDENCY,
    EXPIRE,
    HOURS,
    JOBS,
    POSTPONE,
    UNTIL,
    WALLTIME,
    CauseTrial,
    TrialResult,
)
from rota.plan.planner import search, sleeping_hosts
from rota.plan.policy.quota_rules import QuotaRule
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import WAITING, PlanEntry

#: No trials in larger plans: they run in the loop, and each takes time in proportion to the plan.
MOST_ENTRIES: Final = 3000
#: The walltime that is tried if the expected time of the job does not fit.
_SHORT_S: Final = 60.0
#: Named only if nothing else would help: a user or administrator has decided these.
_LAST: Final = (DEADLINE, EXPIRE, AWAY)


class Candidate(NamedTuple):
    """Something that may be a cause."""

    kind: str
    rule: QuotaRule | None = None
    limit: str = ""


class FoundCause(NamedTuple):
    """A cause, and where the job would be placed without it (and the others, if only all together help)."""

    kind: str
    found: TrialResult
    rule: QuotaRule | None = None
    limit: str = ""
    length: float = 0.0  #: of WALLTIME, the longest that helps
    jobs: tuple[PlanEntry, ...] = ()  #: of JOBS and of WALLTIME, the jobs in the way
    hosts: tuple[str, ...] = ()  #: of causes that concern hosts, which hosts


def may_try(plan: Plan, entry: PlanEntry) -> bool:
    """Can causes be found by trial? Not during a pass, and not for reservations, inner and suspended jobs."""
    plain = entry.state == WAITING and not entry.fixed and not entry.ask.types.inner
    return (
        plain
        and not plan.counted
        and not plan.working
        and entry.id not in plan.suspended
        and len(plan.entries) <= MOST_ENTRIES
    )


class Causes:
    """The causes for which one job waits."""

    def __init__(self, plan: Plan, entry: PlanEntry) -> None:
        self.plan, self.entry = plan, entry
        self.trial = CauseTrial(plan, entry.id)
        usual = self.trial.place()
        self.usual = usual
        self.start = min(usual.start, inf if entry.start is None else entry.start)
        self.resources = entry.resources or usual.resources

    def blamed(self) -> tuple[list[FoundCause], bool]:
        """The causes; and do they help only together?"""
        few = list(self._candidates())
        alone = [each for each in few if each.kind not in _LAST and self._helps(each)]
        alone = alone or [each for each in few if each.kind in _LAST and self._helps(each)][:1]
        if alone:
            return self._told(alone, []), False
        some = self._together(few)
        return (self._told(some, some), True) if some else ([], False)

    def _candidates(self) -> Iterator[Candidate]:
        """All candidates, the most telling first."""
        plan, entry, site = self.plan, self.entry, self.plan.site
        types = entry.ask.types
        if entry.after:
            yield Candidate(DEPENDENCY)
        if any(not option.hard for option in entry.options) and search.obstacles(plan):
            yield Candidate(WALLTIME)
        yield from (Candidate("quota", rule=rule) for rule in self.trial.rules())
        yield from (Candidate("limit", limit=name) for name in self.trial.limits())
        waits_to_wake = bool(site.asleep) and sleeping_hosts.why(plan, entry) is not None
        if waits_to_wake:
            yield Candidate(ASLEEP)
        yield Candidate(JOBS)
        if site.asleep and not waits_to_wake:
            yield Candidate(ASLEEP)
        if types.postpone is not None and types.postpone > plan.now:
            yield Candidate(POSTPONE)
        if site.until:
            yield Candidate(UNTIL)
        if site.hours:
            yield Candidate(HOURS)
        if types.deadline is not None:
            yield Candidate(DEADLINE)
        if types.expire is not None:
            yield Candidate(EXPIRE)
        if site.usable != site.everything:
            yield Candidate(AWAY)

    def _place(
        self, some: list[Candidate], *, length: float | None = None, jobs: frozenset[int] | None = None
    ) -> TrialResult:
        rules = tuple(each.rule for each in some if each.rule is not None)
        limits = tuple(each.limit for each in some if each.limit)
        return self.trial.place(
            *(each.kind for each in some), rules=rules, limits=limits, length=length, jobs=jobs
        )

    def _helps(self, *some: Candidate, jobs: frozenset[int] | None = None) -> bool:
        if self._place(list(some), jobs=jobs).start < self.start:
            return True
        walltime = any(each.kind == WALLTIME for each in some)
        return walltime and self._place(list(some), length=_SHORT_S, jobs=jobs).start < self.start

    def _together(self, few: list[Candidate]) -> list[Candidate]:
        """A small set of candidates that helps together; empty: not even all of them do."""
        if not self._helps(*few):
            return []
        for each in reversed(few):
            left = [other for other in few if other is not each]
            if left and self._helps(*left):
                few = left
        return few

    # -- details of each cause

    def _told(self, some: list[Candidate], together: list[Candidate]) -> list[FoundCause]:
        kinds = {each.kind for each in some}
        found = []
        for each in some:
            with_others = [each, *(other for other in together if other is not each)]
            if each.kind == WALLTIME:
                found.append(self._walltime(with_others))
            elif each.kind == JOBS:
                if not together and kinds & {"quota", "limit"}:
                    continue  # the jobs that hold the quota or limit are named with it
                found += self._jobs(with_others, found)
            elif each.kind in (UNTIL, HOURS, AWAY, ASLEEP):
                if not together and each.kind in (UNTIL, HOURS) and WALLTIME in kinds:
                    continue  # a walltime would solve this too
                placed = self._place(with_others)
                found.append(FoundCause(each.kind, placed, hosts=self._hosts(each.kind, placed)))
            else:
                found.append(FoundCause(each.kind, self._place(with_others), rule=each.rule, limit=each.limit))
        return found

    def _hosts(self, kind: str, placed: TrialResult) -> tuple[str, ...]:
        """The hosts that the cause concerns: of its place without the cause, or if there are none, all of them."""
        site = self.plan.site
        mask = site.everything
        if kind == UNTIL:
            mask = _joined(site.until.values())
        elif kind == HOURS:
            mask = _joined(site.hours.values())
        elif kind == ASLEEP:
            mask = site.asleep
        elif kind == AWAY:
            mask = site.everything & ~site.usable
        return tuple(site.hosts_of(mask & placed.resources or mask))

    def _walltime(self, some: list[Candidate]) -> FoundCause:
        """The longest walltime with which it begins as early as possible, and what it must end before."""
        short = None if self._place(some).start < self.start else _SHORT_S
        first = self._place(some, length=short)
        plan = self.plan
        ends = {other.start for other in plan.reserved.values()} | {each.start for each in plan.closures}
        lengths = sorted(end - first.start for end in ends if end is not None and end > first.start)
        longest = short or max(option.length for option in self.entry.options)
        low, high = 0, len(lengths)  # the longer, the harder to place
        while low < high:
            middle = (low + high) // 2
            placed = self._place(some, length=lengths[middle])
            if placed.start <= first.start:
                first, longest, low = placed, lengths[middle], middle + 1
            else:
                high = middle
        end = first.start + longest
        jobs = tuple(
            other
            for other in plan.reserved.values()
            if other.start is not None and other.resources & first.resources and abs(other.start - end) < 1e-3
        )
        closed = [each for each in plan.closures if abs(each.start - end) < 1e-3 and each.mask & first.resources]
        hosts = plan.site.hosts_of(_joined(each.mask for each in closed) & first.resources)
        return FoundCause(WALLTIME, first, length=longest, jobs=jobs, hosts=tuple(hosts))

    def _jobs(self, some: list[Candidate], told: list[FoundCause]) -> list[FoundCause]:
        """The jobs that hold its resources until it begins; if their removal does not help, larger sets."""
        before = [other for other in self.plan.entries.values() if self._goes_before(other)]
        named = {other.id for each in told for other in each.jobs}
        holders = [other for other in before if other.resources & self.resources]
        placed = self._place(some)
        end = placed.start + max((option.length for option in self.entry.options), default=0.0)
        there = [
            other
            for other in self.plan.entries.values()
            if other is not self.entry
            and other.start is not None
            and other.start < end
            and (other.end or inf) > placed.start
            and other.resources & placed.resources
        ]
        entries = self.plan.entries.values()
        planned = [other for other in entries if other is not self.entry and other.start is not None]
        for tried in (holders, before, there, [*before, *there], planned):
            left = list({other.id: other for other in tried if other.id not in named}.values())
            if left and self._helps(*some, jobs=frozenset(other.id for other in left)):
                return [FoundCause(JOBS, placed, jobs=tuple(left))]
        return []

    def _goes_before(self, other: PlanEntry) -> bool:
        """Does the other job begin before this one, and end before it begins?"""
        if other is self.entry or other.start is None or (other.end or 0.0) <= self.plan.now:
            return False
        if other.start >= self.start or (other.end or 0.0) > self.start:
            return False
        return not other.ask.types.besteffort or self.entry.ask.types.besteffort


def _joined(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found
