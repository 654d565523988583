"""Restores dependency groups: their members, and the groups that members wait for."""

from __future__ import annotations

from rota.core.jobs.job import Parent
from rota.core.restart import Restart
from rota.core.rows import EdgeRow
from rota.core.states import State
from rota.core.world import World


def restore_groups(world: World, restart: Restart) -> None:
    """Restore dependency groups: members, and the groups that members wait for."""
    groups, specs, snapshot = world.groups, world.specs, restart.snapshot
    for name, complete in snapshot.dep_groups.items():
        groups[name].known = True
        groups[name].complete = complete
    for member in snapshot.bad_members:
        for name in specs[member.spec_id].dep_groups:
            groups[name].join(member.job, State(world.outcome(member.job)))
    for job in world.jobs.values():
        for name in job.spec.dep_groups:
            groups[name].join(job.id, State.DEPENDENT)
    _restore_ancestry(world, snapshot.edges)
    for id, spec_id in snapshot.edge_specs.items():
        for name in specs[spec_id].dep_groups:
            groups[name].wait_for(world.ancestry.get(id))
    for group in groups.values():
        group.announced = group.verdicts()


def _restore_ancestry(world: World, edges: list[EdgeRow]) -> None:
    parents: dict[int, list[Parent]] = {}
    for edge in edges:
        parents.setdefault(edge.child, []).append(edge.parent)
    for child in parents:
        world.ancestry.find(child, lambda id: parents.get(id, ()))
