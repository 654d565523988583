"""The steps of provisioning in the engine: a lease is withheld until the machines of its job are ready."""

from __future__ import annotations

import msgspec

from rota.core.attempts.attempt import end_attempt, void_attempt
from rota.core.attempts.parts import lease_of
from rota.core.attempts.preparation import go_on
from rota.core.attempts.seats import close_seat, take_seat
from rota.core.attempts.suspension import change_grant
from rota.core.effects import KillAttempts
from rota.core.hooks.server_scripts import about_job
from rota.core.jobs.job import Job, Reason
from rota.core.jobs.outcome import Outcome
from rota.core.machines import provisioning
from rota.core.machines.faulty_runs import FaultyRuns
from rota.core.machines.machine_states import Usage
from rota.core.machines.machine_use import set_phase
from rota.core.machines.provision_records import (
    PROVISION,
    STORED,
    Provisions,
    RunProvision,
    SendProvision,
    StopProvision,
    StoredProvisioning,
)
from rota.core.machines.provisioned_machines import away_deploy_host, deployer, provisions_of
from rota.core.machines.provisioning import DONE, INSTALLING, WAITING
from rota.core.site.manager_pause import starts_nothing
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import World, move
from rota.plan.placement.given import Given, Provision
from rota.units import about_duration


def is_wanted(_world: World, job: Job, given: Given | None) -> bool:
    return bool(job.spec.provision) and given is not None and not given.elsewhere


def begin_provisioning(world: World, turn: Turn, job: Job) -> None:
    """Have all machines of a job made ready, before its lease is sent."""
    lease = lease_of(job)
    assert lease.given is not None
    state = world.use(Provisions)
    hosts = [host for host, _cores in lease.given.nodes] or [world.runners[lease.runner].host]
    made = tuple(_asked_for(world, turn, host) for host in hosts)
    world.use(FaultyRuns)
    move(world, job, State.STARTING)
    state.jobs.add(job.id)
    lease.stays = True
    change_grant(world, turn, job, provisioned_s=state.spent.get(job.id, 0.0))
    _put(world, turn, job, made)
    keep_hosts(world, job, on=True)
    for each in made:
        ask(world, turn, job, each)


def _asked_for(world: World, turn: Turn, host: str) -> Provision:
    boot_id, pid = _agent(world, host)
    here, via = not _command(world, host), _deploy_host(world, host)
    return Provision(host, turn.wall, new_token(turn), here=here, boot_id=boot_id, pid=pid, via=via)


def keep_hosts(world: World, job: Job, *, on: bool) -> None:
    """The machines of a job are being made ready, or are not any more: they are its alone meanwhile."""
    world.placement.host_provisioned([each.host for each in provisions_of(job)], on)


def _command(world: World, host: str) -> str:
    """The site's command that provisions this machine; empty: the job's own command runs there."""
    found = world.site["host"].get(host, {}).get("provision_cmd", "")
    return str(found)


def new_token(turn: Turn) -> int:
    return int(turn.random() * (1 << 53)) + 1


def _deploy_host(world: World, host: str) -> str:
    """The host on which the command of this machine runs; empty: the manager's, or it has none. No host ends its
    own agent: the deploy host is made ready from the manager's."""
    deploy_host = world.settings.deploy_host
    return deploy_host if _command(world, host) and deploy_host != host else ""


def _agent(world: World, host: str) -> tuple[str, int]:
    """Boot id and process of the agent of this machine."""
    runner = world.runners.get(world.runner_at.get(host, ""))
    return (runner.boot_id, runner.pid) if runner is not None else ("", 0)


def command_for(world: World, job: Job, each: Provision) -> RunProvision:
    """The order to run the site's command for this machine."""
    command = _command(world, each.host) or "false"  # it was taken away meanwhile
    about = about_job(job, lease_of(job), each.host)
    return RunProvision(job.id, job.attempt, each.host, each.token, command, job.spec.provision, about, each.via)


def ask(world: World, turn: Turn, job: Job, each: Provision) -> None:
    """Have a machine made ready. May be repeated."""
    if each.via:
        if deployer(world, each) is not None:
            world.use(Provisions).asked.add(each.token)
            turn.effects.append(command_for(world, job, each))
    elif not each.here:
        turn.effects.append(command_for(world, job, each))
    elif (runner := world.runner_at.get(each.host)) is not None:
        limit_s = world.use(Provisions).limits.installing_s
        turn.effects.append(SendProvision(runner, [job], job.attempt, each.token, limit_s))


def keep(world: World, turn: Turn, job: Job, new: Provision) -> None:
    """Store what changed about one machine of a job."""
    _put(world, turn, job, tuple(new if each.host == new.host else each for each in provisions_of(job)))


def _put(world: World, turn: Turn, job: Job, made: tuple[Provision, ...]) -> None:
    """Store how far the machines of a job are, and note it in the job's story."""
    change_grant(world, turn, job, provisions=made)
    phase = provisioning.phase_of(made)
    set_phase(world, job.id, Usage(phase) if phase else None)
    say_why(world, job)


