"""Provisioning as a feature: the first preparation of a lease.

Meanwhile machines may be silent or restart, and return with other agents.
"""

from __future__ import annotations

import msgspec

from rota.core.attempts.attempt import void_attempt
from rota.core.attempts.leases import Finished, HeldLease, LeaseRef, Started
from rota.core.attempts.parts import lease_of
from rota.core.attempts.seats import close_seat, count_unseated, take_lease, take_seat
from rota.core.attempts.suspension import change_grant
from rota.core.effects import SendReply
from rota.core.events import RunnerJoined
from rota.core.feature import Feature
from rota.core.jobs.job import Job, Lease, Reason
from rota.core.jobs.outcome import Outcome
from rota.core.machines import provisioning
from rota.core.machines.machine_now import condition_of
from rota.core.machines.machine_states import Condition, Usage
from rota.core.machines.machine_use import set_phase
from rota.core.machines.provision_records import (
    PROVISION,
    BeginProvision,
    KeepProvisionOutput,
    NodeReady,
    ProvisionBegan,
    ProvisionEnded,
    Provisions,
    RunProvision,
    StoredProvisioning,
    TicketMade,
)
from rota.core.machines.provision_steps import (
    STORED,
    all_ready,
    ask,
    ask_anew,
    away_deploy_host,
    begin_provisioning,
    change,
    command_for,
    deployer,
    fail_provisioning,
    is_awaited,
    is_wanted,
    keep_hosts,
    provisions_of,
    say_why,
    stop_provisioning,
    take_ticket,
)
from rota.core.machines.provisioning import DONE, WAITING
from rota.core.machines.runners import retire_idle
from rota.core.restart import Restart
from rota.core.site.plan_facts import inform
from rota.core.states import State
from rota.core.turn import NO_JOB_ID, Turn
from rota.core.world import Preparation, Runner, World, move
from rota.errors import BadInput, Denied
from rota.plan.placement.decisions import Opened
from rota.plan.placement.given import Provision


def _found(world: World, job_id: int, attempt: int, token: int) -> tuple[Job, Provision] | None:
    """The job and the machine that a report names, if that is being made ready."""
    state = world.find(Provisions)
    if state is None or job_id not in state.jobs:
        return None
    job = world.jobs[job_id]
    for each in provisions_of(job):
        if job.attempt == attempt and each.token == token and not provisioning.is_over(each):
            return job, each
    return None


def on_provision_began(world: World, turn: Turn, event: ProvisionBegan) -> None:
    """A command on the manager's host has its turn."""
    if (found := _found(world, event.job, event.attempt, event.token)) is not None:
        job, each = found
        change(world, turn, job, each, provisioning.begin(each, turn.wall, ticket=event.ticket))
        turn.effects.append(BeginProvision(event.job, event.attempt, event.host, event.token))


def on_ticket_made(world: World, turn: Turn, event: TicketMade) -> None:
    """A command for the deploy host can be sent."""
    if (found := _found(world, event.job, event.attempt, event.token)) is not None:
        take_ticket(world, turn, *found, event.ticket)


def on_provision_ended(world: World, turn: Turn, event: ProvisionEnded) -> None:
    """A command on the manager's host has ended. Ignored if that is about an attempt that is over."""
    found = _found(world, event.job, event.attempt, event.token)
    if found is None:
        return
    job, each = found
    if event.wrong:
        fail_provisioning(world, turn, job, each.host, f"{each.host} could not be provisioned: {event.wrong}")
    else:
        change(world, turn, job, each, _settled(world, provisioning.accept(each, turn.wall), turn))


def on_node_ready(world: World, turn: Turn, event: NodeReady) -> None:
    """Let a machine back in, with another machine id if it has one. Raises `Denied` or `BadInput`."""
    state = world.find(Provisions)
    there = [
        (world.jobs[id], each)
        for id in sorted(state.jobs if state is not None else ())
        for each in provisions_of(world.jobs[id])
        if not provisioning.is_over(each)
        and (each.ticket == event.ticket if event.ticket else each.host == event.host)
    ]
    if not there and event.ticket:
        raise Denied("this ticket is not accepted", hint="it is for one use, while the machine is provisioned")
    if not there:
        raise BadInput(f"node '{event.host}' is not being provisioned", hint="see what it does: rota node show")
    job, each = there[0]
    accept_machine(world, turn, each.host)
    turn.note(job.id, job.attempt, PROVISION, f"{each.host} says that it is ready")
    change(world, turn, job, each, _settled(world, provisioning.say_ready(each), turn))
    if event.by is not None:
        turn.effects.append(SendReply(event.by, each.host))


