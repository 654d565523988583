"""For whom the jobs of a submission wait: other lines, jobs and groups, which must exist and form no cycle."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from rota.core.dependencies import Node, refuse_cycle
from rota.core.job import After, Condition, Parent
from rota.core.reach import Reach
from rota.core.world import NO_JOB, Upload, World
from rota.errors import BadInput, NotFound


def resolve_after(world: World, upload: Upload) -> dict[int, list[After]]:
    """Job → its dependencies, for the new jobs that have some. Raises if a parent is unknown."""
    resolved: dict[int, list[After]] = {}
    joined = joined_by(upload)
    entries, jobs = upload.entries, upload.jobs
    forward = False
    made: dict[tuple[Parent, int], After] = {}  # thousands may wait for the same one
    for entry, parent, condition, local in upload.after:
        job = jobs.get(entries[entry])
        line = upload.lines[entry]
        parents: Iterable[Parent]
        if isinstance(parent, str):
            spec = job.spec if job is not None else None
            if spec is not None and not spec.allow_empty_group and not _has_members(world, joined, parent):
                raise NotFound(
                    f"line {line}: field 'after': group '{parent}' has never had a member",
                    hint="add its members first, or give --allow-empty-group",
                )
            parents = [parent]
            if spec is not None and not spec.live:
                parents = _members_now(world, joined, parent, condition) or parents
        elif local:
            if not 0 <= parent < len(entries):
                raise NotFound(f"line {line}: field 'after': the input has no such line")
            forward = forward or parent >= entry
            parents = (entries[parent],)
        elif world.outcome(parent) == NO_JOB or parent in jobs:
            raise NotFound(f"line {line}: field 'after': there is no job {parent}")
        else:
            parents = [parent]
        if job is None:
            continue  # it exists already, with the dependencies it was given then
        waits = resolved.get(job.id)
        if waits is None:
            waits = resolved[job.id] = []
        for each in parents:
            after = made.get((each, condition))
            if after is None:
                after = made[each, condition] = After(each, Condition(condition))
            waits.append(after)
    # Without groups, and if all wait for earlier lines only, nobody can wait for itself.
    if resolved and (forward or joined):
        _refuse_cycles(world, upload, resolved, joined)
    return resolved


def joined_by(upload: Upload) -> dict[str, list[int]]:
    """Dependency group → those of the new jobs that will be in it."""
    joined: dict[str, list[int]] = {}
    for spec, run in groupby(upload.jobs.values(), key=lambda job: job.spec):
        if spec.dep_groups:
            ids = [job.id for job in run]
            for name in spec.dep_groups:
                joined.setdefault(name, []).extend(ids)
    return joined


def _has_members(world: World, joined: dict[str, list[int]], group: str) -> bool:
    return group in joined or (group in world.groups and world.groups[group].known)


def _members_now(world: World, joined: dict[str, list[int]], group: str, condition: int) -> list[int]:
    """Who is waited for by a job that does not care who joins the group later.

    Complete members are known by their number only: nobody if that alone makes the job wait for ever.
    """
    found = world.groups.get(group)
    if found is not None and found.complete and condition == Condition.NOT_OK:
        return []
    known = [*found.bad, *found.open] if found is not None else []
    return [*known, *joined.get(group, ())]


def _refuse_cycles(
    world: World, upload: Upload, after: dict[int, list[After]], joined: dict[str, list[int]]
) -> None:
    """Raise if a new job would wait for itself, through others or through groups that it joins."""

    def parents(node: Node) -> Iterable[Node]:
        if isinstance(node, Reach):
            return [*node.groups, *node.parents]
        if isinstance(node, str):
            known = world.groups[node].after if node in world.groups else ()
            return [*joined.get(node, ()), *known]
        if node not in upload.jobs:
            reach = world.reach.get(node)
            return () if reach is None else [reach]
        return [each.parent for each in after.get(node, ())]

    lines = {id: line for id, line in zip(upload.entries, upload.lines, strict=True) if id in after}

    def name(node: Node) -> str:
        if isinstance(node, Reach):
            return ""  # what is in between ended long ago
        if isinstance(node, str):
            return f"@{node}"
        return f"line {lines[node]}" if node in lines else f"job {node}"

    for id, waits in after.items():
        for group in upload.jobs[id].spec.dep_groups:
            if any(each.parent == group for each in waits):
                raise BadInput(
                    f"line {lines[id]}: field 'after': it would wait for its own group '{group}'",
                    hint="leave that group out of 'after' or of 'dep_groups'",
                )
    refuse_cycle(after, parents, name=name)
