"""How waiting jobs are gone through after something happened: strictly in order, easily, or conservatively.

The rules are those of `batch.md`, to the letter; shortcuts give the result of going through everybody.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import heappush
from math import inf, nextafter
from typing import TYPE_CHECKING, Final

from rota.plan.planner.entry import WAITING, Entry, Rank, by_rank
from rota.plan.timeline.holes import Holes, merged

if TYPE_CHECKING:
    from rota.plan.planner.search import Search

#: Passes are iterators, so that they can be paused. One step is a job that is placed, or so many of these:
_TAKEN_OUT: Final = 8
_LOOKED_AT: Final = 16
#: More spans that became free than this are looked at as fewer and longer ones.
_MANY_SPANS: Final = 64


class PriorityClass:
    """Queues of one priority, planned together: their waiting jobs in order of rank."""

    def __init__(self, priority: float, backfill: str) -> None:
        self.priority = priority
        self.backfill = backfill
        self.line: list[Entry] = []
        self.head: Entry | None = None  #: who has a reservation, where only the first gets one
        self.hope: tuple[float, int] | None = None  #: when and where the first could begin, where nobody gets one
        self.freed: list[tuple[float, float]] = []  #: what became free since everybody was looked at

    def add(self, entry: Entry) -> None:
        if self.line and entry.rank < self.line[-1].rank:
            insort(self.line, entry, key=by_rank)
        else:
            self.line.append(entry)

    def discard(self, entry: Entry) -> None:
        at = bisect_left(self.line, entry.rank, key=by_rank)
        if at < len(self.line) and self.line[at] is entry:
            del self.line[at]
        elif entry in self.line:
            self.line.remove(entry)
        if self.head is entry:
            self.head = None


def below(planner: Search, klass: PriorityClass, position: int) -> list[Entry]:
    """Waiting jobs of worse rank than this place in a class, in order."""
    found = klass.line[position:]
    at = planner.classes.index(klass)
    for lower in planner.classes[at + 1 :]:
        found = found + lower.line
    return found


def on_submitted(planner: Search, klass: PriorityClass, entry: Entry, now: float) -> Iterator[None]:
    """A job joined the line: plan it, and those of worse rank after it."""
    last = klass.line[-1] is entry and not below(planner, klass, len(klass.line))
    if last and klass.backfill == "conservative":
        planner.place(entry, now)
        follow(planner, entry, now)
        return
    yield from replan_from(planner, klass, bisect_left(klass.line, entry.rank, key=by_rank), now)


def on_freed(planner: Search, freed: list[tuple[float, float]], now: float) -> Iterator[None]:
    """Something became free: let waiting jobs begin earlier, in order."""
    for klass in planner.classes:
        if klass.backfill == "conservative":
            yield from _compress(planner, klass, freed, now)
        else:
            yield from replan_from(planner, klass, 0, now)
            return  # everything below was planned again


def replan(planner: Search, now: float) -> Iterator[None]:
    """Plan all that wait, in order of rank; nothing is planned yet."""
    for klass in planner.classes:
        klass.freed, klass.head = [], None
    if planner.classes:
        yield from put_back(planner, planner.classes[0], 0, now)


def replan_from(planner: Search, klass: PriorityClass, position: int, now: float) -> Iterator[None]:
    """Take out everybody from a place in a class on, and put them back in order of rank."""
    planned = [entry for entry in below(planner, klass, position) if entry.start is not None]
    for number, entry in enumerate(planned, 1):
        planner.unplan(entry)
        if number % _TAKEN_OUT == 0:
            yield
    yield from put_back(planner, klass, position, now)


def put_back(planner: Search, klass: PriorityClass, position: int, now: float) -> Iterator[None]:
    """Plan everybody from a place in a class on, who all were taken out."""
    for each in planner.classes[planner.classes.index(klass) :]:
        if each.backfill == "conservative":
            if each is not klass:
                each.freed = []
            for entry in each.line[position if each is klass else 0 :]:
                if entry.start is None and entry.state == WAITING:
                    planner.place(entry, now)
                    follow(planner, entry, now, turn=entry.rank)
                    yield
        else:
            _first_only(planner, each, now)


def again(planner: Search, entry: Entry, now: float, *, turn: Rank | None = None) -> None:
    """Take one waiting job out, if it is planned, and put it back at its earliest start."""
    planner.unplan(entry)
    if planner.everybody_planned(entry):
        planner.place(entry, now)
    follow(planner, entry, now, turn=turn)


def again_in_order(planner: Search, entries: list[Entry], now: float) -> None:
    """Put these back, who were taken out, in order of rank; then let begin what may where only the first waits."""
    planner.pending.update(entry.id for entry in entries)
    for entry in entries:
        planner.pending.discard(entry.id)
        again(planner, entry, now)
    first = next((klass for klass in planner.classes if klass.backfill != "conservative"), None)
    if first is not None:
        for _step in replan_from(planner, first, 0, now):
            pass


def follow(planner: Search, entry: Entry, now: float, *, turn: Rank | None = None) -> None:
    """Those whose place depends on this one's move with it; those of worse rank than `turn` have theirs yet."""
    for child in planner.followers(entry):
        if child.id in planner.pending or (turn is not None and child.rank > turn):
            continue
        if child.fixed or not planner.everybody_planned(child):
            continue
        if entry.id in child.after:
            wrong = child.start is None or entry.end is None or child.start < entry.end
        else:
            wrong = _should_lie_in(child, entry)
        if wrong:
            again(planner, child, now, turn=turn)


