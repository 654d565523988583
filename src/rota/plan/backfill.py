"""How waiting jobs are gone through after something happened: strictly in order, easily, or conservatively.

The rules are those of `batch.md`, to the letter; shortcuts give the result of going through everybody.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from math import inf, nextafter
from typing import TYPE_CHECKING

from rota.plan.entry import WAITING, Entry, Moved, Rank
from rota.plan.holes import Holes

if TYPE_CHECKING:
    from rota.plan.planner import Planner


class Class:
    """Queues of one priority, planned together: their waiting jobs in order of rank."""

    def __init__(self, priority: float, backfill: str) -> None:
        self.priority = priority
        self.backfill = backfill
        self.line: list[Entry] = []
        self.head: Entry | None = None  #: who has a reservation, where only the first gets one
        self.freed: list[tuple[float, float]] = []  #: what became free since everybody was looked at

    def add(self, entry: Entry) -> int:
        insort(self.line, entry, key=_by_rank)
        return bisect_left(self.line, entry.rank, key=_by_rank)

    def discard(self, entry: Entry) -> None:
        at = bisect_left(self.line, entry.rank, key=_by_rank)
        if at < len(self.line) and self.line[at] is entry:
            del self.line[at]
        elif entry in self.line:
            self.line.remove(entry)
        if self.head is entry:
            self.head = None


def _by_rank(entry: Entry) -> Rank:
    return entry.rank


def below(planner: Planner, klass: Class, position: int) -> list[Entry]:
    """Waiting jobs of worse rank than this place in a class, in order."""
    found = klass.line[position:]
    at = planner.classes.index(klass)
    for lower in planner.classes[at + 1 :]:
        found = found + lower.line
    return found


def on_submitted(planner: Planner, klass: Class, entry: Entry, now: float) -> None:
    """A job joined the line: plan it, and those of worse rank after it."""
    if klass.backfill != "conservative":
        _with_lower_out(planner, klass, now, cause=f"job {entry.id} goes first")
        return
    at = bisect_left(klass.line, entry.rank, key=_by_rank)
    others = below(planner, klass, at + 1)
    if not others:
        planner.place(entry, now)
        _follow(planner, entry, now)
        return
    replan_from(planner, klass, at, now, cause=f"job {entry.id} goes first")


def on_freed(planner: Planner, freed: list[tuple[float, float]], now: float) -> None:
    """Something became free: let waiting jobs begin earlier, in order."""
    for klass in planner.classes:
        if klass.backfill == "conservative":
            _compress(planner, klass, freed, now)
        else:
            _with_lower_out(planner, klass, now, cause="a job ended")
            return  # everything below was planned again


def _with_lower_out(planner: Planner, klass: Class, now: float, *, cause: str) -> None:
    """Go through a class that plans only its first; whatever ranks below is planned after it."""
    at = planner.classes.index(klass)
    lower = [entry for each in planner.classes[at + 1 :] for entry in each.line]
    places = {entry.id: entry.start for entry in lower}
    for entry in lower:
        planner.unplan(entry)
    _first_only(planner, klass, now)
    for each in planner.classes[at + 1 :]:
        each.freed = []
        if each.backfill == "conservative":
            for entry in list(each.line):
                if entry.start is None:
                    planner.place(entry, now)
                    _follow(planner, entry, now)
        else:
            _first_only(planner, each, now)
    for entry in lower:
        if places[entry.id] is not None and entry.start != places[entry.id]:
            planner.moved.append(Moved(entry.id, places[entry.id], entry.start, cause))


def replan(planner: Planner, now: float) -> None:
    """Plan all that wait, in order of rank; nothing is planned yet."""
    for klass in planner.classes:
        klass.freed, klass.head = [], None
    if planner.classes:
        replan_from(planner, planner.classes[0], 0, now, cause="")


def replan_from(planner: Planner, klass: Class, position: int, now: float, *, cause: str) -> None:
    """Take out everybody from a place in a class on, and put them back in order of rank."""
    out = below(planner, klass, position)
    places = {entry.id: entry.start for entry in out}
    for entry in out:
        if entry.start is not None:
            planner.unplan(entry)
    for each in planner.classes[planner.classes.index(klass) :]:
        if each.backfill == "conservative":
            for entry in each.line[position if each is klass else 0 :]:
                if entry.start is None and entry.state == WAITING:
                    planner.place(entry, now)
                    _follow(planner, entry, now)
        else:
            _first_only(planner, each, now)
    if cause:
        for entry in out:
            if places[entry.id] is not None and entry.start != places[entry.id]:
                planner.moved.append(Moved(entry.id, places[entry.id], entry.start, cause))


def replan_missing(planner: Planner, now: float) -> None:
    """Plan those of a conservative class that have no start."""
    for klass in planner.classes:
        if klass.backfill == "conservative":
            for entry in klass.line:
                if entry.start is None:
                    planner.place(entry, now)


def again(planner: Planner, entry: Entry, now: float) -> None:
    """Take one waiting job out, if it is planned, and put it back at its earliest start."""
    planner.unplan(entry)
    planner.place(entry, now)
    _follow(planner, entry, now)


def _follow(planner: Planner, entry: Entry, now: float) -> None:
    """Those whose place depends on this one's move with it."""
    for child in planner.followers(entry):
        if child.start is None or child.home == entry.id or entry.end is None or child.start < entry.end:
            again(planner, child, now)