def accept_machine(world: World, turn: Turn, host: str) -> None:
    """The machine that joins next under this name may be another one, or the same one installed anew."""
    known = world.site["node"].get(host)
    if known and known.get("machine"):
        record = {name: value for name, value in known.items() if name != "machine"}
        world.site["node"] = {**world.site["node"], host: record}
        world.site_version += 1
        turn.changes.site["node", host] = msgspec.json.encode(record).decode()
        turn.note(NO_JOB_ID, 0, "node", f"{host} may come back as another machine")


def _settled(world: World, each: Provision, turn: Turn) -> Provision:
    """Provisioning is over if the agent of the machine is connected."""
    runner = world.runners.get(world.runner_at.get(each.host, ""))
    return provisioning.settle(each, turn.wall, answers=runner is not None and runner.connected)


def _take_reports(
    world: World,
    turn: Turn,
    runner: Runner,
    started: list[Started],
    ended: list[Finished],
    returned: list[LeaseRef],
) -> None:
    """Reports of an agent about the command that makes a machine ready: its own, or one for the deploy host."""
    for start in started:
        if (found := _found(world, start.job, start.attempt, start.token)) is not None:
            job, each = found
            change(world, turn, job, each, provisioning.begin(each, turn.wall, ticket=each.ticket))
    for end in ended:
        _keep_output(world, turn, end)
        if (found := _found(world, end.job, end.attempt, end.token)) is None:
            continue
        job, each = found
        if each.here:
            turn.effects.append(KeepProvisionOutput(job.id, job.attempt, each.host, end.outcome))
        if each.via and end.outcome.reason == "lost":
            ask_anew(world, turn, job, each)
        elif wrong := _wrong(end.outcome):
            why = f"{each.host} could not be provisioned: {wrong}"
            # The death of its agent says nothing about the machine.
            fail_provisioning(world, turn, job, each.host, why, avoid=end.outcome.reason != "lost")
        else:
            change(world, turn, job, each, _settled(world, provisioning.accept(each, turn.wall), turn))
    for ref in returned:
        if (found := _found(world, ref.job, ref.attempt, ref.token)) is None:
            continue
        job, each = found
        if each.via:
            ask_anew(world, turn, job, each, at_once=False)  # `_check` does: it may be leaving
        else:
            void_attempt(world, turn, job, f"{runner.host} could not begin to provision itself")


def _keep_output(world: World, turn: Turn, end: Finished) -> None:
    """Keep what the command of a deploy host has printed. Its machine may have been ready before it ended."""
    job, attempt, host = world.use(Provisions).errands.pop(end.token, (0, 0, ""))
    if (job, attempt) == (end.job, end.attempt):
        turn.effects.append(KeepProvisionOutput(job, attempt, host, end.outcome))


def _wrong(outcome: Outcome) -> str:
    """The failure of a command in words; empty: it succeeded."""
    if outcome.reason:
        return outcome.message or outcome.reason
    if outcome.signal is not None:
        return f"signal {outcome.signal}"
    return f"exit {outcome.exit_code}" if outcome.exit_code else ""


def _keeps_lease(world: World, _runner: Runner, held: HeldLease) -> bool:
    return _found(world, held.job, held.attempt, held.token) is not None


def _machine_joined(world: World, turn: Turn, runner: Runner, event: RunnerJoined) -> None:
    """The agent of a machine that is being made ready has joined: the same, or another one."""
    state = world.use(Provisions)
    for id in sorted(state.jobs):
        job = world.jobs[id]
        for each in provisions_of(job):
            if each.via == event.host and not provisioning.is_over(each):
                _deployer_joined(world, turn, job, each, event)
        for each in provisions_of(job):
            if each.host == event.host and not provisioning.is_over(each):
                _joined(world, turn, job, each, runner, event)
                break


def _deployer_joined(world: World, turn: Turn, job: Job, each: Provision, event: RunnerJoined) -> None:
    """The agent of the deploy host has joined. It runs a command again that it does not know, unless that has
    succeeded."""
    lease = (job.id, job.attempt, each.token)
    held = next((one for one in event.held if (one.job, one.attempt, one.token) == lease), None)
    if held is not None:
        if held.started_at is not None:
            change(world, turn, job, each, provisioning.begin(each, turn.wall, ticket=each.ticket))
    elif not each.accepted:
        ask_anew(world, turn, job, each)