def _should_lie_in(child: Entry, container: Entry) -> bool:
    """Has its container come or gone, or has another one of that name an earlier start?"""
    if container.start is None:
        # Neither planned: nothing moved; containers that lie in each other would follow for ever.
        return child.start is not None and child.home == container.id
    if child.start is None:
        return child is not container
    return child.home != container.id and child.start > container.start


# ------------------------------------------------------------------ only the first has a reservation


def _first_only(planner: Search, klass: PriorityClass, now: float) -> None:
    """`none`, `easy` and `easy-sjbf`: start what fits, reserve for the first that does not, let others pass.

    Who can not be planned at all is nobody's obstacle. When a container begins, those before it in the line who
    wait for one of its name have another turn.
    """
    begun = len(planner.starting)
    _look_once(planner, klass, now)
    while any(_opened_for(entry, klass) for entry in planner.starting[begun:]):
        begun = len(planner.starting)
        _look_once(planner, klass, now)


def _opened_for(entry: Entry, klass: PriorityClass) -> bool:
    """Did a container begin that somebody waits for?"""
    if not entry.ask.types.container:
        return False
    names = {str(entry.id), entry.ask.name} - {""}
    return any(other.ask.types.inner in names for other in klass.line)


def _look_once(planner: Search, klass: PriorityClass, now: float) -> None:
    if klass.head is not None:
        planner.unplan(klass.head)
        klass.head = None
    klass.hope = None
    at_once = nextafter(now, inf)
    head = None
    stuck: list[Entry] = []
    line, klass.line = klass.line, []
    rest: list[Entry] = []
    for at, entry in enumerate(line):
        if not entry.after and planner.place(entry, now, before=at_once):
            planner.starting.append(entry)
        elif _waits_for_room(planner, klass, entry, now):
            head, rest = entry, line[at + 1 :]
            break
        else:
            stuck.append(entry)
    klass.line = stuck + ([head] if head is not None else []) + rest
    if klass.backfill == "none" or head is None:
        return
    klass.head = head
    slots = planner.slots
    free = slots.counts[slots.index(now)]
    if klass.backfill == "easy-sjbf":
        rest.sort(key=lambda entry: entry.shortest)
    gone = set()
    for entry in rest:
        if entry.after or (entry.least > free and not entry.special and not entry.ask.types.inner):
            continue
        if planner.place(entry, now, before=at_once):
            planner.starting.append(entry)
            gone.add(entry.id)
            free = slots.counts[slots.index(now)]
    if gone:
        klass.line = [entry for entry in klass.line if entry.id not in gone]


def _waits_for_room(planner: Search, klass: PriorityClass, entry: Entry, now: float) -> bool:
    """Will it have a start? Where the first gets a reservation, this is it."""
    if klass.backfill == "none" and planner.only_wants_room(entry):
        return True
    if not planner.place(entry, now):
        return False
    if klass.backfill == "none":
        if entry.start is not None and entry.start > now:
            heappush(planner.wakes, entry.start)  # perhaps nothing else happens then
            klass.hope = (entry.start, entry.resources)
        planner.unplan(entry)
    return True


# ------------------------------------------------------------------ everybody has a planned start


