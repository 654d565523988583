"""The machines that are being made ready for jobs, and the deploy hosts they wait for. Nothing here changes them.

What is known of each machine is stored with the attempt (`Given.provisions`).
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.core.jobs.job import Job
from rota.core.machines import provisioning
from rota.core.machines.provision_records import Provisions
from rota.core.machines.provisioning import WAITING
from rota.core.world import Runner, World
from rota.plan.placement.given import Provision


def provisions_of(job: Job) -> tuple[Provision, ...]:
    """The machines of a leased job that are, or were, made ready for it."""
    given = job.lease.given if job.lease is not None else None
    return given.provisions if given is not None else ()


def open_provisions(world: World) -> Iterator[tuple[Job, Provision]]:
    """The machines that are being made ready, with their jobs, in order of the jobs."""
    state = world.find(Provisions)
    for id in sorted(state.jobs if state is not None else ()):
        job = world.jobs[id]
        for each in provisions_of(job):
            if not provisioning.is_over(each):
                yield job, each


def open_provision(world: World, job_id: int, attempt: int, token: int) -> tuple[Job, Provision] | None:
    """The job and the machine that a report names, if that is being made ready."""
    state = world.find(Provisions)
    if state is None or job_id not in state.jobs:
        return None
    job = world.jobs[job_id]
    for each in provisions_of(job):
        if job.attempt == attempt and each.token == token and not provisioning.is_over(each):
            return job, each
    return None


def phase_at(world: World, host: str) -> str:
    """`waiting` or `installing`, if this machine is being made ready for a job; else empty."""
    return next((each.phase for _job, each in open_provisions(world) if each.host == host), "")


def ticket_host(world: World, ticket: str) -> str:
    """The machine that owns the ticket with this hash; empty: none."""
    if not ticket:
        return ""
    return next((each.host for _job, each in open_provisions(world) if each.ticket == ticket), "")


def is_provisioning(job: Job, attempt: int, token: int) -> bool:
    """Is this the token of a command by which an agent makes a machine of this attempt ready?"""
    return job.attempt == attempt and any(
        (each.here or each.via) and each.token == token for each in provisions_of(job)
    )


def is_awaited(world: World, host: str) -> bool:
    """May this machine be silent because it is being provisioned?"""
    return bool(phase_at(world, host))


def deployer(world: World, each: Provision) -> Runner | None:
    """The agent of the deploy host for this machine, if it lives."""
    runner = world.runners.get(world.runner_at.get(each.via, ""))
    lives = runner is not None and runner.connected and not runner.silent and not runner.leaving
    return runner if lives else None


def away_deploy_host(world: World, made: tuple[Provision, ...]) -> str:
    """The deploy host without a living agent that one of these waits for; empty: none does."""
    away = (each.via for each in made if each.via and each.phase == WAITING and deployer(world, each) is None)
    return next(away, "")


def waits_for_deploy_hosts(world: World) -> dict[str, str]:
    """Machines that wait to be made ready, and the deploy hosts without a living agent for which they wait."""
    return {each.host: away for _job, each in open_provisions(world) if (away := away_deploy_host(world, (each,)))}


def is_errand(world: World, lease: tuple[int, int, int]) -> bool:
    """Is this a command that a deploy host has for a machine, which may be ready by now, or even free again?"""
    state = world.find(Provisions)
    return state is not None and state.errands.get(lease[2], (0, 0, ""))[:2] == lease[:2]
