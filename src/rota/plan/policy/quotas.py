"""Quotas: how much users, projects, queues and types may hold at once, and when a refused job may start.

At every moment, the resources and the number of jobs that a rule counts together stay within its limits.
Resource-hours of a rule in the calendar are what these jobs hold within one period. Resource-hours of a permanent
rule are the sum of resources × length over the jobs that run at the same time. Both depend on the plan alone, not
on the order of planning: a job that is removed can always be put back. What ended jobs used of a period stays used
until the period is over.

Only bookkeeping: `take` checks nothing, so that running jobs are counted even beyond a limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from math import inf
from typing import Final, NamedTuple

from rota.errors import Bug
from rota.plan.policy.quota_counters import (
    HOURS,
    JOBS,
    RESOURCES,
    QuotaCounter,
    QuotaHit,
    QuotaHolding,
    alone,
    always,
    within,
)
from rota.plan.policy.quota_rules import NO_LIMIT, Pattern, QuotaRule, QuotaSubject, counters_of, parse_rules
from rota.plan.policy.quota_use import RuleUse, use_of
from rota.plan.site.calendar import Calendar, CalendarPiece, Occurrence
from rota.plan.site.clock import SECOND, moment
from rota.plan.snapshot import state

#: The search for a period in which a job fits goes no further ahead.
HORIZON: Final = 2 * 365 * 86400 * SECOND
_REMEMBERED: Final = 10_000


class QuotaCounters(NamedTuple):
    """Which counters count one `QuotaSubject`: a handle for the methods of `Quotas`. It never changes."""

    counters: tuple[int, ...]  #: their places in the list of all
    hour_sets: frozenset[str]  #: rule sets that limit its resource-hours

    def meets(self, other: QuotaCounters) -> bool:
        """Is there a counter that counts both?"""
        return not set(self.counters).isdisjoint(other.counters)


class Spent(NamedTuple):
    """The period of which ended jobs of a subject have used resource-hours."""

    who: QuotaSubject
    set: str
    start: int  #: of the period, like `end`, as a moment of `rota.plan.site.clock`
    end: int


class Refusal:
    """Why a job cannot start at a moment: a rule, its limit, and when to try again."""

    __slots__ = ("_hit", "again", "calendar", "limit", "rule", "what")

    def __init__(self, hit: QuotaHit, again: float) -> None:
        self._hit = hit
        self.rule = str(hit.rule)
        self.what = hit.what
        self.calendar = bool(hit.rule.set)
        #: the earliest later start that all quotas allow; inf: never
        self.again = again
        rule = hit.rule
        self.limit: float = {RESOURCES: rule.resources, JOBS: rule.jobs, HOURS: rule.hours}[hit.what]

    @property
    def holders(self) -> list[int]:
        """The jobs that hold the limit then; empty if the job exceeds it alone. Valid until the next `take`."""
        counter, since, until = self._hit.counter, self._hit.since, self._hit.until
        if since >= until:
            return []
        return sorted(job for job, held in counter.jobs.items() if held.start < until and held.end > since)

    def __repr__(self) -> str:
        return f"Refusal({self.rule}: {self.what} {self.limit:g}, again {self.again})"


@state
class Quotas:
    """All rules of a site and what is held under them."""

    _calendar: Calendar | None
    _rules: Mapping[Pattern, tuple[QuotaRule, ...]]
    _counted: dict[QuotaSubject, QuotaCounters | None]
    _counters: list[QuotaCounter]
    _places: dict[tuple[Pattern, Pattern], int]  #: pattern and names → the place of its counter
    #: (rule, resources, jobs, length) → no start within [from, to) is possible, even on an empty site
    _impossible: dict[tuple[QuotaRule, int, int, int], tuple[int, int]]
    spent: dict[Spent, int]  #: resources × microseconds
    newly_spent: bool  #: since the owner last stored `spent`

    def __init__(
        self,
        rules: Mapping[str, Sequence[float | str]],
        *,
        total: int,
        calendar: Calendar | None = None,
    ) -> None:
        parsed = parse_rules(rules, total=total)
        if calendar is not None:
            for name, of_set in calendar.sets.items():
                parsed += parse_rules(of_set, total=total, name=name)
        self._calendar = calendar
        rules_of: dict[Pattern, list[QuotaRule]] = {}
        for rule in parsed:
            if (rule.resources, rule.jobs, rule.area) != (NO_LIMIT, NO_LIMIT, NO_LIMIT):
                rules_of.setdefault(rule.pattern, []).append(rule)
        self._rules = {pattern: tuple(some) for pattern, some in rules_of.items()}
        self._counted, self._counters, self._places, self._impossible, self.spent = {}, [], {}, {}, {}
        self.newly_spent = False

    def without(self, names: AbstractSet[str]) -> Quotas:
        """A copy without these rules, and with nothing held."""
        new = copy(self)
        kept = {
            pattern: tuple(rule for rule in rules if str(rule) not in names)
            for pattern, rules in self._rules.items()
        }
        new._rules = {pattern: rules for pattern, rules in kept.items() if rules}
        new._counted, new._counters, new._places, new._impossible, new.spent = {}, [], {}, {}, {}
        return new

    def lifting(self, counted: QuotaCounters, rules: Sequence[QuotaRule]) -> Quotas:
        """A view of the same in which these rules do not hold for such a job. Only for questions."""
        new = copy(self)
        new._counters = self._counters[:]
        for at in counted.counters:
            new._counters[at] = self._counters[at].without(rules)
        return new

    def rules_of(self, counted: QuotaCounters) -> list[QuotaRule]:
        """The rules that count such a job."""
        return [rule for at in counted.counters for rule in self._counters[at].rules]

    def counted(self, who: QuotaSubject) -> QuotaCounters | None:
        """The counters of such a job; None: no rule matches it."""
        try:
            return self._counted[who]
        except KeyError:
            found = self._counted[who] = self._find_counters(who)
            return found

    def _find_counters(self, who: QuotaSubject) -> QuotaCounters | None:
        counters: list[int] = []
        hour_sets: set[str] = set()
        for pattern, rules in self._rules.items():
            for names in counters_of(pattern, who):
                at = self._places.setdefault((pattern, names), len(self._counters))
                if at == len(self._counters):
                    self._counters.append(QuotaCounter(rules))
                counters.append(at)
                hour_sets.update(rule.set for rule in rules if rule.set and rule.area != NO_LIMIT)
        return QuotaCounters(tuple(counters), frozenset(hour_sets)) if counters else None

    def counted_together(
        self, members: Sequence[QuotaSubject | None]
    ) -> tuple[tuple[QuotaCounters, tuple[int, ...]], ...]:
        """The counters of a gang: for all that count the same members, these by their places."""
        by_counter: dict[int, list[int]] = {}
        sets: frozenset[str] = frozenset()
        for at, who in enumerate(members):
            found = self.counted(who) if who is not None else None
            if found is not None:
                sets |= found.hour_sets
                for counter in found.counters:
                    by_counter.setdefault(counter, []).append(at)
        groups: dict[tuple[int, ...], list[int]] = {}
        for counter, places in by_counter.items():
            groups.setdefault(tuple(places), []).append(counter)
        return tuple((QuotaCounters(tuple(some), sets), places) for places, some in groups.items())

    # -- use

    def take(
        self, counted: QuotaCounters, job: int, resources: int, start: float, end: float, *, jobs: int = 1
    ) -> None:
        """Count a job, or a gang of so many, that holds so many resources during [start, end)."""
        held = QuotaHolding(resources, moment(start), moment(end), jobs)
        counters = self._counters
        if job in counters[counted.counters[0]].jobs:
            raise Bug(f"job {job} is counted in its quotas already")
        for at in counted.counters:
            counters[at].jobs[job] = held
        self._count(counted, held, 1)

    def give(self, counted: QuotaCounters, job: int) -> None:
        """Count a job no longer."""
        counters = self._counters
        if job not in counters[counted.counters[0]].jobs:
            raise Bug(f"job {job} is not counted in its quotas")
        for at in counted.counters:
            held = counters[at].jobs.pop(job)
        self._count(counted, held, -1)

    def _count(self, counted: QuotaCounters, held: QuotaHolding, times: int) -> None:
        resources, start, end, jobs = held
        amounts = {RESOURCES: resources, JOBS: jobs, HOURS: resources * (end - start)}
        for at in counted.counters:
            for what, steps in self._counters[at].steps.items():
                steps.add(start, end, times * amounts[what])
        if counted.hour_sets:
            for occurrence in self._occurrences(start, end, counted.hour_sets):
                self._use(counted, occurrence, times * resources * occurrence.overlap(start, end))

    def _pieces(self, start: int, end: int) -> list[CalendarPiece]:
        return self._calendar.pieces(start, min(end, start + HORIZON)) if self._calendar is not None else []

    def _occurrences(self, start: int, end: int, sets: frozenset[str]) -> Iterator[Occurrence]:
        """Periods of these rule sets that overlap [start, end), each once."""
        pieces = self._pieces(start, end)
        found = dict.fromkeys(occurrence for piece in pieces for occurrence in piece.occurrences)
        return (occurrence for occurrence in found if occurrence.set in sets)

    # -- ended jobs

    def spend(self, counted: QuotaCounters, who: QuotaSubject, resources: int, start: float, end: float) -> None:
        """A job has ended. What it used of periods that are not over stays used."""
        if not counted.hour_sets:
            return
        first, last = moment(start), moment(end)
        areas = {}
        for each in self._occurrences(first, last, counted.hour_sets):
            period = Spent(who, each.set, each.parts[0][0], each.parts[-1][1])
            areas[period] = self.spent.get(period, 0) + resources * each.overlap(first, last)
        self.remember({period: area for period, area in areas.items() if period.end > last})
        for period in [period for period in self.spent if period.end <= last]:
            self._count_spent(period, -self.spent.pop(period))

    def remember(self, spent: Mapping[Spent, int]) -> None:
        """Restore totals of `spent`, as far as their periods and rules still exist."""
        for period, area in spent.items():
            more = area - self.spent.get(period, 0)
            if more > 0 and self._count_spent(period, more):
                self.spent[period] = area
                self.newly_spent = True

    def _count_spent(self, spent: Spent, area: int) -> bool:
        counted = self.counted(spent.who)
        if counted is None:
            return False
        found = [
            each
            for each in self._occurrences(spent.start, spent.start + 1, counted.hour_sets)
            if (each.set, each.parts[0][0], each.parts[-1][1]) == (spent.set, spent.start, spent.end)
        ]
        for occurrence in found:
            self._use(counted, occurrence, area)
        return bool(found)

    def _use(self, counted: QuotaCounters, occurrence: Occurrence, area: int) -> None:
        """Add to what is used of a period; `area` may be negative."""
        for at in counted.counters:
            areas = self._counters[at].areas
            used = areas.get(occurrence, 0) + area
            if used:
                areas[occurrence] = used
            else:
                areas.pop(occurrence, None)

    # -- questions

    def uses(self, running: AbstractSet[int], now: float) -> list[RuleUse]:
        """What these running jobs hold under each rule, and whether the rule applies now."""
        at = moment(now)
        present = [occurrence for piece in self._pieces(at, at + 1) for occurrence in piece.occurrences]
        cells: dict[Pattern, list[tuple[Pattern, QuotaCounter]]] = {}
        for (pattern, names), place in self._places.items():
            cells.setdefault(pattern, []).append((names, self._counters[place]))
        return [
            use_of(rule, cells.get(pattern, ()), running, present)
            for pattern, rules in self._rules.items()
            for rule in rules
        ]

    def following(self, counted: QuotaCounters, after: float) -> float:
        """The next start or end of a job in the same counters."""
        first = moment(after)
        moments = (each for held in self._holdings(counted) for each in held[1:3])
        return min((each / SECOND for each in moments if each > first), default=inf)

    def starts(self, counted: QuotaCounters) -> list[float]:
        """The starts of the jobs in the same counters."""
        return [held.start / SECOND for held in self._holdings(counted)]

    def _holdings(self, counted: QuotaCounters) -> Iterator[QuotaHolding]:
        return (held for at in counted.counters for held in self._counters[at].jobs.values())

    def refusal(
        self, counted: QuotaCounters, resources: int, start: float, end: float, *, jobs: int = 1
    ) -> Refusal | None:
        """The rule that so many jobs would break with so many resources during [start, end); None: none."""
        first = moment(start)
        length = moment(end) - first
        hit = self._hit(counted, resources, jobs, first, length)
        if hit is None:
            return None
        again, worst = hit.again, hit
        furthest: float = inf if self._calendar is None else first + HORIZON
        while again < inf:
            if again > furthest:
                # After the last counted job only the calendar can still block it.
                furthest = max(first, *(self._counters[at].last() for at in counted.counters)) + HORIZON
                if again > furthest:
                    break
            following = self._hit(counted, resources, jobs, int(again), length)
            if following is None:
                return Refusal(hit, again / SECOND)
            again, worst = following.again, following
        # Name the rule that blocks it for ever.
        return Refusal(worst, inf)

    def _hit(self, counted: QuotaCounters, resources: int, jobs: int, start: int, length: int) -> QuotaHit | None:
        """The limit that blocks this start for longest."""
        worst: QuotaHit | None = None
        pieces: list[CalendarPiece] | None = None
        for at in counted.counters:
            counter = self._counters[at]
            for rule in counter.rules:
                if not rule.set:
                    found = always(counter, rule, resources, jobs, start, length)
                else:
                    if pieces is None:
                        pieces = self._pieces(start, start + length)
                    found = self._in_periods(counter, rule, resources, jobs, start, length, pieces)
                if found is not None and (worst is None or found.again > worst.again):
                    worst = found
        return worst

    def _in_periods(
        self,
        counter: QuotaCounter,
        rule: QuotaRule,
        resources: int,
        jobs: int,
        start: int,
        length: int,
        pieces: list[CalendarPiece],
    ) -> QuotaHit | None:
        if length > 0 and rule.tight(resources, jobs, length):
            possible = self._possible(counter, rule, resources, jobs, start, length)
            if possible > start:
                return QuotaHit(rule, alone(rule, resources, jobs), possible, counter, start, start)
        return within(counter, rule, resources, jobs, start, length, pieces)

    def _possible(
        self, counter: QuotaCounter, rule: QuotaRule, resources: int, jobs: int, start: int, length: int
    ) -> float:
        """When it could start on an empty site."""
        key = (rule, resources, jobs, length)
        known_from, known_to = self._impossible.get(key, (start, start))
        if not known_from <= start <= known_to:
            known_from, known_to = start, start
        empty = QuotaCounter(counter.rules)
        at: float = known_to
        while at <= start + HORIZON:
            hit = within(empty, rule, resources, jobs, int(at), length, self._pieces(int(at), int(at) + length))
            if hit is None:
                break
            at = hit.again
        if len(self._impossible) >= _REMEMBERED:
            self._impossible.clear()
        self._impossible[key] = (known_from, int(at))
        return at if at <= start + HORIZON else inf
