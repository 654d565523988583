"""What the members of a gang take of limits together: all begin at once, so the sum of their units counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rota.plan.need import LimitUse
from rota.plan.policy.limits import Limit, Limits


def taken_together(limits: Limits, members: Iterable[tuple[LimitUse, ...]]) -> tuple[LimitUse, ...]:
    """One use of each limit, given those of each member. Of a limit per host it is the largest, because
    members may have hosts of their own."""
    found: dict[str, LimitUse] = {}
    for uses in members:
        for use in uses:
            had = found.get(use.name, LimitUse(use.name, 0))
            units = max(had.units, use.units) if limits.per_host(use.name) else had.units + use.units
            found[use.name] = LimitUse(use.name, units, had.exclusive or use.exclusive)
    return tuple(found[name] for name in sorted(found))


def never_together(limits: Limits, declared: Mapping[str, Limit], members: list[tuple[LimitUse, ...]]) -> str:
    """Why members could not begin together even if nothing of a limit were in use; empty: they could. `declared`:
    limits that are declared with them. A limit of no units is only stopped for a time."""
    for use in taken_together(limits, members):
        limit = declared.get(use.name) or limits.get(use.name)
        if limit is None or limit.hosts:
            continue
        if use.exclusive and sum(each.name == use.name for uses in members for each in uses) > 1:
            return f"limit '{use.name}' would be one member's alone, and another takes units of it"
        if limit.capacity and use.units > limit.capacity:
            return f"limit '{use.name}' has {limit.capacity} units, its members take {use.units} together"
    return ""
