"""The gangs of a trace: which jobs belong together, and what they agree on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from rota.core.gangs.roles import role
from rota.sim.jobs import TraceJob
from rota.sim.values import WrongField, shown

#: Fields of a gang, and their names in `GangTerms`. Members that leave one out agree with the others.
_AGREED: Final = {"gang_same": "same", "gang_share": "share", "on_member_failure": "on_failure"}


class Gang(Struct, frozen=True, kw_only=True):
    """Jobs that are placed together or not at all."""

    name: str
    members: tuple[int, ...]  #: in the order of the file
    same: str = ""  #: the property of which all hosts have one value
    share: bool = False
    on_failure: str = "kill"
    allow_unsatisfiable: bool = False


def gangs_of(jobs: Sequence[TraceJob]) -> list[Gang]:
    """The gangs of these jobs. Raises `BadInput` with the path of the field in which members disagree."""
    members: dict[str, list[int]] = {}
    for place, job in enumerate(jobs):
        if job.terms.gang is not None:
            members.setdefault(job.terms.gang.name, []).append(place)
    return [_gang(name, [(place, jobs[place]) for place in places]) for name, places in members.items()]


def _gang(name: str, members: Sequence[tuple[int, TraceJob]]) -> Gang:
    _check(name, members)
    agreed: dict[str, Any] = {}
    for written, own in _AGREED.items():
        for place, job in members:
            value = getattr(job.terms.gang, own)
            if value is None:
                continue
            if agreed.setdefault(own, value) != value:
                raise _different(place, written, f"another member of {shown(name)} says {shown(agreed[own])}")
    return Gang(
        name=name,
        members=tuple(job.id for _place, job in members),
        allow_unsatisfiable=all(job.terms.gang and job.terms.gang.allow_unsatisfiable for _place, job in members),
        **agreed,
    )


def _check(name: str, members: Sequence[tuple[int, TraceJob]]) -> None:
    """Raise `BadInput` where these jobs cannot be members of one gang."""
    _first, one = members[0]
    ids = {job.id for _place, job in members}
    roles: set[str] = set()
    for number, (place, job) in enumerate(members):
        if job.start is not None:
            raise WrongField(f"jobs[{place}].gang", "it runs already", hint="give no 'start' to members of a gang")
        if job.submit != one.submit:
            raise _different(place, "submit", f"job {one.id} of {shown(name)} is submitted at {one.submit:g}")
        if job.ask.at != one.ask.at:
            raise _different(place, "at", f"job {one.id} of {shown(name)} has another time")
        if job.ask.types.besteffort != one.ask.types.besteffort:
            raise _different(place, "type", f"some jobs of {shown(name)} are besteffort and others are not")
        inside = next((parent.id for parent in job.after if parent.id in ids), None)
        if inside is not None:
            raise WrongField(
                f"jobs[{place}].after", f"job {inside} is in the same gang", hint="members begin together"
            )
        own = role(job.ask.name, number)
        if own in roles:
            hint = "give each member another name, or none"
            raise WrongField(f"jobs[{place}].name", f"{shown(own)} is given twice in {shown(name)}", hint=hint)
        roles.add(own)


def _different(place: int, name: str, message: str) -> WrongField:
    return WrongField(f"jobs[{place}].{name}", message, hint="all members of a gang have the same")
