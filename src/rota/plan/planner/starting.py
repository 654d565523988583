"""Jobs begin: all whose planned start has come, besteffort jobs last, in what the others leave."""

from __future__ import annotations

from heapq import heappop

from rota.plan.planner import (
    backfill,
    besteffort,
    overrun,
    passes,
    preemption_notice,
    reservations,
    search,
    suspension,
)
from rota.plan.schedule import waiting_gang
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import RUNNING, WAITING, Begin, PlanEntry


def begin(plan: Plan, now: float) -> list[Begin]:
    """Everything that is planned for now begins. A paused pass that may still move jobs is finished first."""
    if plan.unsettled:
        passes.finish(plan)
    plan.now = now
    found, plan.starting = plan.starting, []
    found += [each for each in plan.late.values() if each.start is not None and each.start <= now]
    plan.late = {}
    while plan.starts and plan.starts[0][0] <= now:
        start, id = heappop(plan.starts)
        entry = plan.entries.get(id)
        if entry is not None and entry.start == start:
            found.append(entry)
    begun = []
    guests = []
    aside = False
    for entry in found:
        if entry.state != WAITING or entry.id in plan.late or entry.start is None or entry.start > now:
            continue
        if entry.fixed and entry.end is not None and entry.end <= now:
            plan.expired.append(entry.id)  # the missing resources did not come back
        elif entry.after or (entry.fixed and not reservations.all_there(plan, entry, now)):
            plan.late[entry.id] = entry  # a parent or a resource is late
        elif not plan.is_awake(entry):
            plan.late[entry.id] = entry  # its hosts are being woken
        elif entry.team is not None and not entry.parts:
            plan.late[entry.id] = entry  # a gang begins whole: what is there does not do for all members
        elif entry.ask.types.besteffort:
            if entry not in guests:
                guests.append(entry)
        else:
            planned = entry.resources
            begun.append(_begin(plan, entry, now))
            aside = aside or entry.resources != planned
    if aside:
        _give_to_others(plan, now)  # before besteffort jobs begin there, only to be ended
    if plan.paused is not None:
        guests = []  # they are planned after all other jobs
    elif plan.besteffort_class.jobs and (
        begun or any(each.start is not None and each.start < now for each in guests)
    ):
        besteffort.replan(plan, now)
        guests = [
            each
            for each in plan.besteffort_class.jobs
            if each.start is not None and each.start <= now and not each.after and plan.is_awake(each)
        ]
    begun += [_begin(plan, entry, now) for entry in guests if entry.start is not None and entry.start <= now]
    for each in begun:
        if each.entry.ask.types.besteffort:
            backfill.follow(plan, each.entry, now)
    if plan.paused is None:
        passes.settle(plan, now, "what it waits for moved")
    return begun


def _give_to_others(plan: Plan, now: float) -> None:
    """Jobs that begin moved aside for besteffort jobs: offer the places that they left to waiting jobs."""
    if plan.paused is not None and plan.paused.gentle:
        plan.given_up = True  # some had their turn: when the pass is through it begins again
        return
    freed = [(start, end) for _entry, start, end, _resources in plan.vacated]
    gentle = all(klass.backfill == "conservative" for klass in plan.classes)
    passes.run(plan, backfill.on_freed(plan, freed, now), now, "what it waits for moved", gentle=gentle)


def _begin(plan: Plan, entry: PlanEntry, now: float) -> Begin:
    besteffort.avoid(plan, entry, now)
    leave(plan, entry)
    victims = besteffort.victims(plan, entry)
    if entry.team is not None:
        members = _split(plan, entry, now)
        return Begin(plan.entries[entry.id], victims, members)
    late = entry.start is not None and entry.start < now
    if late:
        entry.start = now
    run(plan, entry)
    if late and not entry.fixed:
        overrun.begins_late(plan, entry, now)
    return Begin(entry, victims)


def _split(plan: Plan, entry: PlanEntry, now: float) -> tuple[PlanEntry, ...]:
    """The members of a gang run, each with its own resources and end. Returns them in input order."""
    gang = entry.ask.gang
    assert gang is not None
    assert entry.end is not None
    until, parts, whole = entry.end, entry.parts, entry.resources
    plan.drop(entry, since=now)
    plan.forget(entry)
    members = []
    for member, part, alternative in zip(
        gang.members, parts, waiting_gang.chosen(gang, entry.alternative), strict=True
    ):
        each = PlanEntry(member.job, member.ask, entry.submitted)
        each.serial, each.rank, each.gang, each.fixed = entry.serial, entry.rank, entry.id, entry.fixed
        each.state = RUNNING
        search.ready(plan, each)
        each.alternative, each.home, each.resources = alternative, entry.home, part
        begin = entry.ask.at if entry.fixed and entry.ask.at is not None else now
        each.start, each.end = now, min(begin + each.options[alternative].length, until)
        plan.entries[each.id] = each
        if member.ask.types.inner:
            plan.add_inner(each)
        plan.hold(each, since=now if entry.fixed else None)
        run(plan, each)
        members.append(each)
    entry.start = entry.end = None
    if any(each.end != until for each in members):
        plan.vacated.append((entry, now, until, whole))  # it was planned as long as the longest
    for each in members:
        if not entry.fixed:
            overrun.begins_late(plan, each, now)
    return tuple(members)


def next_start(plan: Plan) -> float | None:
    """The earliest planned start of a job that waits."""
    if plan.starting:
        return plan.now
    while plan.starts:
        start, id = plan.starts[0]
        entry = plan.entries.get(id)
        if entry is not None and entry.state == WAITING and entry.start == start and id not in plan.late:
            return start
        heappop(plan.starts)
    return None


def leave(plan: Plan, entry: PlanEntry) -> None:
    """Remove a job from where it waited."""
    if entry.fixed:
        plan.reserved.pop(entry.id, None)
        plan.notified.discard(entry.id)
    elif entry.ask.types.besteffort:
        plan.besteffort_class.discard(entry)
    else:
        plan.class_of(entry.ask).discard(entry)


def run(plan: Plan, entry: PlanEntry) -> None:
    """The job, which holds its resources, runs."""
    entry.state = RUNNING
    entry.reason = None
    plan.running[entry.id] = entry
    if entry.id in plan.suspended:
        suspension.begun(plan, entry)
    if entry.ask.types.besteffort:
        plan.running_besteffort[entry.id] = entry
        if plan.reserved:
            preemption_notice.guest_runs(plan, entry)
    if entry.ask.types.container and entry.id not in plan.inside and not plan.counted:
        plan.open_inside(entry)
    plan.watch_end(entry)
