"""Resolve the dependencies of a submission: other lines, jobs and groups. They must exist and form no cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from rota.core.jobs.dependencies import Node, refuse_cycle
from rota.core.jobs.group_ancestry import GroupAncestry
from rota.core.jobs.job import After, Condition, Parent, Spec
from rota.core.submit.upload import Upload
from rota.core.world import NO_JOB, World
from rota.errors import BadInput, NotFound


class EntryParents(NamedTuple):
    """The dependencies of the entries of a submission."""

    new: dict[int, list[After]]  #: new job → its dependencies, if it has any
    existing: dict[int, list[After]]  #: existing job → its dependencies, as asked for now
    #: jobs of `existing` with `live=false`: they wait for the members that a group had when they were added
    fixed: set[int]
    forward: bool  #: does an entry depend on itself or a later line?


def resolve_after(world: World, upload: Upload) -> EntryParents:
    """Resolve the parents of all entries. Raises `NotFound` if one does not exist."""
    resolved: dict[int, list[After]] = {}
    existing: dict[int, list[After]] = {}
    fixed: set[int] = set()
    joined = joined_by(upload)
    entries, jobs = upload.entries, upload.jobs
    successors = {old.id: new for new, olds in upload.replacing.items() for old in olds}
    forward = False
    made: dict[tuple[Parent, int], After] = {}  # shared: thousands may depend on the same parent
    for entry, parent, condition, local in upload.after:
        job = jobs.get(entries[entry])
        line = upload.lines[entry]
        parents: Iterable[Parent]
        known = upload.known_entries.get(entry) if job is None else None
        if isinstance(parent, str):
            spec = job.spec if job is not None else known.spec if known is not None else None
            if spec is not None and not spec.allow_empty_group and not _has_members(world, joined, parent):
                raise no_members(parent).at(line=line)
            parents = [parent]
            if spec is not None and not spec.live:
                parents = _members_now(world, joined, parent, condition) or parents
                if known is not None:
                    fixed.add(known.job)
        elif local:
            if not 0 <= parent < len(entries):
                raise NotFound("the input has no such line", field="after", line=line)
            forward = forward or parent >= entry
            parents = (entries[parent],)
        elif world.outcome(parent) == NO_JOB or parent in jobs:
            raise NotFound(f"there is no job {parent}", field="after", line=line)
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


def no_members(group: str) -> NotFound:
    """The error about a dependency on a group that nobody has joined yet."""
    return NotFound(
        f"group '{group}' has never had a member",
        field="after",
        hint="add its members first, or give --allow-empty-group",
    )


def redefined_after(world: World, spec: Spec, after: Iterable[After]) -> tuple[After, ...]:
    """The dependencies that an existing job gets: those given, resolved as for a new one. Raises `NotFound`."""
    found: dict[After, None] = {}
    for each in after:
        parent = each.parent
        if isinstance(parent, int):
            if world.outcome(parent) == NO_JOB:
                raise NotFound(f"there is no job {parent}", field="after")
            found[each] = None
            continue
        if not spec.allow_empty_group and not _has_members(world, {}, parent):
            raise no_members(parent)
        members = [] if spec.live else _members_now(world, {}, parent, each.condition)
        found |= dict.fromkeys([After(id, each.condition) for id in members] or [each])
    return tuple(found)


def joined_by(upload: Upload) -> dict[str, list[int]]:
    """Dependency group → new jobs that join it."""
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
    """The members that a job with `live=false` waits for: those that the group has now.

    Of complete members only the number is known. Empty if they alone keep the job from ever running.
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
    """Raise `BadInput` if a job would wait for itself, through jobs or through groups that it joins.

    `after`: dependencies of the new and the `changed` jobs. `replaced`: job → its specification and its successor.
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
    moved = bool(successors or changed)  # otherwise only later ids depend on an id

    def parents(node: Node) -> Iterable[Node]:
        if isinstance(node, GroupAncestry):
            return [*node.groups, *node.parents]
        if isinstance(node, str):
            group = world.groups.get(node)
            if group is None:
                return joined.get(node, ())
            gone = leaving.get(node, Counter())
            found: list[Node] = [*joined.get(node, ()), *(r for r, n in group.after.items() if n > gone[r])]
            if moved:  # a member without group ancestry may get one by this submission
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
            return ""  # the jobs in between have ended and left memory
        if isinstance(node, str):
            return f"@{node}"
        return f"line {lines[node]}" if node in lines else f"job {node}"

    for id, waits in after.items():
        for group in specs[id].dep_groups:
            if any(each.parent == group for each in waits):
                raise BadInput(
                    f"it would wait for its own group '{group}'",
                    field="after",
                    line=lines.get(id, 0),
                    hint="leave that group out of 'after' or of 'dep_groups'",
                ).at(source="" if id in lines else name(id))
    refuse_cycle(after, parents, name=name)
