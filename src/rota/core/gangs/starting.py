"""The last preparation of a member: its lease is sent when all members of the gang are prepared."""

from __future__ import annotations

from typing import Final

from rota.core.attempts.preparation import go_on
from rota.core.gangs.gang_state import Gang, gang_of, open_members
from rota.core.jobs.job import Job, Reason
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import Preparation, World, move
from rota.plan.placement.given import Given

#: Name of the preparation.
GANG: Final = "gang"


def _is_member(_world: World, job: Job, _given: Given | None) -> bool:
    return bool(job.spec.gang)


def _await_others(world: World, turn: Turn, job: Job) -> None:
    """This member is prepared. If it was the last, all begin."""
    gang = gang_of(world, job)
    members = open_members(world, gang)
    missing = [each for each in members if not _is_prepared(each)]
    if not missing:
        hosts = hosts_text(world, gang)
        for each in members:
            assert each.lease is not None
            each.lease.gang_hosts = hosts
            go_on(world, turn, each)
        return
    if job.state is State.SCHEDULED:
        move(world, job, State.STARTING)
    names = ", ".join(gang.roles[each.id] for each in missing)
    job.reason = Reason("gang", f"it is prepared and waits for {names}")


def _is_prepared(job: Job) -> bool:
    return job.lease is not None and job.lease.withheld is not None and job.lease.preparing == GANG


def hosts_text(world: World, gang: Gang) -> str:
    """`ROTA_GANG_HOSTS`: a line for each member, in input order, with its role and its hosts."""
    lines = []
    for job in open_members(world, gang):
        lines.append(f"{gang.roles[job.id]}={','.join(hosts_of(world, job))}")
    return "\n".join(lines)


def hosts_of(world: World, job: Job) -> list[str]:
    """The hosts of a member that has a lease, the one that it begins on first."""
    lease = job.lease
    if lease is None:
        return []
    first = lease.host or world.runner_hosts.get(lease.runner, "")
    given = lease.given
    nodes = [host for host, _cores in given.nodes] if given is not None else []
    if given is not None and given.elsewhere and nodes:
        return nodes
    return [first, *(host for host in nodes if host != first)]


PREPARATION: Final = Preparation(name=GANG, wanted=_is_member, begin=_await_others)
