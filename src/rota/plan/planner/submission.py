"""Jobs enter the plan: submitted now, or running or reserved since before the plan existed."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappush

from rota.plan.ask import Ask
from rota.plan.planner import (
    backfill,
    ending,
    overrun,
    passes,
    preemption_notice,
    ranking,
    reservations,
    search,
    starting,
)
from rota.plan.reasons import Waits
from rota.plan.schedule.expected_end import new_end
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import NO_JOBS, RUNNING, WAITING, PlanEntry
from rota.plan.timeline.slots import Slots


def submit(
    plan: Plan,
    id: int,
    ask: Ask,
    now: float,
    *,
    after: Iterable[int] = (),
    submitted: float | None = None,
    serial: int = 0,
    session_place: tuple[int, ...] = (),
) -> PlanEntry:
    """A new job: it is planned behind all jobs of better rank, and jobs of worse rank after it.

    `submitted` and `serial` (the order of jobs submitted at one moment) default to those of this call.
    `session_place`: its place in its session of a pipeline, which counts before `serial`.
    """
    passes.finish(plan)
    plan.now = now
    entry = PlanEntry(id, ask, now if submitted is None else submitted)
    entry.serial, entry.session_place = serial, session_place
    search.ready(plan, entry)
    if ask.at is not None and not reservations.may_reserve(plan, entry, now):
        return entry
    plan.entries[id] = entry
    if ask.gang is not None:
        plan.gang_of.update(dict.fromkeys(entry.jobs, id))
    # Jobs without parents share one empty set.
    entry.after = (
        frozenset(parent for parent in after if parent in plan.entries or parent == id or parent in plan.gang_of)
        or NO_JOBS
    )
    for parent in entry.after:
        plan.children.setdefault(parent, []).append(entry)
    if ask.types.inner:
        plan.add_inner(entry)
    entry.rank = ranking.rank_of(plan, entry, now)
    limits = [moment for moment in (ask.types.expire, ask.types.deadline) if moment is not None]
    if limits:
        heappush(plan.expiries, (min(limits), id))
    if ask.types.besteffort:
        plan.besteffort_class.add(entry)
        steps = ranking.refresh(plan, now, submitted=entry) or iter(())
    elif ask.at is not None:
        steps = reservations.reserve(plan, entry, now)
    else:
        if ask.types.postpone is not None and plan.class_of(ask).backfill != "conservative":
            heappush(plan.recheck_times, ask.types.postpone)
        if ask.gang is not None and plan.class_of(ask).backfill != "conservative":
            heappush(plan.recheck_times, entry.submitted + plan.gang_patience_s)
        plan.class_of(ask).add(entry)
        steps = ranking.refresh(plan, now, submitted=entry) or iter(())
    passes.run(plan, steps, now, f"reservation {id}" if entry.fixed else f"job {id} goes first")
    return entry


def adopt(
    plan: Plan,
    id: int,
    ask: Ask,
    *,
    start: float,
    resources: int,
    now: float,
    end: float | None = None,
    gang: int = 0,
) -> PlanEntry:
    """A job that runs already; `end`: until then, if that is not what it asked for. `gang`: it is a member."""
    passes.finish(plan)
    plan.now = now
    start = min(start, now)  # by another clock it may begin later, but it holds its resources now
    entry = PlanEntry(id, ask, start)
    entry.gang = gang
    search.ready(plan, entry)
    plan.entries[id] = entry
    length = entry.options[0].length if entry.options else ask.time_s
    if end is None:
        end = start + length
    if end <= now:
        end = new_end(start, now)
    entry.start, entry.end, entry.resources = start, end, resources
    if ask.types.inner:
        entry.home = _lay_in(plan, entry)
    in_the_way = overrun.in_the_way(plan, entry, now, end)
    for other in in_the_way:
        plan.unplan(other)
    plan.hold(entry, since=now)
    starting.run(plan, entry)
    if in_the_way:
        backfill.again_in_order(plan, in_the_way, now)
    passes.settle(plan, now, f"job {id} runs there")
    return entry


def keep(
    plan: Plan, id: int, ask: Ask, now: float, *, resources: int, alternative: int, submitted: float, serial: int
) -> PlanEntry:
    """A reservation that was granted before this plan existed keeps its time and its resources.

    If its time is over it is not in the plan afterwards, and `reason` says so.
    """
    passes.finish(plan)
    plan.now = now
    assert ask.at is not None
    entry = PlanEntry(id, ask, submitted)
    entry.serial = serial
    search.ready(plan, entry)
    entry.alternative = alternative if alternative < len(entry.options) else 0
    end = ask.at + entry.options[entry.alternative].length
    if end <= now:
        entry.reason = Waits("reservation", "its time was over before it could begin")
        return entry
    plan.entries[id] = entry
    if ask.gang is not None:
        plan.gang_of.update(dict.fromkeys(entry.jobs, id))
    entry.rank = ranking.rank_of(plan, entry, now)
    entry.fixed = True
    entry.start, entry.end, entry.resources = ask.at, end, resources
    in_the_way = overrun.in_the_way(plan, entry, max(ask.at, now), end)
    for other in in_the_way:
        plan.unplan(other)
    plan.hold(entry, since=max(ask.at, now))
    plan.reserved[id] = entry
    preemption_notice.reserved(plan, entry)
    if ask.types.container and not plan.counted:
        plan.inside[id] = Slots.within(resources, ask.at, end)
    plan.schedule_start(entry)
    if in_the_way:
        backfill.again_in_order(plan, in_the_way, now)
    passes.settle(plan, now, f"reservation {id}")
    return entry


def modify(plan: Plan, id: int, ask: Ask, now: float) -> PlanEntry:
    """A waiting job asks for something else: it leaves, and comes again with its old time of submission."""
    old = plan.entries[id]
    after, submitted, serial, place = old.after, old.submitted, old.serial, old.session_place
    ending.ended(plan, id, now, again=True)
    plan.children[id] = [child for child in plan.children.get(id, ()) if child.state == WAITING]
    return submit(plan, id, ask, now, after=after, submitted=submitted, serial=serial, session_place=place)


def _lay_in(plan: Plan, entry: PlanEntry) -> int:
    """The container that an adopted job runs in; 0: it is not in the plan."""
    homes = [each for each in plan.containers(entry.ask.types.inner) if each.id in plan.inside]
    homes.sort(key=lambda each: (bool(entry.resources & ~each.resources), each.state != RUNNING))
    return homes[0].id if homes else 0
