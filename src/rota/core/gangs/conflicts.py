"""Refuses gangs that no set of machines, or no limit, could ever satisfy, and names what is in conflict."""

from __future__ import annotations

from rota.core.events import ChunkArrived
from rota.core.gangs.admission import gangs_of
from rota.core.gangs.roles import roles_of
from rota.core.jobs.job import Job
from rota.core.machines.hosts import site_now
from rota.core.site import planning_terms
from rota.core.submit.staging import applies
from rota.core.submit.upload import Upload
from rota.core.turn import Turn
from rota.core.world import World
from rota.errors import GangConflict
from rota.plan.ask import Member, ask_of, gang_ask
from rota.plan.explain.gang_conflict import gang_conflict
from rota.plan.policy.gang_limits import never_together


def refuse_conflicts(world: World, turn: Turn, upload: Upload, event: ChunkArrived) -> None:
    """Raise `GangConflict` if a gang could never begin, unless all its members allow waiting for new machines."""
    place = {id: entry for entry, id in enumerate(upload.entries)}
    for members in gangs_of(upload).values():
        if all(applies(event.allow_unsatisfiable, place[job.id]) for job in members):
            continue
        why = conflict(world, members) or _limits_conflict(world, event, members)
        if why:
            raise GangConflict(
                f"gang '{members[0].spec.gang}' can never begin: {why}",
                field="gang",
                line=upload.lines[place[members[0].id]],
                hint="ask for less, or keep it anyway with --allow-unsatisfiable",
            )


def _limits_conflict(world: World, event: ChunkArrived, members: list[Job]) -> str:
    declared = {limit.name: limit for limit in event.limits}
    return never_together(world.placement.limits, declared, [job.spec.limits for job in members])


def conflict(world: World, members: list[Job]) -> str:
    """Which of these members could never be placed together, and why; empty: they could. Raises `BadInput` for an
    unknown property."""
    roles = roles_of(members)
    for job, role in zip(members, roles, strict=True):
        if (alone := planning_terms.impossible(world, job.spec)) is not None:
            return f"member {role} {alone}"
    site = site_now(world)
    if not site.count:
        return ""  # no host is known yet
    first = members[0].spec
    asks = [Member(job.id, ask_of(job.spec, job.size), role) for job, role in zip(members, roles, strict=True)]
    found = gang_conflict(site, gang_ask(asks, same=first.gang_same, share=first.gang_share))
    return "" if found is None else found.message
