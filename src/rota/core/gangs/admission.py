"""Checks of submissions with gangs. They raise and change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rota.core.fields.request import is_role
from rota.core.gangs.gang_state import Gangs, find_gang, open_members
from rota.core.gangs.roles import doubles, roles_of
from rota.core.jobs.job import After, Job, Spec
from rota.core.site.limits import array_limit
from rota.core.submit.upload import Upload
from rota.core.world import World
from rota.errors import BadInput
from rota.plan.policy.policy import BESTEFFORT
from rota.pool_names import is_delegated

#: Members of one gang.
MOST_MEMBERS: Final = 1000
#: Different wishes of its members: each is looked up among all machines when the gang is placed, and until that is
#: done nothing else is decided.
MOST_WISHES: Final = 200
#: Fields that all members have in common.
_EQUAL: Final = ("gang_same", "gang_share", "on_member_failure", "at")
#: Fields that make a job a member of its gang: they stay as they were added.
_FIXED: Final = frozenset(("gang", "gang_same", "gang_share", "on_member_failure"))
#: Job types that cannot be members: they execute nothing, or share the resources of others.
_ALONE: Final = ("noop", "inner", "timesharing", "placeholder", "allowed")


def gangs_of(upload: Upload) -> dict[str, list[Job]]:
    """The gangs of a submission: name → new members in input order."""
    found: dict[str, list[Job]] = {}
    for job in upload.jobs.values():
        if job.spec.gang:
            found.setdefault(job.spec.gang, []).append(job)
    return found


def refuse_bad_gangs(world: World, upload: Upload, after: Mapping[int, Iterable[After]]) -> None:
    """Raise `BadInput` if a gang of this submission contradicts itself. `after`: parents of new jobs."""
    lines = dict(zip(upload.entries, upload.lines, strict=True))
    for name, members in gangs_of(upload).items():
        try:
            _refuse_parts(world, upload, name, members)
            check_members(members)
            _refuse_dependent(upload, members, after)
        except BadInput as error:
            raise error.at(line=lines[members[0].id]) from None


def check_members(members: Sequence[Job]) -> None:
    """Raise `BadInput` if these jobs cannot be the members of one gang."""
    specs = [job.spec for job in members]
    name = specs[0].gang
    for spec in specs:
        _check_alone(spec)
    if len(members) > MOST_MEMBERS:
        raise BadInput(
            f"gang '{name}' has {len(members):,} members, at most {MOST_MEMBERS:,} are allowed",
            field="gang",
            hint="make several gangs of them",
        )
    wishes = {(spec.request, spec.where, spec.prefer, spec.pool, spec.force_host) for spec in specs}
    if len(wishes) > MOST_WISHES:
        raise BadInput(
            f"members of gang '{name}' ask for machines in {len(wishes):,} different ways, "
            f"at most {MOST_WISHES:,} are allowed",
            field="gang",
            hint="give more members the same request, where and prefer, or make several gangs of them",
        )
    for field in _EQUAL:
        if len({_usual(field, getattr(spec, field)) for spec in specs}) > 1:
            raise BadInput(
                f"members of gang '{name}' differ", field=field, hint="give all members of a gang the same value"
            )
    if len({BESTEFFORT in spec.types for spec in specs}) > 1:
        raise BadInput(
            f"some members of gang '{name}' are besteffort and others are not",
            field="type",
            hint="make all of them besteffort, or none",
        )
    roles = roles_of(members)
    for role in roles:
        if not is_role(role):
            raise BadInput(
                f"'{role[:64]}' cannot be the name of a member of a gang",
                field="name",
                hint="use letters, digits and . _ -",
            )
    if twice := doubles(roles):
        raise BadInput(
            f"two members of gang '{name}' are called '{twice[0]}'",
            field="name",
            hint="give each member a name of its own, or none",
        )


def _usual(field: str, value: object) -> object:
    return (value or "kill") if field == "on_member_failure" else value


def _check_alone(spec: Spec) -> None:
    if is_delegated(spec.pool):
        raise BadInput(
            f"pool '{spec.pool}' belongs to another engine, which cannot start the members of a gang together",
            field="gang",
            hint="leave out the pool, or name local or nodes",
        )
    if array_limit(spec.limits):
        raise BadInput(
            "all elements of an array that is a gang begin together, so their number cannot be limited",
            field="array",
            hint="leave out %N",
        )
    if spec.interactive:
        raise BadInput("an interactive job cannot be in a gang", field="gang", hint="leave out one of them")
    for word in spec.types:
        if word.partition("=")[0] in _ALONE:
            raise BadInput(
                f"a job of type '{word.partition('=')[0]}' cannot be a member of a gang",
                field="type",
                hint="leave out one of them",
            )


def _refuse_parts(world: World, upload: Upload, name: str, members: list[Job]) -> None:
    """Raise if other members were added before: a gang is added whole."""
    user = members[0].spec.user
    gangs = world.find(Gangs)
    there = [] if gangs is None else [each for each in gangs.by_key.values() if each.name == name]
    for gang in there:
        if gang.user == user and (jobs := open_members(world, gang)):
            ids = ", ".join(str(job.id) for job in jobs[:5]) + (", …" if len(jobs) > 5 else "")
            what = "job" if len(jobs) == 1 else "jobs"
            raise BadInput(
                f"gang '{name}' exists already ({what} {ids}): all members of a gang are added in one call",
                field="gang",
                hint="add all members in one input, or give this gang another name",
            )


def _refuse_dependent(upload: Upload, members: list[Job], after: Mapping[int, Iterable[After]]) -> None:
    """Raise if a member waits for another one, directly or through other jobs of the input."""
    of_gang = {job.id for job in members}
    joined: dict[str, list[int]] = {}
    for job in upload.jobs.values():
        for group in job.spec.dep_groups:
            joined.setdefault(group, []).append(job.id)
    for job in members:
        seen: set[int] = set()
        pending = [job.id]
        while pending:
            for each in after.get(pending.pop(), ()):
                parents = joined.get(each.parent, ()) if isinstance(each.parent, str) else (each.parent,)
                for parent in parents:
                    if parent in of_gang:
                        raise BadInput(
                            f"a member of gang '{job.spec.gang}' waits for another: they cannot begin together",
                            field="after",
                            hint="leave out this dependency, or take the job out of the gang",
                        )
                    if parent not in seen:
                        seen.add(parent)
                        pending.append(parent)


def changes_gang(has: Spec, asked: Spec, names: Iterable[str]) -> bool:
    """Would a change from the specification `has` to `asked` make a job join or leave a gang, or change the terms
    of its gang? `names`: the fields in which they differ."""
    return bool(has.gang or asked.gang) and not _FIXED.isdisjoint(names)


def refuse_part_of_gang(world: World, job: Job, chosen: Iterable[int], verb: str) -> None:
    """Raise `BadInput` if a waiting member of a gang would be changed or removed without the others."""
    gang = find_gang(world, job.id)
    if gang is None:
        return
    chosen = set(chosen)
    left = [each.id for each in open_members(world, gang) if each.id not in chosen]
    if left:
        raise BadInput(
            f"job {job.id} is a member of gang '{gang.name}', and a gang is {verb} as a whole",
            hint=f"name all its jobs: gang={gang.name}, or cancel it: rota kill {job.id}",
        )
