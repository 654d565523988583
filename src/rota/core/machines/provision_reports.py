"""What is heard of machines that are being made ready: from commands, agents, and `rota node ready`.

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
from rota.core.jobs.job import Job
from rota.core.jobs.outcome import Outcome
from rota.core.machines import provisioning
from rota.core.machines.deploy_host_commands import ask_anew, deployer_joined, keep_output, take_ticket
from rota.core.machines.provision_records import (
    PROVISION,
    BeginProvision,
    KeepProvisionOutput,
    NodeReady,
    ProvisionBegan,
    ProvisionEnded,
    Provisions,
    TicketMade,
)
from rota.core.machines.provision_steps import ask, change, fail_provisioning
from rota.core.machines.provisioned_machines import open_provision, open_provisions, provisions_of
from rota.core.machines.provisioning import WAITING
from rota.core.machines.runners import retire_idle
from rota.core.turn import NO_JOB_ID, Turn
from rota.core.world import Runner, World
from rota.errors import BadInput, Denied
from rota.plan.placement.given import Provision


def on_provision_began(world: World, turn: Turn, event: ProvisionBegan) -> None:
    """A command on the manager's host has its turn."""
    if (found := open_provision(world, event.job, event.attempt, event.token)) is not None:
        job, each = found
        change(world, turn, job, each, provisioning.begin(each, turn.wall, ticket=event.ticket))
        turn.effects.append(BeginProvision(event.job, event.attempt, event.host, event.token))


def on_ticket_made(world: World, turn: Turn, event: TicketMade) -> None:
    """A command for the deploy host can be sent."""
    if (found := open_provision(world, event.job, event.attempt, event.token)) is not None:
        take_ticket(world, turn, *found, event.ticket)


def on_provision_ended(world: World, turn: Turn, event: ProvisionEnded) -> None:
    """A command on the manager's host has ended. Ignored if that is about an attempt that is over."""
    found = open_provision(world, event.job, event.attempt, event.token)
    if found is None:
        return
    job, each = found
    if event.wrong:
        fail_provisioning(world, turn, job, each.host, f"{each.host} could not be provisioned: {event.wrong}")
    else:
        change(world, turn, job, each, _settled(world, provisioning.accept(each, turn.wall), turn))


def on_node_ready(world: World, turn: Turn, event: NodeReady) -> None:
    """Let a machine back in, with another machine id if it has one. Raises `Denied` or `BadInput`."""
    asked = (
        (job, each)
        for job, each in open_provisions(world)
        if (each.ticket == event.ticket if event.ticket else each.host == event.host)
    )
    found = next(asked, None)
    if found is None and event.ticket:
        raise Denied("this ticket is not accepted", hint="it is for one use, while the machine is provisioned")
    if found is None:
        raise BadInput(f"node '{event.host}' is not being provisioned", hint="see what it does: rota node show")
    job, each = found
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


def take_reports(
    world: World,
    turn: Turn,
    runner: Runner,
    started: list[Started],
    ended: list[Finished],
    returned: list[LeaseRef],
) -> None:
    """Reports of an agent about the command that makes a machine ready: its own, or one for the deploy host."""
    for start in started:
        if (found := open_provision(world, start.job, start.attempt, start.token)) is not None:
            job, each = found
            change(world, turn, job, each, provisioning.begin(each, turn.wall, ticket=each.ticket))
    for end in ended:
        keep_output(world, turn, end)
        if (found := open_provision(world, end.job, end.attempt, end.token)) is None:
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
        if (found := open_provision(world, ref.job, ref.attempt, ref.token)) is None:
            continue
        job, each = found
        if each.via:
            ask_anew(world, turn, job, each, at_once=False)  # `_check` does: it may be leaving
        else:
            void_attempt(world, turn, job, f"{runner.host} could not begin to provision itself")


def _wrong(outcome: Outcome) -> str:
    """The failure of a command in words; empty: it succeeded."""
    if outcome.reason:
        return outcome.message or outcome.reason
    if outcome.signal is not None:
        return f"signal {outcome.signal}"
    return f"exit {outcome.exit_code}" if outcome.exit_code else ""


def keeps_lease(world: World, _runner: Runner, held: HeldLease) -> bool:
    return open_provision(world, held.job, held.attempt, held.token) is not None


def machine_joined(world: World, turn: Turn, runner: Runner, event: RunnerJoined) -> None:
    """The agent of a machine that is being made ready has joined: the same, or another one."""
    state = world.use(Provisions)
    for id in sorted(state.jobs):
        job = world.jobs[id]
        for each in provisions_of(job):
            if each.via == event.host and not provisioning.is_over(each):
                deployer_joined(world, turn, job, each, event)
        for each in provisions_of(job):
            if each.host == event.host and not provisioning.is_over(each):
                _joined(world, turn, job, each, runner, event)
                break


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