def _joined(world: World, turn: Turn, job: Job, each: Provision, runner: Runner, event: RunnerJoined) -> None:
    lease = lease_of(job)
    first = world.runners[lease.runner].host == event.host
    other = (each.boot_id, each.pid) != (event.boot_id, event.pid)
    if first and lease.runner != runner.id and not _move_lease(world, turn, job, runner):
        void_attempt(world, turn, job, f"{event.host} came back smaller than it was")
        return
    held = any((one.job, one.attempt, one.token) == (job.id, job.attempt, each.token) for one in event.held)
    if not each.here:
        new = provisioning.come_back(each, boot_id=event.boot_id, now=turn.wall) if other else each
        change(world, turn, job, each, _settled(world, new, turn))
    elif held:
        change(world, turn, job, each, provisioning.begin(each, turn.wall))
    elif each.phase == WAITING:
        ask(world, turn, job, each)  # it has not received it
    else:
        new = provisioning.come_back(each, boot_id=event.boot_id, now=turn.wall)
        if new == each:
            void_attempt(world, turn, job, f"the agent of {event.host} was ended while it provisioned itself")
        else:
            change(world, turn, job, each, new)


def _move_lease(world: World, turn: Turn, job: Job, runner: Runner) -> bool:
    """Give a withheld lease, with a seat of its own, to another runner of the same host. False: it has no room."""
    lease = lease_of(job)
    assert lease.withheld is not None
    old = world.runners[lease.runner]
    close_seat(world, old, lease.withheld.seat)
    seat = world.placement.seat(runner.host, job.size, turn.mono, kept=True)
    if seat is None:
        lease.withheld = None
        return False
    old.leases.discard(job.id)
    count_unseated(old, job.size, -1)
    take_lease(runner, job)
    take_seat(runner, seat.seat, seat.size)
    lease.runner, lease.withheld = runner.id, seat
    change_grant(world, turn, job, runner=runner.id)
    retire_idle(world, old)
    return True


# ------------------------------------------------------------------ time


def _check(world: World, turn: Turn) -> None:
    """Fail what takes too long or is gone, and go on with what had to wait because nothing might start."""
    state = world.use(Provisions)
    for id in sorted(state.jobs):
        job = world.jobs[id]
        if any(each.via for each in provisions_of(job)):
            _ask_deployers(world, turn, job)
        gone = [each.host for each in provisions_of(job) if condition_of(world, each.host) is Condition.REMOVED]
        if gone:
            _removed(world, turn, gone[0])
            continue
        late = next(
            ((each, why) for each in provisions_of(job)
             if (why := provisioning.lateness(each, turn.wall, state.limits))), None
        )  # fmt: skip
        if late is not None:
            # Where a deploy host is away or does not begin, that says nothing about the machine.
            by_deployer = late[0].via and (late[0].phase == WAITING or deployer(world, late[0]) is None)
            away = away_deploy_host(world, (late[0],))
            why = f"{late[1]}: the deploy host {away} has no living agent" if away else late[1]
            fail_provisioning(world, turn, job, late[0].host, why, avoid=not by_deployer)
        elif all(each.phase == DONE for each in provisions_of(job)):
            all_ready(world, turn, job)


def _ask_deployers(world: World, turn: Turn, job: Job) -> None:
    """Have commands run by a deploy host that was away, or gave them back."""
    say_why(world, job)
    for each in provisions_of(job):
        waits = each.via and not each.ticket and not each.accepted and not provisioning.is_over(each)
        if waits and each.token not in world.use(Provisions).asked:
            ask(world, turn, job, each)


def _removed(world: World, turn: Turn, host: str) -> None:
    """A machine is removed while it is provisioned: its job may be tried elsewhere."""
    for id in sorted(world.use(Provisions).jobs):
        job = world.jobs[id]
        if any(each.host == host for each in provisions_of(job)):
            fail_provisioning(world, turn, job, host, f"{host} was removed while it was being provisioned")


def _follow_clock(world: World, turn: Turn, by: float) -> None:
    """The wall clock was set: nothing takes longer because of that."""
    for id in sorted(world.use(Provisions).jobs):
        job = world.jobs[id]
        change_grant(world, turn, job, provisions=tuple(_moved(each, by) for each in provisions_of(job)))


def _moved(each: Provision, by: float) -> Provision:
    later = {name: at + by for name in ("began_at", "ended_at") if (at := getattr(each, name)) is not None}
    return msgspec.structs.replace(each, asked_at=each.asked_at + by, **later)


def _next_due(world: World) -> float | None:
    state = world.use(Provisions)
    times = (
        provisioning.due_at(each, state.limits) for id in state.jobs for each in provisions_of(world.jobs[id])
    )
    return min((at for at in times if at is not None), default=None)


def _started(world: World, turn: Turn, job: Job) -> None:
    """Its execution begins: plan its end after its walltime and the hold that follows."""
    lease = job.lease
    if lease is None or lease.given is None or not lease.given.provisions or lease.started_at is None:
        return
    if world.placement.planner is None:
        return
    spec = job.spec
    length = lease.given.walltime_s or job.size.time_s
    after_s = spec.reserve_for_s or 0.0 if spec.reserve == "always" else 0.0
    inform(world, turn.wall)
    world.placement.move_end(job.id, lease.started_at + length + after_s, turn.wall, force=True)


