"""The attempts of a simulation: start, provisioning, execution, end and hold."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop

from rota.core.gangs.member_failure import Others, after_failure
from rota.core.jobs.fate import Fate, fate
from rota.core.jobs.retry import delay_s, is_retried
from rota.core.machines import provisioning
from rota.core.machines.hold_rules import hold_s
from rota.core.machines.machine_states import Usage
from rota.core.states import State
from rota.plan.placement.given import Provision
from rota.plan.reasons import Waits
from rota.plan.schedule.plan_entry import PlanEntry
from rota.sim.faults import judge
from rota.sim.queueing import again, leave, leave_gang, over, wake
from rota.sim.run_record import RunRecord, gave_up
from rota.sim.run_state import RunState, Step

# -- attempts begin


def begin_all(state: RunState, now: float) -> None:
    """Begin everything that is planned for now."""
    while begun := state.planner.begin(now):
        for each in begun:
            for victim in each.victims:
                preempt(state, state.records[victim], now)
            begin(state, each.entries, now)


def begin(state: RunState, entries: Sequence[PlanEntry], now: float) -> None:
    """Begin one job, or all members of a gang. They execute when the machines of the last one are ready."""
    records = [state.records[entry.id] for entry in entries]
    gang = state.gangs.get(records[0].job.id)
    if gang is not None:
        gang.waiting = ()
    for record, entry in zip(records, entries, strict=True):
        _take(state, record, entry, now)
    ready = max(now + record.job.terms.provision_s for record in records)
    for record in records:
        if record.provisions:
            state.expect(record, Step.INSTALLED, now + record.job.terms.provision_s)
        if ready > now:
            state.expect(record, Step.PROVISIONED, ready)
        else:
            execute(state, record, now)


def _take(state: RunState, record: RunRecord, entry: PlanEntry, now: float) -> None:
    """An attempt gets its machines."""
    record.state = State.RUNNING
    record.reason = None
    record.attempts += 1
    record.alternative = entry.alternative
    place(state, record, now, entry.resources)
    if record.job.terms.provision_s:
        asked = (Provision(host, now, 0, here=True) for host in record.hosts)
        record.provisions = tuple(provisioning.begin(each, now) for each in asked)
    usage = Usage.INSTALLING if record.provisions else Usage.SCHEDULED
    state.usage.job(record.job.id, record.hosts, usage, now)


def place(state: RunState, record: RunRecord, start: float, resources: int) -> None:
    """These are its resources from `start` on, or from before if it loses others in provisioning this instant."""
    site = state.planner.plan.site
    record.start = start if record.lost is None or record.lost[1] != start else record.lost[0]
    record.lost = None
    record.taken = start
    record.resources, record.hosts = site.spans(resources), tuple(site.hosts_of(resources))
    record.width = resources.bit_count()


def resources_of(state: RunState, record: RunRecord, entry: PlanEntry) -> int:
    """The resources that are planned for a job, alone or in its gang."""
    if record.job.id in entry.jobs and entry.parts:
        return entry.parts[entry.jobs.index(record.job.id)]
    return entry.resources


# -- provisioning


def installed(state: RunState, record: RunRecord, now: float) -> None:
    """The provisioning of a job's machines is over."""
    failing = record.job.terms.provision_fails
    record.provisions = tuple(
        provisioning.fail(each, now) if each.host in failing else provisioning.accept(each, now)
        for each in record.provisions
    )
    bad = [each.host for each in record.provisions if each.phase == provisioning.FAILED]
    if bad:
        _provision_failed(state, record, bad, now)
    else:
        state.usage.job(record.job.id, record.hosts, Usage.SCHEDULED, now)


