"""Jobs that are suspended: their cores are free for others, their memory, disk, GPUs and limit units are not.

Who resumes stands in line by its rank like anybody else, but for exactly its own cores and for the time that it
has left. What it keeps meanwhile is its *ballast*: held until it begins again or, while nobody knows when that is,
for a while that is made longer whenever it is over.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from heapq import heappush
from typing import TYPE_CHECKING

import msgspec

from rota.plan.ask import Ask
from rota.plan.planner import backfill, overrun
from rota.plan.planner.entry import RUNNING, SUSPENDED, WAITING, Entry, Option, by_rank
from rota.plan.policy.quota_rules import quota_subject
from rota.plan.reasons import Waits
from rota.plan.timeline.shapes import Shape, Short

if TYPE_CHECKING:
    from rota.plan.planner.holdings import Holdings
    from rota.plan.planner.planner import Planner
    from rota.plan.planner.search import Search

#: Nobody is expected to be away for less.
_LEAST_S = 60.0


class Exactly(Shape):
    """These resources and no others."""

    def __init__(self, mask: int) -> None:
        self.fits = []
        self.eligible = mask
        self.least = mask.bit_count()
        self.plain, self.bounded, self.greedy, self.ordered, self.whole_hosts = False, False, False, False, False
        self.family, self.number = ("exactly", mask), 1
        self.even = self.possible = True

    def may_fit(self, free: int) -> bool:
        return free & self.eligible == self.eligible

    def choose(self, free: int, short: Short | None = None) -> int:
        mask = self.eligible
        if free & mask != mask or (short is not None and short(mask) & mask):
            return 0
        return mask


class Pinned:
    """A suspended job, and what it comes back to."""

    __slots__ = ("entry", "hard", "ids", "left_s", "mask", "since", "until")

    def __init__(
        self, entry: Entry, ids: tuple[int, ...], mask: int, *, left_s: float, hard: bool, since: float
    ) -> None:
        self.entry = entry
        self.ids = ids
        self.mask = mask  #: of its resources, those that the present site knows
        self.left_s = left_s
        self.hard = hard  #: does a walltime end it?
        self.since = since
        self.until = since  #: so long it keeps its ballast if it has no planned start


# ------------------------------------------------------------------ what happens to it


def suspend(planner: Planner, id: int, now: float, *, left_s: float) -> None:
    """A running job was suspended: others may have its cores. One that resumes, and has not yet, waits no more."""
    planner.finish()
    planner.now = now
    entry = planner.entries[id]
    if id in planner.suspended:
        _stand_back(planner, planner.suspended[id], now)
        return
    if entry.state != RUNNING or entry.start is None or entry.end is None:
        return
    del planner.running[id]
    freed = [(now, entry.end)]
    planner.charge(entry, now)
    if entry.counted is not None and planner.quotas is not None:
        width = entry.resources.bit_count()
        planner.quotas.spend(entry.counted, quota_subject(entry.ask), width, entry.start, now)
    hard = bool(entry.options) and entry.options[min(entry.alternative, len(entry.options) - 1)].hard
    planner.drop(entry, since=now)
    planner.untangle(id)
    ids = tuple(planner.site.ids(entry.resources))
    # Until then nobody else was promised what it keeps.
    until = entry.end
    _pin(planner, Pinned(entry, ids, entry.resources, left_s=left_s, hard=hard, since=now), until)
    planner.go_through(backfill.on_freed(planner, freed, now), now, f"job {id} was suspended")


def adopt(
    planner: Planner, id: int, ask: Ask, *, ids: Iterable[int], left_s: float, hard: bool, since: float, now: float
) -> None:
    """A job that was suspended before there was this plan."""
    planner.finish()
    planner.now = now
    entry = Entry(id, ask, since)
    planner.entries[id] = entry
    if ask.types.inner:
        planner.lies_in(entry)
    known = tuple(ids)
    mask = planner.site.mask(each for each in known if planner.site.knows(each))
    until = now + max(_LEAST_S, left_s)
    _pin(planner, Pinned(entry, known, mask, left_s=left_s, hard=hard, since=since), until)


def _pin(planner: Planner, pinned: Pinned, until: float) -> None:
    entry = pinned.entry
    entry.state = SUSPENDED
    entry.ask = _without_moments(entry.ask)
    entry.start = entry.end = None
    entry.resources = entry.home = entry.alternative = 0
    entry.fixed = False
    planner.suspended[entry.id] = pinned
    planner.ready(entry)
    pinned.until = until
    heappush(planner.overdue, (pinned.until, entry.id))
    ballast(planner, entry)


def _without_moments(ask: Ask) -> Ask:
    """It has begun in time, whatever that was."""
    types = msgspec.structs.replace(ask.types, expire=None, deadline=None, postpone=None)
    return msgspec.structs.replace(ask, at=None, types=types)


def resume(planner: Planner, id: int, now: float, *, left_s: float, submitted: float, serial: int) -> None:
    """It wants to go on: it is queued by its rank, for exactly its cores."""
    planner.finish()
    planner.now = now
    pinned = planner.suspended.get(id)
    if pinned is None or pinned.entry.state != SUSPENDED:
        return
    entry, pinned.left_s = pinned.entry, left_s
    entry.state = WAITING
    entry.submitted, entry.serial = submitted, serial
    planner.ready(entry)
    entry.rank = planner.rank_of(entry, now)
    planner.join(entry, now, f"job {id} resumes")


def _stand_back(planner: Planner, pinned: Pinned, now: float) -> None:
    """It was about to resume, and stays suspended."""
    entry = pinned.entry
    if entry.state != WAITING:
        return
    freed = [(entry.start, entry.end)] if entry.start is not None and entry.end is not None else []
    planner.unplan(entry)
    if entry in planner.starting:
        planner.starting.remove(entry)
    planner.class_of(entry.ask).discard(entry)
    entry.state = SUSPENDED
    planner.go_through(backfill.on_freed(planner, freed, now), now, f"job {entry.id} stays suspended")


def begun(planner: Holdings, entry: Entry) -> None:
    """It goes on: what it held as ballast it holds as a running job by now."""
    planner.ledger.give(~entry.id)
    del planner.suspended[entry.id]


def gone(planner: Holdings, id: int, now: float) -> list[tuple[float, float]]:
    """It has ended, or will never resume. When something became free."""
    pinned = planner.suspended.pop(id, None)
    if pinned is None:
        return []
    planner.ledger.give(~id)
    return [(now, max(pinned.until, now))]


# ------------------------------------------------------------------ what it wants, and what it keeps


def prepare(planner: Search, pinned: Pinned) -> None:
    """Its one option: its own cores, for what is left."""
    entry = pinned.entry
    entry.options = [Option(Exactly(pinned.mask), pinned.left_s, pinned.hard)]
    entry.least, entry.shortest, entry.kind = pinned.mask.bit_count(), pinned.left_s, None
    entry.alternative = 0
    if not pinned.mask or pinned.mask.bit_count() < len(pinned.ids):
        entry.trouble = Waits("resuming", "some of the cores that it had are not there any more")


def ballast(planner: Holdings, entry: Entry) -> None:
    """What it keeps is its own until it begins again."""
    pinned = planner.suspended[entry.id]
    planner.ledger.give(~entry.id)
    until = entry.start if entry.start is not None else pinned.until
    if until > planner.now and (entry.taking is not None or entry.everywhere):
        span = (planner.now, until)
        planner.ledger.take(~entry.id, entry.taking, entry.everywhere, pinned.mask, span)


def stays(planner: Planner, pinned: Pinned, now: float) -> None:
    """It has not come back for long: it keeps its ballast for longer, and plans in the way move."""
    planner.finish()
    entry, old = pinned.entry, pinned.until
    pinned.until = overrun.new_end(pinned.since, now)
    heappush(planner.overdue, (pinned.until, entry.id))
    if entry.start is not None:
        return  # it is known when it comes back
    moving = [
        other
        for other in (*planner.starting, *(each for klass in planner.classes for each in klass.line))
        if other is not entry
        and other.start is not None
        and other.end is not None
        and other.start < pinned.until
        and other.end > old
        and _meet(planner, pinned, other)
    ]
    for other in moving:
        planner.unplan(other)
    ballast(planner, entry)
    planner.go_through(_make_way(planner, moving, now), now, f"job {entry.id} stays suspended")


def _make_way(planner: Planner, moving: list[Entry], now: float) -> Iterator[None]:
    if moving:
        first = min(moving, key=by_rank)
        klass = planner.class_of(first.ask)
        at = bisect_left(klass.line, first.rank, key=by_rank)
        yield from backfill.replan_from(planner, klass, at, now)
    yield from backfill.on_freed(planner, [(start, end) for _entry, start, end, _resources in planner.given], now)


def _meet(planner: Planner, pinned: Pinned, other: Entry) -> bool:
    """Do both want something that is not a core, of which there may be too little?"""
    entry = pinned.entry
    if entry.everywhere.keys() & other.everywhere.keys():
        return True
    if entry.taking is None or other.taking is None or not entry.taking.keys() & other.taking.keys():
        return False
    hosts = set(planner.site.hosts_of(pinned.mask))
    return any(host in hosts for host in planner.site.hosts_of(other.resources))


def site_changed(planner: Holdings) -> None:
    """Its cores may have come or gone. The ledger is new and knows of nobody."""
    for pinned in planner.suspended.values():
        pinned.mask = planner.site.mask(id for id in pinned.ids if planner.site.knows(id))
