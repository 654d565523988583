"""For whom the jobs of a submission wait: other lines, jobs and groups, which must exist and form no cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from rota.core.jobs.dependencies import Node, refuse_cycle
from rota.core.jobs.group_ancestry import GroupAncestry
from rota.core.jobs.job import After, Condition, Parent, Spec
from rota.core.world import NO_JOB, Upload, World
from rota.errors import BadInput, NotFound


class EntryParents(NamedTuple):
    """What the entries of a submission say that they wait for."""

    new: dict[int, list[After]]  #: job → its dependencies, for the new jobs that have some
    existing: dict[int, list[After]]  #: the same for those that are there already
    fixed: set[int]  #: of these, who waits for those that were in a group when it was added, whoever is now
    forward: bool  #: somebody waits for a later line


def resolve_after(world: World, upload: Upload) -> EntryParents:
    """For whom the entries wait. Raises if a parent is unknown."""
    resolved: dict[int, list[After]] = {}
    existing: dict[int, list[After]] = {}
    fixed: set[int] = set()
    joined = joined_by(upload)
    entries, jobs = upload.entries, upload.jobs
    successors = {old.id: new for new, olds in upload.replacing.items() for old in olds}
    forward = False
    made: dict[tuple[Parent, int], After] = {}  # thousands may wait for the same one
    for entry, parent, condition, local in upload.after:
        job = jobs.get(entries[entry])
        line = upload.lines[entry]
        parents: Iterable[Parent]
        known = upload.known_entries.get(entry) if job is None else None
        if isinstance(parent, str):
            spec = job.spec if job is not None else known.spec if known is not None else None
            if spec is not None and not spec.allow_empty_group and not _has_members(world, joined, parent):
                raise NotFound(
                    f"line {line}: field 'after': group '{parent}' has never had a member",
                    hint="add its members first, or give --allow-empty-group",
                )
            parents = [parent]
            if spec is not None and not spec.live:
                parents = _members_now(world, joined, parent, condition) or parents
                if known is not None:
                    fixed.add(known.job)
        elif local:
            if not 0 <= parent < len(entries):
                raise NotFound(f"line {line}: field 'after': the input has no such line")
            forward = forward or parent >= entry
            parents = (entries[parent],)
        elif world.outcome(parent) == NO_JOB or parent in jobs:
            raise NotFound(f"line {line}: field 'after': there is no job {parent}")
        else:
            parents = [successors.get(parent, parent)]
        if job is not None:
            waits = resolved.get(job.id)
            if waits is None:
                waits = resolved[job.id] = []
        elif known is not None:
            waits = existing.setdefault(known.job, [])
        else:
            continue
        for each in parents:
            after = made.get((each, condition))
            if after is None:
                after = made[each, condition] = After(each, Condition(condition))
            waits.append(after)
    return EntryParents(resolved, existing, fixed, forward)


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


def refuse_cycles(
    world: World,
    upload: Upload,
    after: dict[int, list[After]],
    *,
    changed: dict[int, Spec],
    replaced: dict[int, tuple[Spec, int]],
) -> None:
    """Raise if a job would wait for itself, through others or through groups that it joins.

    `after`: for whom the new jobs wait, and those that are `changed`. `replaced`: job → its specification and the
    job that takes its place.
    """
    joined = joined_by(upload)
    specs = {id: upload.jobs[id].spec for id in after if id in upload.jobs} | changed
    leaving: dict[str, Counter[GroupAncestry]] = {}
    for id, spec in [*((id, spec) for id, (spec, _by) in replaced.items()), *changed.items()]:
        was = world.jobs[id].spec if id in world.jobs else spec
        if reach := world.ancestry.get(id):
            for group in was.dep_groups:
                leaving.setdefault(group, Counter())[reach] += 1
    for id, spec in changed.items():
        for group in spec.dep_groups:
            joined.setdefault(group, []).append(id)
    successors = {id: by for id, (_spec, by) in replaced.items() if by}
    moved = bool(successors or changed)  # else an id is waited for by later ones only

    def parents(node: Node) -> Iterable[Node]:
        if isinstance(node, GroupAncestry):
            return [*node.groups, *node.parents]
        if isinstance(node, str):
            group = world.groups.get(node)
            if group is None:
                return joined.get(node, ())
            gone = leaving.get(node, Counter())
            found: list[Node] = [*joined.get(node, ()), *(r for r, n in group.after.items() if n > gone[r])]
            if moved:  # a member that waits for no group may wait for one that does from now on
                found += [id for id in (*group.open, *group.bad) if id not in replaced and id not in changed]
            return found
        if node in upload.jobs or node in changed:
            return [each.parent for each in after.get(node, ())]
        reach = world.ancestry.get(node)
        found = [] if reach is None else [reach]
        job = world.jobs.get(node) or upload.retried.get(node)
        if moved and job is not None:
            found += [successors.get(each.parent, each.parent) for each in job.after]  # type: ignore[arg-type]
        return found

    lines = {id: line for id, line in zip(upload.entries, upload.lines, strict=True) if id in after}

    def name(node: Node) -> str:
        if isinstance(node, GroupAncestry):
            return ""  # what is in between ended long ago
        if isinstance(node, str):
            return f"@{node}"
        return f"line {lines[node]}" if node in lines else f"job {node}"

    for id, waits in after.items():
        for group in specs[id].dep_groups:
            if any(each.parent == group for each in waits):
                raise BadInput(
                    f"line {lines[id]}: field 'after': it would wait for its own group '{group}'",
                    hint="leave that group out of 'after' or of 'dep_groups'",
                )
    refuse_cycle(after, parents, name=name)