def _provision_failed(state: RunState, record: RunRecord, bad: list[str], now: float) -> None:
    """Release all machines of the job, or of its gang; if it has retries left, try others at once."""
    failed = Waits("provision", f"{' and '.join(bad)} could not be provisioned")
    judge(state, record, bad, failed.code, now)
    retried = _may_retry(record, "provision")
    record.failures += 1
    members = [record, *(each for each in state.fellows(record) if each.state is State.RUNNING)]
    for each in members:
        vacate(state, each, now)
        each.avoid = tuple(dict.fromkeys((*each.avoid, *bad)))
        if retried:
            assert each.start is not None
            each.lost = (each.start, now)
    if retried:
        again(state, members, now, provisioned=True)
        return
    for each in members:
        over(each, State.FAILED, failed if each is record else _because_of(record), now)
    for each in members:
        leave(state, each, now)


def removed(state: RunState, host: str, now: float) -> None:
    """A machine was removed: provisioning there has failed."""
    for record in list(state.records.values()):
        going = any(each.phase not in (provisioning.DONE, provisioning.FAILED) for each in record.provisions)
        if record.state is State.RUNNING and going and host in record.hosts:
            _provision_failed(state, record, [host], now)


# -- execution


def execute(state: RunState, record: RunRecord, now: float) -> None:
    """Execute a job for as long as the trace says, at most for its walltime."""
    ask = record.job.ask
    record.executing = now
    record.provision_s += now - record.taken
    limit = ask.alternatives[record.alternative].walltime_s
    length = record.job.run_s
    if length is None:
        length = ask.time_s if limit is None else limit
    record.cut = False
    if limit is not None:
        # A reservation ends on time even if it began late.
        limit = limit if ask.at is None else min(limit, ask.at + ask.before_s + limit - now)
        record.cut = length > limit
        length = min(length, limit)
    state.usage.job(record.job.id, record.hosts, Usage.RUNNING, now)
    state.expect(record, Step.EXECUTED, now + length)


# -- ends


def end_all(state: RunState, now: float) -> None:
    """End all steps that are due, in the order of the attempts' starts."""
    while state.coming and state.coming[0].moment <= now:
        coming = heappop(state.coming)
        record = state.records[coming.id]
        if record.attempts != coming.attempt:
            continue
        if coming.step is Step.RELEASED and record.holding:
            release(state, record, now)
        elif record.state is not State.RUNNING:
            continue
        elif coming.step is Step.INSTALLED:
            installed(state, record, now)
        elif coming.step is Step.PROVISIONED:
            execute(state, record, now)
        elif coming.step is Step.EXECUTED:
            end(state, record, now)


def end(state: RunState, record: RunRecord, now: float) -> None:
    """An attempt ended by itself, or reached its walltime."""
    if record.job.ask.types.container:
        _end_inner(state, record, now)
    conclude(state, record, _failure(record), now)


def _failure(record: RunRecord) -> Waits | None:
    """Why an attempt fails that ends now."""
    if record.cut:
        return Waits("walltime", "it was still running at the end of its walltime")
    code = record.exits[0]
    return Waits("exit", f"exit {code}") if code else None


def conclude(
    state: RunState, record: RunRecord, failed: Waits | None, now: float, *, vacated: bool = False
) -> None:
    """Conclude an attempt; it failed if there is a reason. The engine's rule decides the fate of the job."""
    become = _fate(record, failed, now, vacated=vacated)
    judge(state, record, record.hosts, failed.code if failed is not None else "", now)
    final = {Fate.COMPLETE: State.COMPLETE, Fate.CANCELLED: State.CANCELLED}.get(become, State.FAILED)
    if record.job.id in state.gangs and failed is not None and become is not Fate.COMPLETE:
        _member_failed(state, record, become, failed, now)
        return
    vacate(state, record, now)
    if become is Fate.AGAIN:
        if not vacated:
            record.exits = record.exits[1:] or (0,)  # the next attempt does not ask again
        again(state, [record], now)
        return
    if become is Fate.FAILED and failed is not None and _is_retried(record, failed.code, now):
        record.exits = record.exits[1:] or record.exits
        again(state, [record], now)
        return
    over(record, final, None if become is Fate.COMPLETE else failed, now)
    settle(state, record, now)


