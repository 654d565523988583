"""Counters of quota rules: what jobs hold, and whether one more job would exceed a limit.

An answer names the limit that would be exceeded, and a moment before which no start is possible. The caller tries
again from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from math import inf
from typing import Final, NamedTuple

from rota.errors import Bug
from rota.plan.policy.quota_rules import NO_LIMIT, QuotaRule
from rota.plan.site.calendar import CalendarPiece, Occurrence
from rota.plan.snapshot import state
from rota.plan.timeline.step_function import StepFunction

RESOURCES: Final = "resources"
JOBS: Final = "jobs"
HOURS: Final = "resource-hours"


class QuotaHolding(NamedTuple):
    """What a job holds, from when to when."""

    resources: int
    start: int
    end: int
    jobs: int = 1  #: a gang that waits is several


@state
class QuotaCounter:
    """What the jobs hold that rules of one pattern count together."""

    rules: tuple[QuotaRule, ...]
    jobs: dict[int, QuotaHolding]
    steps: dict[str, StepFunction]
    areas: dict[Occurrence, int]  #: resources × microseconds within each period of a set that limits them

    def __init__(self, rules: tuple[QuotaRule, ...]) -> None:
        self.rules = rules
        self.jobs, self.steps, self.areas = {}, {}, {}
        for rule in rules:
            if rule.resources != NO_LIMIT:
                self.steps.setdefault(RESOURCES, StepFunction())
            if rule.jobs != NO_LIMIT:
                self.steps.setdefault(JOBS, StepFunction())
            if rule.area != NO_LIMIT and not rule.set:
                self.steps.setdefault(HOURS, StepFunction())

    def without(self, rules: Sequence[QuotaRule]) -> QuotaCounter:
        """The same holdings under its other rules; if it has none, an empty counter."""
        left = tuple(rule for rule in self.rules if rule not in rules)
        new = copy(self) if left else QuotaCounter(())
        new.rules = left
        return new

    def last(self) -> float:
        """When the last of the counted jobs ends."""
        return max((held.end for held in self.jobs.values()), default=-inf)


class QuotaHit(NamedTuple):
    """A limit that a job would exceed if it started at a certain moment."""

    rule: QuotaRule
    what: str
    again: float  #: no start before this moment is possible
    counter: QuotaCounter
    since: int
    until: int  #: jobs that hold something within [since, until) are in the way; none if it is empty


def alone(rule: QuotaRule, resources: int, jobs: int) -> str:
    """The limit that so many jobs exceed on their own."""
    if 0 <= rule.resources < resources:
        return RESOURCES
    return JOBS if 0 <= rule.jobs < jobs else HOURS


def always(
    counter: QuotaCounter, rule: QuotaRule, resources: int, jobs: int, start: int, length: int
) -> QuotaHit | None:
    """Check a permanent rule: are its three limits kept at every moment?"""
    worst: QuotaHit | None = None
    limits = (
        (RESOURCES, rule.resources, resources),
        (JOBS, rule.jobs, jobs),
        (HOURS, rule.area, resources * length),
    )
    for what, limit, own in limits:
        if limit == NO_LIMIT or not own or length <= 0:
            continue
        if own > limit:
            return QuotaHit(rule, what, inf, counter, start, start)
        over = counter.steps[what].over(start, start + length, limit - own)
        if over is not None and (worst is None or over.until > worst.again):
            worst = QuotaHit(rule, what, over.until, counter, over.at, over.at + 1)
    return worst


def within(
    counter: QuotaCounter,
    rule: QuotaRule,
    resources: int,
    jobs: int,
    start: int,
    length: int,
    pieces: list[CalendarPiece],
) -> QuotaHit | None:
    """Check a rule of the calendar: at every moment at which its set applies, and over each whole period."""
    worst: QuotaHit | None = None
    for what, limit, own in ((RESOURCES, rule.resources, resources), (JOBS, rule.jobs, jobs)):
        if limit == NO_LIMIT or not own:
            continue
        for piece in reversed(pieces):
            if any(occurrence.set == rule.set for occurrence in piece.occurrences):
                hit = _at_instants(counter, rule, what, limit - own, start, length, piece)
                if hit is not None:
                    # An earlier piece cannot block for longer.
                    if worst is None or hit.again > worst.again:
                        worst = hit
                    break
    if rule.area != NO_LIMIT and resources:
        for occurrence in {occurrence: None for piece in pieces for occurrence in piece.occurrences}:
            if occurrence.set == rule.set:
                hit = _in_all(counter, rule, resources, start, length, occurrence)
                if hit is not None and (worst is None or hit.again > worst.again):
                    worst = hit
    return worst


def _at_instants(
    counter: QuotaCounter, rule: QuotaRule, what: str, room: int, start: int, length: int, piece: CalendarPiece
) -> QuotaHit | None:
    first, last = max(start, piece.start), min(start + length, piece.end)
    if room < 0:
        return QuotaHit(rule, what, piece.end, counter, first, first)
    over = counter.steps[what].over(first, last, room, length=length, bound=piece.end)
    return QuotaHit(rule, what, over.until, counter, over.at, over.at + 1) if over is not None else None


def _in_all(
    counter: QuotaCounter, rule: QuotaRule, resources: int, start: int, length: int, occurrence: Occurrence
) -> QuotaHit | None:
    overlap = occurrence.overlap(start, start + length)
    used = counter.areas.get(occurrence, 0)
    if not overlap or used + resources * overlap <= rule.area:
        return None
    room = max(0, (rule.area - used) // resources)
    again = _first_within(occurrence, start, length, room)
    since, until = occurrence.parts[0][0], occurrence.parts[-1][1]
    return QuotaHit(rule, HOURS, again, counter, since, until if used else since)


def _first_within(occurrence: Occurrence, start: int, length: int, room: int) -> int:
    """The first later start for which at most `room` of the length lies within the occurrence.

    The overlap is linear between starts at which either end of the job passes an edge of a part.
    """
    edges = (edge - shift for part in occurrence.parts for edge in part for shift in (0, length))
    for edge in sorted(edge for edge in edges if edge > start):
        overlap = occurrence.overlap(edge, edge + length)
        if overlap <= room:
            return edge - (room - overlap)
    raise Bug("a job overlaps a period that it starts after")
