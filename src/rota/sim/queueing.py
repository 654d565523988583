"""Jobs and gangs enter and leave the queue of a simulation: submitted, queued again, over."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappush
from typing import Final

from msgspec import structs

from rota.core.states import State
from rota.plan.ask import Ask, Member, elsewhere, gang_ask
from rota.plan.explain.gang_conflict import gang_conflict
from rota.plan.reasons import Waits
from rota.plan.schedule.plan_entry import BLOCKED, PlanEntry
from rota.sim import dependencies
from rota.sim.jobs import Parent, narrowed
from rota.sim.run_record import RunRecord, postponed
from rota.sim.run_state import GangRun, RunState

_BLOCKED_GANG: Final = "another member of its gang can never begin: {}"


def submit(state: RunState, record: RunRecord, now: float) -> None:
    """Submit a job once its parents are submitted and none is hopeless; then the jobs that wait for it.

    A gang is submitted when all its members are ready, and a job that waits for a member of a gang when that has
    ended: the plan does not know the members of a gang that waits.
    """
    coming = [record]
    record.state = State.READY
    while coming:  # chains may be long
        record = coming.pop()
        if state.is_known(record):
            continue
        gang = state.gangs.get(record.job.id)
        entered = _enter(state, record, now) if gang is None else _enter_gang(state, gang, now)
        for each in entered:
            children = state.children(each.job.id)
            coming += [child for child in reversed(children) if child.submitted and not state.is_known(child)]


def _missing(state: RunState, record: RunRecord) -> Parent | None:
    """A parent that must be submitted, or must end, before the plan may know this job."""
    for parent in record.job.after:
        other = state.records[parent.id]
        if not state.is_known(other):
            return parent
        unplanned = parent.id in state.gangs or record.job.id in state.gangs
        if unplanned and dependencies.is_open(parent, state.job_state(parent.id)):
            return parent
    return None


def _asked(record: RunRecord) -> Ask:
    """The request to the planner for the next attempt of a job."""
    ask = postponed(record.job.ask, record.not_before)
    if not record.avoid:
        return ask
    where = elsewhere(record.avoid)
    alternatives = (
        structs.replace(one, groups=tuple(narrowed(group, where) for group in one.groups))
        for one in ask.alternatives
    )
    return structs.replace(ask, alternatives=tuple(alternatives))


# -- single jobs


def _enter(state: RunState, record: RunRecord, now: float) -> list[RunRecord]:
    job = record.job
    missing = _missing(state, record)
    if missing is not None:
        record.reason = dependencies.not_yet(missing, submitted=state.records[missing.id].submitted)
        return []
    if (vain := dependencies.hopeless(job, state.job_state)) is not None:
        over(record, State.BLOCKED, dependencies.never(vain))
        return [record]
    if (denied := _denied(state, record)) is not None:
        over(record, State.FAILED, denied)
        return [record]
    open_parents = [parent for parent in job.after if dependencies.is_open(parent, state.records[parent.id].state)]
    entry = state.planner.submit(
        job.id,
        _asked(record),
        now,
        after=[parent.id for parent in open_parents],
        submitted=job.submit,
        serial=record.serial,
    )
    record.serial = entry.serial
    record.reason = entry.reason
    _entered(state, [record], entry)
    return [record]


def _denied(state: RunState, record: RunRecord) -> Waits | None:
    """Why a job may not force its machine; None: it may."""
    host, user = record.job.ask.force_host, record.job.ask.user
    if not host or state.lab.may_use(host, user):
        return None
    return Waits("denied", f"{user} may not force jobs onto {host}")


def _entered(state: RunState, records: list[RunRecord], entry: PlanEntry) -> None:
    """The planner knows these jobs, or has rejected their reservation; some give up if they have not begun."""
    if entry.id not in state.planner.plan.entries:
        message = entry.reason.message if entry.reason is not None else "rejected"
        for record in records:
            over(record, State.FAILED, Waits("reservation", message))
        return
    for record in records:
        ask = record.job.ask
        limits = [ask.types.expire, ask.types.deadline, entry.end if ask.at is not None else None]
        if found := [moment for moment in limits if moment is not None]:
            heappush(state.expiring, (min(found), record.job.id))


# -- gangs


def _enter_gang(state: RunState, run: GangRun, now: float) -> list[RunRecord]:
    """Submit a gang as soon as all its members that are not over are ready."""
    members = [state.records[id] for id in run.gang.members]
    open_members = [member for member in members if member.state is State.READY]
    if not all(member.submitted for member in members):
        return []
    for member in open_members:
        if (missing := _missing(state, member)) is not None:
            reason = dependencies.not_yet(missing, submitted=state.records[missing.id].submitted)
            for each in open_members:
                each.reason = reason
            return []
    for member in open_members:
        if (vain := dependencies.hopeless(member.job, state.job_state)) is not None:
            never = dependencies.never(vain)
            for each in open_members:
                message = never.message if each is member else _BLOCKED_GANG.format(never.message)
                over(each, State.BLOCKED, Waits(never.code, message))
            return open_members
    return _submit_gang(state, run, open_members, now)


def _submit_gang(state: RunState, run: GangRun, members: list[RunRecord], now: float) -> list[RunRecord]:
    """Submit all members at once. A gang that could never be placed fails, unless it may wait for machines."""
    gang, plan = run.gang, state.planner.plan
    asked = [
        Member(each.job.id, _asked(each), role) for each, role in zip(members, run.roles(members), strict=True)
    ]
    if (denied := next(filter(None, (_denied(state, each) for each in members)), None)) is not None:
        for each in members:
            over(each, State.FAILED, denied)
        return members
    first = all(each.attempts == 0 for each in members)
    if first and not gang.allow_unsatisfiable:
        conflict = gang_conflict(plan.site, gang_ask(asked, same=gang.same, share=gang.share))
        if conflict is not None:
            for each in members:
                over(each, State.FAILED, Waits("gang_conflict", conflict.message))
            return members
    submitted, serial = members[0].job.submit, min(each.serial for each in members)
    run.waiting = tuple(each.job.id for each in members)
    entry = state.planner.submit_gang(
        asked, now, same=gang.same, share=gang.share, submitted=submitted, serial=serial
    )
    for each in members:
        each.serial, each.reason = entry.serial, entry.reason
    if entry.id not in plan.entries:
        run.waiting = ()
    _entered(state, members, entry)
    return members


# -- out of the queue


def over(record: RunRecord, become: State, reason: Waits | None, now: float | None = None) -> None:
    """A job has ended, or never begins: record its last state and why."""
    record.state = become
    record.reason = reason
    record.end = now


def leave(state: RunState, record: RunRecord, now: float, *, hold_until: float | None = None) -> None:
    """Remove a finished job from the planner, and update its dependents. `hold_until`: it keeps its machines."""
    complete = record.state is State.COMPLETE
    if complete and state.conditions:
        for child in state.children(record.job.id):
            vain = dependencies.hopeless(child.job, state.job_state)
            if vain is not None and child.state is State.READY and child.job.id in state.planner.plan.entries:
                state.planner.ended(child.job.id, now, complete=False)
                over(child, State.BLOCKED, dependencies.never(vain))
    if hold_until is not None:
        state.planner.hold(record.job.id, hold_until, now, complete=complete)
    else:
        state.planner.ended(record.job.id, now, complete=complete)
    if not complete and state.conditions:
        _revive(state, now)
    wake(state, record, now)


def wake(state: RunState, record: RunRecord, now: float) -> None:
    """Submit the jobs that waited for this one outside the plan."""
    for child in state.children(record.job.id):
        if child.submitted and not state.is_known(child):
            submit(state, child, now)


def _revive(state: RunState, now: float) -> None:
    """Submit jobs again that the planner has blocked although their conditions may still hold."""
    plan = state.planner.plan
    blocked = [state.records[id].job for id, entry in plan.entries.items() if entry.state == BLOCKED]
    found = dependencies.revived(blocked, state.job_state)
    for job in found:
        state.planner.ended(job.id, now, complete=False)
    for job in found:
        if not state.is_known(state.records[job.id]):  # submitting one may submit others
            submit(state, state.records[job.id], now)


def again(state: RunState, records: Sequence[RunRecord], now: float, *, provisioned: bool = False) -> None:
    """Queue a job, or the members of a gang, again. Their dependents wait for the new attempts.

    `provisioned`: what they lost is the time in which their machines were provisioned, which still counts.
    """
    for record in records:
        state.planner.ended(record.job.id, now, again=True)
        record.forget_attempt(provisioned=provisioned)
        record.state = State.READY
    for record in records:
        submit(state, record, now)


def leave_gang(state: RunState, run: GangRun, now: float) -> None:
    """A gang that waits in the plan is over."""
    members = [state.records[id] for id in run.waiting]
    state.planner.ended(run.leader, now, complete=False)
    run.waiting = ()
    for member in members:
        wake(state, member, now)