def _compress(
    planner: Search, klass: PriorityClass, freed: list[tuple[float, float]], now: float
) -> Iterator[None]:
    """Each waiting job, in order, is taken out alone and put back at its earliest start.

    Tried are only those for whom something became free since they were tried last.
    """
    slots = planner.slots
    klass.freed = klass.freed + freed  # kept until all had their turn
    if len(klass.freed) > _MANY_SPANS:
        klass.freed = merged(klass.freed, now)
    before = len(klass.freed)
    holes = Holes(slots, now, klass.freed)
    # Without a walltime a job makes way for reservations.
    ways = bool(planner.reserved or planner.closing)
    for number, entry in enumerate(list(klass.line), 1):
        if number % _LOOKED_AT == 0:
            yield
        if entry.state != WAITING:
            continue
        start = entry.start
        since = None
        if start is None:
            if entry.trouble is not None:
                continue
        elif start <= now and planner.awake(entry):
            continue
        elif not (
            # More than what became free decides where these go.
            entry.blamed
            or entry.special
            or entry.home
            or entry.after
            or (ways and not all(option.hard for option in entry.options))
        ):
            since = _may_improve(planner, entry, holes)
            if since is None:
                continue
        _try_again(planner, entry, holes, freed, now, since)
        yield
    del klass.freed[:before]


def _may_improve(planner: Search, entry: Entry, holes: Holes) -> float | None:
    """Could it have an earlier start, or better resources at the same? From when on to look."""
    start, end = entry.start, entry.end
    assert start is not None
    assert end is not None
    place = (start, end, entry.alternative, entry.kind)
    spare = holes.spare.get(place)
    if spare is None:
        since = _from_when(planner, entry, holes, start, end)
        if since is not None:
            return since
        spare = 0
        if not planner.counted and holes.touches(start, end):
            spare = planner.slots.common(start, end) & entry.options[entry.alternative].shape.eligible
        if entry.kind is not None:
            holes.spare[place] = spare
    if spare and entry.options[entry.alternative].shape.ordered:
        spare &= (1 << (entry.resources.bit_length() - 1)) - 1
    return start if spare else None


def _from_when(planner: Search, entry: Entry, holes: Holes, start: float, end: float) -> float | None:
    """From when on to look for an earlier start or end than these; None: there is none."""
    own = entry.resources if planner.counted else entry.resources.bit_count()
    found = inf
    for at, (shape, length, _hard) in enumerate(entry.options):
        # Another alternative is better if it ends first, or at the same time.
        last = start if at == entry.alternative else end - length
        before = start if at == entry.alternative else nextafter(last, inf)
        since = holes.may_improve(shape.least, length, before)
        if since is not None and since < found:
            found = since
        since = holes.near(shape.least, length, (start, end), own, last)
        if since is not None and since < found:
            found = since
    return min(found, start) if found < inf else None


def _try_again(
    planner: Search,
    entry: Entry,
    holes: Holes,
    freed: list[tuple[float, float]],
    now: float,
    since: float | None,
) -> None:
    start, end, resources = entry.start, entry.end, entry.resources
    home, alternative = entry.home, entry.alternative
    inner = planner.planned_inside(entry)
    first_time = entry.id not in planner.was
    mark = len(planner.given)
    planner.unplan(entry)
    planner.place(entry, now, since=since)
    if (
        start is not None
        and end is not None
        and (not home or home in planner.inside)
        and _is_worse(entry, end, resources)
        and planner.not_before(entry, now)[0] <= start
    ):
        # All that is free may be more than a quota allows, or less than before: its old place is as good as ever.
        planner.unplan(entry)
        planner.restore([(entry, start, end, resources, home, alternative)])
    if (entry.start, entry.end, entry.resources, entry.home) == (start, end, resources, home):
        planner.restore(inner)
        del planner.given[mark:]
        if first_time:
            planner.was.pop(entry.id, None)
        return
    follow(planner, entry, now, turn=entry.rank)
    for _entry, begin, until, _resources in planner.given[mark:]:
        freed.append((begin, until))
        holes.add(begin, until)


def _is_worse(entry: Entry, end: float, resources: int) -> bool:
    """Is its new place worse than one with this end and these resources?"""
    if entry.end is None or entry.end > end:
        return True
    greedy = any(option.shape.greedy for option in entry.options)
    return greedy and entry.end == end and entry.resources.bit_count() < resources.bit_count()