def _fate(record: RunRecord, failed: Waits | None, now: float, *, vacated: bool = False) -> Fate:
    types = record.job.ask.types
    return fate(
        code=failed.code if failed is not None else "",
        exit_code=record.exits[0],
        ran_s=None if record.executing is None else now - record.executing,
        idempotent=types.idempotent,
        done_at_walltime=types.done_at_walltime,
        vacated=vacated,
    )


def _member_failed(state: RunState, record: RunRecord, become: Fate, failed: Waits, now: float) -> None:
    """A gang member failed. The engine's rule decides what follows for the others."""
    run = state.gangs[record.job.id]
    ending = {each.id for each in state.coming if each.moment <= now and each.step is Step.EXECUTED}
    running = [each for each in state.fellows(record) if each.state is State.RUNNING]
    others = [each for each in running if each.job.id not in ending]
    failing = {
        each.job.id: (each, why.code)
        for each in running
        if each.job.id in ending and (why := _failure(each)) and _fate(each, why, now) is Fate.FAILED
    }
    members = [record, *others]
    if become in (Fate.AGAIN, Fate.VACATED):
        verdict = Others.AGAIN if become is Fate.AGAIN else Others.END
    else:
        verdict = after_failure(
            run.gang.on_failure,
            retried=become is Fate.FAILED
            and _may_retry(record, failed.code)
            and not any(each.state in (State.FAILED, State.CANCELLED) for each in state.fellows(record)),
            retries_left=[
                *(each.job.retries - each.failures for each in others),
                *(int(_may_retry(each, code)) for each, code in failing.values()),
            ],
        )
        if verdict is Others.AGAIN:
            for each, code in failing.values():
                _failed_too(state, each, code, now)
                members.append(each)
    if verdict is Others.KEEP:
        members = [record]
    for each in members:
        vacate(state, each, now)
    if verdict is Others.AGAIN:
        for each in members:
            each.failures += become is not Fate.AGAIN
        record.exits = record.exits[1:] or (0 if become is Fate.AGAIN else record.exits[0],)
        if become is not Fate.AGAIN:
            record.not_before = now + delay_s(record.job.backoff_s, record.failures, lambda: 0.0)
        again(state, members, now)
        return
    for each in members:
        cancelled = each is record and become is Fate.CANCELLED
        reason = failed if each is record or become is Fate.VACATED else _because_of(record)
        over(each, State.CANCELLED if cancelled else State.FAILED, reason, now)
    for each in members:
        settle(state, each, now)


def _failed_too(state: RunState, record: RunRecord, code: str, now: float) -> None:
    """Another member fails at the same moment, and all are tried again."""
    judge(state, record, record.hosts, code, now)
    record.exits = record.exits[1:] or record.exits
    record.not_before = now + delay_s(record.job.backoff_s, record.failures + 1, lambda: 0.0)


def _because_of(record: RunRecord) -> Waits:
    """Why the other members of a gang end."""
    return Waits("gang", f"job {record.job.id} of its gang did not end well")


def settle(state: RunState, record: RunRecord, now: float) -> None:
    """A job that had machines is over: it leaves the plan, or keeps them for a time first."""
    terms = record.job.terms
    code = record.reason.code if record.reason is not None else ""
    record.hold_s = hold_s(terms.reserve, terms.reserve_s, code=code, cancelled=record.state is State.CANCELLED)
    if not record.hold_s:
        leave(state, record, now)
        return
    record.holding = True
    state.usage.job(record.job.id, record.hosts, Usage.RUNNING, now)
    state.expect(record, Step.RELEASED, now + record.hold_s)
    leave(state, record, now, hold_until=now + record.hold_s)


