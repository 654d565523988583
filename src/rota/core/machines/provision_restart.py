"""Provisioning across a restart of the manager: machines that were being made ready go on."""

from __future__ import annotations

import msgspec

from rota.core.attempts.parts import parts_by_host
from rota.core.jobs.job import Job, Lease, Reason
from rota.core.machines import provisioning
from rota.core.machines.machine_states import Usage
from rota.core.machines.machine_use import set_phase
from rota.core.machines.provision_records import (
    PROVISION,
    STORED,
    Provisions,
    RunProvision,
    StoredProvisioning,
)
from rota.core.machines.provision_steps import command_for, keep_hosts
from rota.core.machines.provisioned_machines import open_provisions, provisions_of
from rota.core.restart import Restart
from rota.core.states import State
from rota.core.world import Runner, World, move
from rota.plan.placement.decisions import Opened
from rota.plan.placement.given import Provision


def restore(world: World, restart: Restart) -> None:
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


def restore_leases(world: World, _restart: Restart) -> None:
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
    for part in parts_by_host(job).values():
        part.runner = ""  # its parts are asked for when all machines are ready, perhaps of other agents
    for each in provisions_of(job):
        if each.via and each.ticket:
            world.use(Provisions).sent(each.token, (job.id, job.attempt, each.host))
    world.use(Provisions).jobs.add(job.id)


def ask_again(world: World) -> list[RunProvision]:
    """After a restart: the commands on the manager's host that have not succeeded yet."""
    return [
        command_for(world, job, each)
        for job, each in open_provisions(world)
        if not each.here and not each.via and not each.accepted
    ]