# ------------------------------------------------------------------ only the first has a reservation


def _first_only(planner: Planner, klass: Class, now: float) -> None:
    """`none`, `easy` and `easy-sjbf`: start what fits, reserve for the first that does not, let others pass."""
    if klass.head is not None:
        planner.unplan(klass.head)
        klass.head = None
    at_once = nextafter(now, inf)
    line = klass.line
    first = 0
    while first < len(line) and planner.place(line[first], now, before=at_once):
        planner.chosen(line[first])
        first += 1
    started = line[:first]
    del line[:first]
    if klass.backfill == "none" or not line:
        return
    del started
    head = next((entry for entry in line if planner.place(entry, now)), None)
    if head is None:
        return
    klass.head = head
    slots = planner.slots
    free = slots.counts[slots.index(now)]
    rest = [entry for entry in line if entry.least <= free and entry is not head]
    if klass.backfill == "easy-sjbf":
        rest.sort(key=lambda entry: entry.shortest)
    gone = False
    for entry in rest:
        if entry.least > free or entry.rank < head.rank:
            continue
        if planner.place(entry, now, before=at_once):
            planner.chosen(entry)
            gone = True
            free = slots.counts[slots.index(now)]
    if gone:
        klass.line = [entry for entry in line if entry.start is None or entry is head]


# ------------------------------------------------------------------ everybody has a planned start


def _compress(planner: Planner, klass: Class, freed: list[tuple[float, float]], now: float) -> None:
    """Each waiting job, in order, is taken out alone and put back at its earliest start.

    Tried are only those for whom something became free since they were tried last.
    """
    slots = planner.slots
    holes = Holes(slots, now, klass.freed + freed)
    klass.freed = []
    numbered = not planner.counted
    for entry in list(klass.line):
        start = entry.start
        if start is None:
            if entry.trouble is None and entry.state == WAITING:
                _try_again(planner, klass, entry, holes, now, None)
            continue
        if start <= now:
            continue
        if entry.blamed or entry.special or entry.home or len(entry.options) > 1:
            _try_again(planner, klass, entry, holes, now, None)
            continue
        since = holes.may_improve(entry.least, entry.shortest, start)
        if since is None and not (numbered and _may_take_better(planner, entry, holes)):
            continue
        _try_again(planner, klass, entry, holes, now, since if since is not None else start)


def _may_take_better(planner: Planner, entry: Entry, holes: Holes) -> bool:
    """Could it have preferred resources at the same start?"""
    assert entry.start is not None
    assert entry.end is not None
    if not holes.touches(entry.start, entry.end):
        return False
    better = (1 << (entry.resources.bit_length() - 1)) - 1
    return bool(planner.slots.common(entry.start, entry.end) & entry.options[0].shape.eligible & better)


def _try_again(
    planner: Planner, klass: Class, entry: Entry, holes: Holes, now: float, since: float | None
) -> None:
    start, end, resources = entry.start, entry.end, entry.resources
    planner.unplan(entry)
    planner.place(entry, now, since=since)
    if entry.start == start and entry.resources == resources:
        _follow(planner, entry, now)
        return
    if start is not None and end is not None:
        klass.freed.append((start, end))
        holes.add(start, end)
    if entry.start is not None and entry.end is not None:
        holes.changed(entry.start, entry.end)
    if start is not None and entry.start is not None and entry.start > start:
        planner.moved.append(Moved(entry.id, start, entry.start, "what it waits for moved"))
    _follow(planner, entry, now)
