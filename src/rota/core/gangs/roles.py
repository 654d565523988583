"""The roles of the members of a gang: by these names they know each other. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rota.core.jobs.element import Element
from rota.core.jobs.job import Job


def role(name: str, place: int, element: Element | None = None) -> str:
    """The role of a member: its name, or its place in the gang, counted from 0. Elements of an array share their
    name, so their role is the index, behind the name if there is one."""
    if element is None:
        return name or str(place)
    return f"{name}_{element.index}" if name else str(element.index)


def roles_of(jobs: Iterable[Job]) -> list[str]:
    """The roles of jobs in input order, which are all members of a gang."""
    return [role(job.spec.name, place, job.element) for place, job in enumerate(jobs)]


def doubles(roles: Sequence[str]) -> list[str]:
    """Roles that occur more than once, each once."""
    seen: set[str] = set()
    found: dict[str, None] = {}
    for each in roles:
        if each in seen:
            found[each] = None
        seen.add(each)
    return list(found)