def say_why(world: World, job: Job) -> None:
    """Say how far the machines of a job are, and which deploy host they wait for."""
    made = provisions_of(job)
    if not (phase := provisioning.phase_of(made)):
        return
    hosts = ", ".join(each.host for each in made if not provisioning.is_over(each))
    words = {WAITING: "waits to be provisioned", INSTALLING: "is being provisioned"}
    said = f"{hosts} {words[phase]}"
    if away := away_deploy_host(world, made):
        said += f": the deploy host {away} has no living agent"
    job.reason = Reason(PROVISION, said)


def change(world: World, turn: Turn, job: Job, old: Provision, new: Provision) -> None:
    """Go on from a change of one machine: perhaps all are ready."""
    if new != old:
        keep(world, turn, job, new)
        if all(each.phase == DONE for each in provisions_of(job)):
            all_ready(world, turn, job)


def all_ready(world: World, turn: Turn, job: Job) -> None:
    """All machines of a job are ready: prepare whatever follows, unless nothing may start now."""
    if starts_nothing(world):
        return  # the timer of the feature tries again
    state, made = world.use(Provisions), provisions_of(job)
    took = provisioning.provision_s(made, turn.wall)
    state.learn(job.spec.provision, took)
    turn.note(
        job.id, job.attempt, "provisioned", f"{', '.join(each.host for each in made)} in {about_duration(took)}"
    )
    world.placement.provision_s = state.lengths
    _forget(world, turn, job)
    store(world, turn)
    if _renew_seat(world, turn, job):
        go_on(world, turn, job)
    else:
        void_attempt(world, turn, job, f"{world.runners[lease_of(job).runner].host} is smaller than it was")


def _renew_seat(world: World, turn: Turn, job: Job) -> bool:
    """Renew the seat of a withheld lease: after a restart its number is unknown to runners. False: there is too
    little room, since an administrator has made the machine smaller."""
    lease = lease_of(job)
    assert lease.withheld is not None
    if lease.withheld.seat < 0:
        runner = world.runners[lease.runner]
        close_seat(world, runner, lease.withheld.seat)
        seat = world.placement.seat(runner.host, job.size, turn.mono, kept=True)
        lease.withheld = seat
        if seat is None:
            return False
        take_seat(runner, seat.seat, seat.size)
    return True


def _forget(world: World, turn: Turn, job: Job) -> None:
    """Forget a job whose provisioning is over."""
    lease = lease_of(job)
    lease.stays = False
    set_phase(world, job.id, None)
    world.use(Provisions).jobs.discard(job.id)
    keep_hosts(world, job, on=False)
    for each in provisions_of(job):
        world.use(Provisions).asked.discard(each.token)
        if each.via and not each.accepted and (runner := deployer(world, each)) is not None:
            turn.effects.append(KillAttempts(runner.id, [(job.id, job.attempt, each.token)]))
    if any(not each.here for each in provisions_of(job)):
        turn.effects.append(StopProvision(job.id, job.attempt))


def stop_provisioning(world: World, turn: Turn, job: Job) -> None:
    """Stop the provisioning of a lease that ends."""
    if job.id not in world.use(Provisions).jobs:
        return
    for each in provisions_of(job):
        runner = world.runner_at.get(each.host)
        if each.here and not provisioning.is_over(each) and runner is not None:
            turn.effects.append(KillAttempts(runner, [(job.id, job.attempt, each.token)]))
    made = tuple(provisioning.fail(each, turn.wall) for each in provisions_of(job))
    change_grant(world, turn, job, provisions=made)
    state = world.use(Provisions)
    state.spent[job.id] = state.spent.get(job.id, 0.0) + provisioning.provision_s(made, turn.wall)
    _forget(world, turn, job)
    store(world, turn)


def fail_provisioning(world: World, turn: Turn, job: Job, host: str, why: str, *, avoid: bool = True) -> None:
    """End an attempt because a machine could not be provisioned. With `avoid` the job never gets that machine
    again."""
    if avoid and host not in job.avoid:
        job.avoid = (*job.avoid, host)
        world.use(Provisions).avoiding.add(job.id)
    stop_provisioning(world, turn, job)
    end_attempt(world, turn, job, Outcome(reason=PROVISION, message=why, ended_at=turn.wall))
    store(world, turn)


def store(world: World, turn: Turn) -> None:
    """Store what a restart must not lose, besides what is stored with attempts."""
    state = world.use(Provisions)
    state.avoiding = {id for id in state.avoiding if id in world.jobs}
    state.spent = {id: seconds for id, seconds in state.spent.items() if id in world.jobs}
    kept = StoredProvisioning({id: world.jobs[id].avoid for id in state.avoiding}, state.took, state.spent)
    turn.changes.meta[STORED] = msgspec.json.encode(kept).decode()
