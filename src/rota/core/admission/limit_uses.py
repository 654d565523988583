"""The limits that a job uses: the names and numbers that its user wrote, resolved by the limits of the site."""

from __future__ import annotations

import msgspec

from rota.core.fields.limits import WantedLimit
from rota.core.site.limits import LIMIT_NAME, MOST_UNITS
from rota.errors import BadInput
from rota.plan.need import LimitUse
from rota.plan.policy.limits import Limit, Limits


def resolve(
    uses: tuple[WantedLimit, ...],
    limits: Limits,
    declared: dict[str, Limit],
    *,
    user: str = "",
    admin: bool = False,
) -> tuple[LimitUse, ...]:
    """The limits that a job uses. Limits that it declares or restates are added to `declared`.

    `user` is the owner of the job. The job of an administrator may take any limit alone and restate it.

    `name:N` on a limit that only jobs have declared states its capacity, and the job takes one unit; on
    any other limit it takes N units. `name:any` takes one unit of any capacity. Raises `BadInput` for a
    limit that is not declared.
    """
    resolved = []
    for use in uses:
        if not LIMIT_NAME.fullmatch(use.name):
            raise BadInput(f"'{use.name[:40]}' cannot be a limit", hint="use letters, digits and . _ -")
        if use.number is not None and not 0 < use.number <= MOST_UNITS:
            raise BadInput(f"limit '{use.name}': a number of units is out of range", hint=f"write {use.name}:1")
        known = declared.get(use.name) or limits.get(use.name)
        units = 1
        if known is None:
            if use.number is None and not use.declare:
                raise BadInput(
                    f"limit '{use.name}' is not declared",
                    hint=f"declare it with 'rota limit {use.name}:N', or write {use.name}:N in the job",
                )
            declared[use.name] = Limit(use.name, use.number, by_jobs=True, owner=user)
        elif use.number is not None and known.by_jobs:
            if known.capacity != use.number:
                if not admin and known.owner not in ("", user):
                    has = "any number of" if known.capacity is None else known.capacity
                    raise BadInput(
                        f"limit '{use.name}' has {has} units, as jobs of {known.owner} declared it; "
                        "only theirs may change that",
                        hint=f"leave out the number, or ask an administrator for 'rota limit {use.name}:N'",
                        code="denied",
                    )
                declared[use.name] = msgspec.structs.replace(known, capacity=use.number, owner=known.owner or user)
        else:
            units = use.number or 1
            most = max(own for _host, own in known.hosts) if known.hosts else known.capacity
            if most and units > most:
                raise BadInput(
                    f"limit '{use.name}' has {most} units, the job would take {units}",
                    hint=f"take fewer, or raise it with 'rota limit {use.name}:{units}'",
                )
        if use.exclusive and not admin and known is not None:
            refuse_alone(known, user)
        resolved.append(LimitUse(use.name, units, use.exclusive))
    return tuple(sorted(resolved, key=lambda use: use.name))


def refuse_alone(known: Limit, user: str, *, instead: str = "leave out the '!'") -> None:
    """Raise `BadInput` if a user wants a limit of the site or of another user alone: no other job could use it."""
    if known.by_jobs and known.owner in ("", user):
        return
    whose = f"jobs of {known.owner} declared it" if known.by_jobs else "it is the site's"
    raise BadInput(
        f"limit '{known.name}' cannot be taken alone by {user}: {whose}",
        hint=f"{instead}, or ask an administrator",
        code="denied",
    )