# ------------------------------------------------------------------ across a restart


def _restore(world: World, restart: Restart) -> None:
    """Load the machines that jobs avoid, and how long provisioning takes."""
    text = restart.snapshot.meta.get(STORED)
    if not text:
        return
    kept = msgspec.json.decode(text, type=StoredProvisioning)
    state = world.use(Provisions)
    for what, seen in kept.took.items():
        for seconds in seen:
            state.learn(what, seconds)
    state.spent = kept.spent
    for id, hosts in kept.avoid.items():
        if (job := world.jobs.get(id)) is not None:
            job.avoid = hosts
            state.avoiding.add(id)
    world.placement.provision_s = state.lengths


def _restore_leases(world: World, _restart: Restart) -> None:
    """Go on with machines that were being made ready: their leases are withheld as before."""
    for runner in list(world.runners.values()):
        for id in sorted(runner.leases):
            job = world.jobs[id]
            lease = job.lease
            if lease is not None and lease.started_at is None and _goes_on(provisions_of(job)):
                _withhold(world, runner, job, lease)


def _goes_on(made: tuple[Provision, ...]) -> bool:
    return any(not provisioning.is_over(each) for each in made)


def _withhold(world: World, runner: Runner, job: Job, lease: Lease) -> None:
    if job.kill or job.preempted:
        return  # it ends, as soon as its runner says that it does not have it
    lease.withheld = Opened(-job.id, runner.host, job.size)
    lease.preparing, lease.stays = PROVISION, True
    if job.state is not State.STARTING:
        move(world, job, State.STARTING)
    phase = provisioning.phase_of(provisions_of(job))
    job.reason = Reason(PROVISION, f"{phase}: its machines are being made ready")
    set_phase(world, job.id, Usage(phase))
    keep_hosts(world, job, on=True)
    for each in provisions_of(job):
        if each.via and each.ticket:
            world.use(Provisions).sent(each.token, (job.id, job.attempt, each.host))
    world.use(Provisions).jobs.add(job.id)


def ask_again(world: World) -> list[RunProvision]:
    """After a restart: the commands on the manager's host that have not succeeded yet."""
    state = world.find(Provisions)
    found: list[RunProvision] = []
    for id in sorted(state.jobs if state is not None else ()):
        job = world.jobs[id]
        for each in provisions_of(job):
            if not each.here and not each.via and not each.accepted and not provisioning.is_over(each):
                found.append(command_for(world, job, each))
    return found


def _index_as_leased(world: World) -> list[str]:
    """Invariant: the index has exactly the withheld leases in provisioning."""
    state = world.use(Provisions)
    there = {job.id for job in world.jobs.values() if job.lease is not None and job.lease.preparing == PROVISION}
    wrong = [f"I3: job {id} is provisioned, and no index or lease says so" for id in sorted(there ^ state.jobs)]
    for id in there & state.jobs:
        lease = world.jobs[id].lease
        if lease is not None and (lease.withheld is None or not lease.stays):
            wrong.append(f"I3: job {id} is being provisioned and was sent")
    return wrong + _alone_on_their_hosts(world, state)


def _alone_on_their_hosts(world: World, state: Provisions) -> list[str]:
    """No job that takes no core runs on a host that is made ready for another one. Cores are looked at by I5."""
    wrong = []
    for id in sorted(state.jobs):
        for each in provisions_of(world.jobs[id]):
            runner = world.runners.get(world.runner_at.get(each.host, ""))
            for other in runner.leases if runner is not None else ():
                lease = world.jobs[other].lease
                if other != id and not world.jobs[other].size.cpus and lease is not None and lease.started_at:
                    wrong.append(f"I5: job {other} runs on {each.host}, which is being provisioned for job {id}")
    return wrong


FEATURE = Feature(
    name="provisioning",
    state=Provisions,
    invariant=_index_as_leased,
    handlers={
        ProvisionBegan: on_provision_began,
        ProvisionEnded: on_provision_ended,
        TicketMade: on_ticket_made,
        NodeReady: on_node_ready,
    },
    preparation=Preparation(name=PROVISION, wanted=is_wanted, begin=begin_provisioning),
    on_timer=_check,
    next_due=_next_due,
    clock_moved=_follow_clock,
    node_removed=_removed,
    restore=_restore,
    restore_leases=_restore_leases,
    runner_joined=_machine_joined,
    runner_reported=_take_reports,
    keeps_lease=_keeps_lease,
    awaits_host=is_awaited,
    attempt_started=_started,
    lease_voided=stop_provisioning,
)
