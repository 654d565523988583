"""Limits: resolves the names that jobs use, and shows all limits with their use."""

from __future__ import annotations

from itertools import chain, islice
from typing import Final

import msgspec

from rota.core.site.limits import ALWAYS, LIMIT_NAME, MOST_UNITS, array_limit, parse_limit
from rota.core.world import World
from rota.errors import BadInput, NotFound
from rota.plan.language.hostlist import natural
from rota.plan.need import LimitUse
from rota.plan.policy.limits import ARRAY_LIMIT, Limit, Limits, Window
from rota.wire import messages as m
from rota.wire.views import LimitView

#: Jobs that are searched for the arrays that limits belong to.
_LOOKED_AT: Final = 20_000


def resolve(
    uses: tuple[m.NewUse, ...], limits: Limits, declared: dict[str, Limit], *, user: str = "", admin: bool = False
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
            _refuse_alone(known, user)
        resolved.append(LimitUse(use.name, units, use.exclusive))
    return tuple(sorted(resolved, key=lambda use: use.name))


def _refuse_alone(known: Limit, user: str) -> None:
    """Raise `BadInput` if a user wants a limit of the site or of another user alone: no other job could use it."""
    if known.by_jobs and known.owner in ("", user):
        return
    whose = f"jobs of {known.owner} declared it" if known.by_jobs else "it is the site's"
    raise BadInput(
        f"limit '{known.name}' cannot be taken alone by {user}: {whose}",
        hint="leave out the '!', or ask an administrator",
        code="denied",
    )


def changed(limits: Limits, text: str, host: str) -> tuple[list[Limit], list[str]]:
    """What `rota limit TEXT` asks for: limits to declare, and names to withdraw."""
    name, units, withdrawn, window = parse_limit(text)
    known = limits.get(name)
    if host:
        hosts = dict(known.hosts) if known is not None else {}
        if withdrawn and hosts.pop(host, None) is None:
            raise NotFound(f"limit '{name}' has no units of host '{host}'", hint="list them with 'rota limit'")
        if withdrawn and not hosts:
            return [], [name]
        if not withdrawn:
            if units is None:
                raise BadInput("a limit of a host needs a number of units", hint=f"write {name}:N")
            hosts[host] = units
        window = _hours(window, known)
        return [Limit(name, window=window, hosts=tuple(sorted(hosts.items())))], []
    if withdrawn:
        return [], [name]
    if known is None and window == ALWAYS and units is None:
        raise NotFound(f"there is no limit '{name}'", hint=f"declare it with 'rota limit {name}:N'")
    window = _hours(window, known)
    if known is not None:
        # A window keeps the units, and a number keeps the hours.
        units = units if ":" in text.partition("@")[0] else known.capacity
    return [Limit(name, units, window)], []


def _hours(wanted: Window | None, known: Limit | None) -> Window | None:
    if wanted is None:
        return known.window if known is not None else None
    return None if wanted == ALWAYS else wanted


def view(world: World) -> list[LimitView]:
    """All limits, with their use and the number of jobs that wait for them."""
    limits = world.placement.limits
    waiting = world.placement.wanting()
    views = []
    for limit in limits:
        hosts = {host: limits.use(limit.name, host)[0] for host, _units in limit.hosts}
        used, alone = limits.use(limit.name)
        if limit.by_jobs and ARRAY_LIMIT.fullmatch(limit.name) and not used and not waiting.get(limit.name):
            continue  # the limit of an array that has ended or not begun
        views.append(
            LimitView(
                name=limit.name,
                capacity=limit.capacity if not limit.hosts else None,
                used=sum(hosts.values()) if hosts else used,
                waiting=waiting.get(limit.name, 0),
                exclusive=alone,
                scope="host" if limit.hosts else "global",
                hosts={
                    host: {"capacity": units, "used": hosts[host]}
                    for host, units in sorted(limit.hosts, key=lambda each: natural(each[0]))
                },
                window=str(limit.window) if limit.window else None,
                open=limit.window is None or limit.window.open_at(limits.minute),
                owner=limit.owner or None,
                by_jobs=limit.by_jobs,
            )
        )
    _name_arrays(world, {each.name: each for each in views if each.by_jobs and ARRAY_LIMIT.fullmatch(each.name)})
    return sorted(views, key=lambda each: each.name)


def _name_arrays(world: World, views: dict[str, LimitView]) -> None:
    """Fill in the arrays that limits belong to, by the id of the first element."""
    some = (world.jobs[id] for runner in world.runners.values() for id in runner.leases)
    for job in chain(some, islice(world.jobs.values(), _LOOKED_AT)) if views else ():
        if job.element is not None and (found := views.pop(array_limit(job.spec.limits), None)) is not None:
            found.array = job.element.array
            if not views:
                return
