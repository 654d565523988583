"""Limits: what `rota limit` changes, and all limits with their use."""

from __future__ import annotations

from itertools import chain, islice
from typing import Final

from rota.core.site.limits import ALWAYS, array_limit, parse_limit
from rota.core.world import World
from rota.errors import BadInput, NotFound
from rota.plan.language.hostlist import natural
from rota.plan.policy.limits import ARRAY_LIMIT, Limit, Limits, Window
from rota.wire.views import LimitView

#: Jobs that are searched for the arrays that limits belong to.
_LOOKED_AT: Final = 20_000


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
