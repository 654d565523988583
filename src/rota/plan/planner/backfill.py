"""Backfilling: strict FCFS, EASY, or conservative.

The rules are in `docs/rules.md`. Shortcuts skip jobs only where a visit would change nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from heapq import heappush
from math import inf, nextafter
from typing import Final

from rota.plan.planner import capped_ranks, patient_gang, search
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import WAITING, PlanEntry, Rank, by_rank
from rota.plan.schedule.priority_class import PriorityClass
from rota.plan.timeline.holes import Holes, merged

#: Passes are iterators, so that they can be paused. A step is one job placed, or so many taken out or looked at.
_TAKEN_OUT: Final = 8
_LOOKED_AT: Final = 16
#: If more spans than this became free, they are merged into fewer and longer ones.
_MANY_SPANS: Final = 64


def below(plan: Plan, klass: PriorityClass, position: int) -> list[PlanEntry]:
    """Waiting jobs from this position in a class on, then those of all lower classes."""
    found = klass.jobs[position:]
    at = plan.classes.index(klass)
    for lower in plan.classes[at + 1 :]:
        found = found + lower.jobs
    return found


def on_submitted(plan: Plan, klass: PriorityClass, entry: PlanEntry, now: float) -> Iterator[None]:
    """A job joined its class: plan it, and then the jobs of worse rank."""
    last = klass.jobs[-1] is entry and not below(plan, klass, len(klass.jobs))
    if last and klass.backfill == "conservative" and not capped_ranks.exist(plan, klass):
        search.place(plan, entry, now)
        follow(plan, entry, now)
        return
    yield from replan_from(plan, klass, bisect_left(klass.jobs, entry.rank, key=by_rank), now)


def on_freed(plan: Plan, freed: list[tuple[float, float]], now: float) -> Iterator[None]:
    """Something became free: let waiting jobs begin earlier, in order."""
    for klass in plan.classes:
        if klass.backfill == "conservative":
            yield from _compress(plan, klass, freed, now)
        else:
            yield from replan_from(plan, klass, 0, now)
            return  # everything below was planned again


def replan(plan: Plan, now: float) -> Iterator[None]:
    """Plan all waiting jobs in order of rank; none is planned yet."""
    for klass in plan.classes:
        klass.freed, klass.head = [], None
    if plan.classes:
        yield from put_back(plan, plan.classes[0], 0, now)


def replan_from(plan: Plan, klass: PriorityClass, position: int, now: float) -> Iterator[None]:
    """Take out all jobs from a position in a class on, and plan them again in order of rank."""
    position = capped_ranks.first_moved(plan, klass, position)
    kept = plan.patient
    planned = [entry for entry in below(plan, klass, position) if entry.start is not None and entry is not kept]
    for number, entry in enumerate(planned, 1):
        plan.unplan(entry)
        if number % _TAKEN_OUT == 0:
            yield
    yield from put_back(plan, klass, position, now)


def put_back(plan: Plan, klass: PriorityClass, position: int, now: float) -> Iterator[None]:
    """Plan all jobs from a position in a class on; they have been taken out."""
    for each in plan.classes[plan.classes.index(klass) :]:
        if each.backfill == "conservative":
            if each is not klass:
                each.freed = []
            ranked = capped_ranks.by_each_rank(plan, each.jobs[position if each is klass else 0 :])
            for at, (entry, within) in enumerate(ranked):
                if entry.state != WAITING:
                    continue
                if entry.start is None:
                    capped_ranks.place_within(plan, entry, now, within)
                elif capped_ranks.by_worse(entry, within) and capped_ranks.end_earlier(plan, entry, now, within):
                    for other, its in capped_ranks.between(ranked, at):
                        if other.start is not None and capped_ranks.end_earlier(plan, other, now, its):
                            follow(plan, other, now, turn=entry.rank)
                else:
                    continue
                follow(plan, entry, now, turn=entry.rank)
                yield
        else:
            _first_only(plan, each, now)


def again(plan: Plan, entry: PlanEntry, now: float, *, turn: Rank | None = None) -> None:
    """Take one waiting job out, if it is planned, and put it back at its earliest start."""
    plan.unplan(entry)
    if plan.plans_all(entry):
        search.place(plan, entry, now)
    follow(plan, entry, now, turn=turn)


def again_in_order(plan: Plan, entries: list[PlanEntry], now: float) -> None:
    """Plan these jobs, which were taken out, in order; then start what fits in the other classes."""
    plan.pending.update(entry.id for entry in entries)
    for entry in entries:
        plan.pending.discard(entry.id)
        again(plan, entry, now)
    first = next((klass for klass in plan.classes if klass.backfill != "conservative"), None)
    if first is not None:
        for _step in replan_from(plan, first, 0, now):
            pass


def follow(plan: Plan, entry: PlanEntry, now: float, *, turn: Rank | None = None) -> None:
    """Move the jobs whose place depends on this one. Jobs of worse rank than `turn` come later in the pass."""
    for child in plan.dependents(entry):
        if child.id in plan.pending or (turn is not None and child.rank > turn):
            continue
        if child.fixed or not plan.plans_all(child):
            continue
        if entry.id in child.after:
            wrong = child.start is None or entry.end is None or child.start < entry.end
        else:
            wrong = _should_lie_in(child, entry)
        if wrong:
            again(plan, child, now, turn=turn)


def _should_lie_in(child: PlanEntry, container: PlanEntry) -> bool:
    """Should it be planned again because of this container, which came, went or moved?"""
    if container.start is None:
        # Neither is planned, so nothing moved. Guard against containers that contain each other.
        return child.start is not None and child.home == container.id
    if child.start is None:
        return child is not container
    return child.home != container.id and child.start > container.start


# ------------------------------------------------------------------ EASY, strict FCFS: only the first is planned


def _first_only(plan: Plan, klass: PriorityClass, now: float) -> None:
    """`none`, `easy` and `easy-sjbf`: start what fits, reserve for the first that does not, let others pass.

    A job that cannot be planned at all blocks no other. When a container begins, jobs before it that wait for a
    container of its name are tried again.
    """
    begun = len(plan.starting)
    _look_once(plan, klass, now)
    while any(_opened_for(entry, klass) for entry in plan.starting[begun:]):
        begun = len(plan.starting)
        _look_once(plan, klass, now)


def _opened_for(entry: PlanEntry, klass: PriorityClass) -> bool:
    """Is this a container that a job of the class waits for?"""
    if not entry.ask.types.container:
        return False
    names = {str(entry.id), entry.ask.name} - {""}
    return any(other.ask.types.inner in names for other in klass.jobs)


def _look_once(plan: Plan, klass: PriorityClass, now: float) -> None:
    klass.freed = []
    if klass.head is not None:
        plan.unplan(klass.head)
        klass.head = None
    klass.prospect = None
    if plan.gang_of:
        patient_gang.reserve(plan, now)
    at_once = nextafter(now, inf)
    head = None
    line, klass.jobs = klass.jobs, []
    ranked = capped_ranks.by_each_rank(plan, line)
    rest: list[tuple[PlanEntry, int]] = []
    gone = set()
    for at, (entry, within) in enumerate(ranked):
        if entry.id in gone:
            continue
        if entry is plan.patient:  # it has its place
            if klass.backfill == "none" and not patient_gang.begins_now(entry, now):
                break
        elif not entry.after and capped_ranks.place_within(plan, entry, now, within, before=at_once):
            plan.starting.append(entry)
            gone.add(entry.id)
        elif klass.backfill == "none" and entry.ranks and within != entry.ranks[-1].within:
            continue  # it may begin in another turn
        elif _waits_for_room(plan, klass, entry, now, within):
            head, rest = entry, ranked[at + 1 :]
            break
    klass.jobs = [entry for entry in line if entry.id not in gone]
    if klass.backfill == "none" or head is None:
        return
    klass.head = head
    slots = plan.slots
    free = slots.counts[slots.index(now)]
    if klass.backfill == "easy-sjbf":
        rest.sort(key=lambda each: each[0].shortest)
    begun = len(gone)
    for entry, within in rest:
        if entry is plan.patient or entry.id in gone:
            continue
        if entry.after or (entry.least > free and not entry.special and not entry.ask.types.inner):
            continue
        if entry is klass.head:
            begins = capped_ranks.end_earlier(plan, entry, now, within, before=at_once)
        else:
            begins = capped_ranks.place_within(plan, entry, now, within, before=at_once)
        if begins:
            plan.starting.append(entry)
            gone.add(entry.id)
            free = slots.counts[slots.index(now)]
    if len(gone) > begun:
        klass.jobs = [entry for entry in klass.jobs if entry.id not in gone]
        if head.id in gone:
            klass.head = None


def _waits_for_room(plan: Plan, klass: PriorityClass, entry: PlanEntry, now: float, within: int) -> bool:
    """Can it start some time? With EASY it keeps that place as its reservation."""
    if klass.backfill == "none" and search.only_wants_room(plan, entry):
        return True
    if not capped_ranks.place_within(plan, entry, now, within):
        return False
    if klass.backfill == "none":
        if entry.start is not None and entry.start > now:
            heappush(plan.recheck_times, entry.start)  # no other event may happen then
            klass.prospect = (entry.start, entry.resources)
        plan.unplan(entry)
    return True


# ------------------------------------------------------------------ conservative: every job has a planned start


def _compress(plan: Plan, klass: PriorityClass, freed: list[tuple[float, float]], now: float) -> Iterator[None]:
    """Take out each waiting job alone, in order of rank, and put it back at its earliest start.

    A job is tried only if something that it could use became free since its last try.
    """
    if not klass.jobs:
        klass.freed = []  # of use to nobody
        return
    slots = plan.slots
    klass.freed = klass.freed + freed  # kept until all jobs had their turn
    if len(klass.freed) > _MANY_SPANS:
        klass.freed = merged(klass.freed, now)
    before = len(klass.freed)
    holes = Holes(slots, now, klass.freed)
    # A job without a walltime makes way for reservations.
    ways = bool(plan.reserved or plan.closing)
    ranked = capped_ranks.by_each_rank(plan, klass.jobs)
    for number, (entry, within) in enumerate(ranked, 1):
        if number % _LOOKED_AT == 0:
            yield
        if entry.state != WAITING:
            continue
        start = entry.start
        since = None
        if start is None:
            if entry.trouble is not None:
                continue
        elif start <= now and plan.is_awake(entry):
            continue
        elif not (
            # For these, more than free resources decides.
            entry.blamed
            or entry.special
            or entry.home
            or entry.after
            or entry.ranks
            or (ways and not all(option.hard for option in entry.options))
        ):
            since = _may_improve(plan, entry, holes)
            if since is None:
                continue
        moved = _try_again(plan, entry, holes, freed, now, since, within)
        if moved and capped_ranks.by_worse(entry, within):
            for other, its in capped_ranks.between(ranked, number - 1):
                if other.state == WAITING and other.start is not None and other.start > now:
                    _try_again(plan, other, holes, freed, now, None, its)
        yield
    del klass.freed[:before]


def _may_improve(plan: Plan, entry: PlanEntry, holes: Holes) -> float | None:
    """From when on to search for an earlier start, or for better resources at the same; None: there is neither."""
    start, end = entry.start, entry.end
    assert start is not None
    assert end is not None
    place = (start, end, entry.alternative, entry.options)
    spare = holes.spare.get(place)
    if spare is None:
        since = _from_when(plan, entry, holes, start, end)
        if since is not None:
            return since
        spare = 0
        if not plan.counted and holes.touches(start, end):
            spare = plan.slots.common(start, end) & entry.options[entry.alternative].shape.eligible
        if entry.even:  # otherwise equal jobs may have different numbers of resources
            holes.spare[place] = spare
    if spare and entry.options[entry.alternative].shape.ordered:
        spare &= (1 << (entry.resources.bit_length() - 1)) - 1
    return start if spare else None


def _from_when(plan: Plan, entry: PlanEntry, holes: Holes, start: float, end: float) -> float | None:
    """From when on to search for an earlier start or end than these; None: there is none."""
    own = entry.resources if plan.counted else entry.resources.bit_count()
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
    plan: Plan,
    entry: PlanEntry,
    holes: Holes,
    freed: list[tuple[float, float]],
    now: float,
    since: float | None,
    within: int,
) -> bool:
    """Take a job out and put it back. True: it has another place."""
    start, end, resources = entry.start, entry.end, entry.resources
    home, alternative = entry.home, entry.alternative
    inner = plan.planned_inside(entry)
    first_time = entry.id not in plan.promised
    mark = len(plan.vacated)
    plan.unplan(entry)
    capped_ranks.place_within(plan, entry, now, within, since=since)
    if (
        start is not None
        and end is not None
        and (not home or home in plan.inside)
        and _is_worse(entry, end, resources)
        and search.not_before(plan, entry, now)[0] <= start
    ):
        # A greedy job may now get more than a quota allows, or less than before: its old place is still as good.
        plan.unplan(entry)
        plan.restore([(entry, start, end, resources, home, alternative)])
    if (entry.start, entry.end, entry.resources, entry.home) == (start, end, resources, home):
        plan.restore(inner)
        del plan.vacated[mark:]
        if first_time:
            plan.promised.pop(entry.id, None)
        return False
    follow(plan, entry, now, turn=entry.rank)
    for _entry, begin, until, _resources in plan.vacated[mark:]:
        freed.append((begin, until))
        holes.add(begin, until)
    return True


def _is_worse(entry: PlanEntry, end: float, resources: int) -> bool:
    """Is its new place worse than one with this end and these resources?"""
    if entry.end is None or entry.end > end:
        return True
    greedy = any(option.shape.greedy for option in entry.options)
    return greedy and entry.end == end and entry.resources.bit_count() < resources.bit_count()