def release(state: RunState, record: RunRecord, now: float) -> None:
    """The hold of a job is over."""
    record.holding = False
    vacate(state, record, now)
    state.planner.ended(record.job.id, now)


def vacate(state: RunState, record: RunRecord, now: float) -> None:
    """A job leaves its machines."""
    state.usage.job(record.job.id, record.hosts, None, now)
    if record.state is State.RUNNING and record.executing is None:
        record.provision_s += now - record.taken


def _may_retry(record: RunRecord, code: str) -> bool:
    """Has it retries left for an attempt that ended for this reason, and is not counted yet?"""
    job = record.job
    return is_retried(code=code, failures=record.failures + 1, retries=job.retries, retry_on=job.retry_on)


def _is_retried(record: RunRecord, code: str, now: float) -> bool:
    """Does another attempt follow? If so, it is not before a delay, which has no random part here."""
    job = record.job
    retried = _may_retry(record, code)
    record.failures += 1
    if not retried:
        return False
    due = now + delay_s(job.backoff_s, record.failures, lambda: 0.0)
    if job.ask.at is not None and due >= job.ask.at + (job.ask.alternatives[0].walltime_s or job.ask.time_s):
        return False  # its reserved time would be over
    record.not_before = due
    return True


def _end_inner(state: RunState, container: RunRecord, now: float) -> None:
    """End the inner jobs of a container that has ended."""
    names = {str(container.job.id), container.job.ask.name} - {""}
    ending = {each.id for each in state.coming if each.moment <= now and each.step is Step.EXECUTED}
    for record in state.records.values():
        if (
            record.state is State.RUNNING
            and record.job.ask.types.inner in names
            and _lies_in(state, record, container)
        ):
            if record.job.id in ending:
                end(state, record, now)
            else:
                conclude(state, record, Waits("container", "its container ended"), now, vacated=True)


def _lies_in(state: RunState, record: RunRecord, container: RunRecord) -> bool:
    """Does the job run in this container? Several containers may have the same name."""
    entry = state.planner.plan.entries.get(record.job.id)
    return entry is not None and entry.home == container.job.id


# -- ended by others


def preempt(state: RunState, record: RunRecord, now: float) -> None:
    """A besteffort job is preempted."""
    if record.holding:
        release(state, record, now)
        record.hold_s = now - (record.end or now)
    if record.state is not State.RUNNING:
        return  # ended by another job that starts now
    wanted = Waits("preempted", "a job that is not besteffort wanted its resources")
    conclude(state, record, wanted, now, vacated=True)


def cancel(state: RunState, record: RunRecord, now: float) -> None:
    """Cancel a job, as its user would."""
    reason = Waits("kill_requested", "cancelled")
    if record.state is State.RUNNING:
        conclude(state, record, reason, now)
        return
    waiting = (State.READY, State.BLOCKED)
    if state.job_state(record.job.id) not in waiting:
        return
    _drop(state, record, State.CANCELLED, reason, now)


def _drop(state: RunState, record: RunRecord, become: State, reason: Waits, now: float) -> None:
    """Drop a waiting job, and with it its gang."""
    gang = state.gangs.get(record.job.id)
    members = [record, *state.fellows(record)]
    members = [each for each in members if each.state in (State.READY, State.BLOCKED)]
    planned = [each for each in members if state.is_planned(each)]
    for each in members:
        over(each, become, reason)
    if gang is not None and gang.waiting:
        leave_gang(state, gang, now)
        return
    for each in planned:
        leave(state, each, now)
    for each in members:
        wake(state, each, now)


def expire_all(state: RunState, now: float) -> None:
    """End the jobs that expired before they started. Other jobs may use what they leave at once."""
    while state.expiring and state.expiring[0][0] <= now:
        record = state.records[heappop(state.expiring)[1]]
        if record.state is State.READY and state.is_planned(record):
            _drop(state, record, State.FAILED, gave_up(record.job), now)
            begin_all(state, now)
