"""Reads the fields of a job about machines, besides its request: gang, provisioning, hold after the run."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Protocol

from msgspec import Struct

from rota.errors import BadInput
from rota.sim.values import WrongField, did_you_mean, duration, field, shown, walltime

MEMBER_FAILURES: Final = ("kill", "keep", "retry")
RESERVES: Final = ("always", "onfail", "onabort")
#: The name of a member is its role, and part of lines such as `name=host1,host2`.
_ROLE: Final = re.compile(r"[A-Za-z0-9._-]+")


class MachineFields(Protocol):
    """The fields of a job that are read here."""

    name: str
    gang: str | None
    gang_same: str | None
    gang_share: bool | None
    on_member_failure: str | None
    allow_unsatisfiable: bool
    force_host: str
    provision: float | str
    provision_fails: str | list[str]
    reserve: str | None
    reserve_for: float | str | None


class GangTerms(Struct, frozen=True):
    """The gang's fields as one member gives them; None: not given."""

    name: str
    same: str | None = None
    share: bool | None = None
    on_failure: str | None = None
    allow_unsatisfiable: bool = False


class MachineTerms(Struct, frozen=True):
    """What a job asks of machines besides its request."""

    gang: GangTerms | None = None
    provision_s: float = 0.0
    provision_fails: frozenset[str] = frozenset()  #: hosts
    reserve: str = ""  #: when it keeps its machines after the run; empty: never
    reserve_s: float = 0.0


def machine_terms(fields: MachineFields, *, hosts: Collection[str], properties: Collection[str]) -> MachineTerms:
    """The terms of a job, checked by the machines of the site. Raises `BadInput` with the path of the field."""
    if fields.force_host:
        with field("force_host"):
            _known_host(fields.force_host, hosts)
    with field("provision"):
        provision_s = duration(fields.provision)
    fails = [fields.provision_fails] if isinstance(fields.provision_fails, str) else fields.provision_fails
    for number, host in enumerate(fails):
        with field(f"provision_fails[{number}]"):
            _known_host(host, hosts)
    if fails and not provision_s:
        raise WrongField("provision_fails", "it is not provisioned", hint="give 'provision' in seconds as well")
    reserve_s = 0.0
    if fields.reserve is not None:
        _one_of("reserve", fields.reserve, RESERVES)
        if fields.reserve_for is None:
            raise WrongField("reserve_for", "missing", hint="say how long it keeps its machines after the run")
        with field("reserve_for"):
            reserve_s = walltime(fields.reserve_for)
    elif fields.reserve_for is not None:
        hint = f"say when: 'reserve' is one of {', '.join(RESERVES)}"
        raise WrongField("reserve_for", "it has no 'reserve'", hint=hint)
    return MachineTerms(
        gang=_gang(fields, properties),
        provision_s=provision_s,
        provision_fails=frozenset(fails),
        reserve=fields.reserve or "",
        reserve_s=reserve_s,
    )


def _gang(fields: MachineFields, properties: Collection[str]) -> GangTerms | None:
    if fields.gang is None:
        for name in ("gang_same", "gang_share", "on_member_failure"):
            if getattr(fields, name) is not None:
                raise WrongField(name, "it is in no gang", hint="name its gang in 'gang'")
        return None
    if not fields.gang:
        raise WrongField("gang", "it is empty", hint="give all members the same name")
    if fields.name and not _ROLE.fullmatch(fields.name):
        raise WrongField(
            "name", f"{shown(fields.name)} cannot be the role of a member", hint="use letters, digits, . _ and -"
        )
    if fields.on_member_failure is not None:
        _one_of("on_member_failure", fields.on_member_failure, MEMBER_FAILURES)
    if fields.gang_same is not None and fields.gang_same not in properties:
        hint = did_you_mean(fields.gang_same, sorted(properties), "properties")
        raise WrongField("gang_same", f"there is no property {shown(fields.gang_same)}", hint=hint)
    return GangTerms(
        name=fields.gang,
        same=fields.gang_same,
        share=fields.gang_share,
        on_failure=fields.on_member_failure,
        allow_unsatisfiable=fields.allow_unsatisfiable,
    )


def _one_of(name: str, given: str, known: Collection[str]) -> None:
    if given not in known:
        hint = did_you_mean(given, known, "values")
        raise WrongField(name, f"{shown(given)} is not one of its values", hint=hint)


def _known_host(name: str, hosts: Collection[str]) -> None:
    if name not in hosts:
        raise BadInput(f"there is no machine {shown(name)}", hint=did_you_mean(name, hosts, "machines"))
