"""A cap of a machine group as the reason why a job waits: others go first on the machines of the group."""

from __future__ import annotations

from typing import Final

from rota.plan.language.hostlist import fold
from rota.plan.policy.priority_caps import Cap, priority_on
from rota.plan.reasons import Waits
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import WAITING, PlanEntry

#: How many of the jobs that go first are named.
_NAMED: Final = 5
_MOST: Final = 100


def caps_on_its_machines(plan: Plan, entry: PlanEntry) -> list[Waits]:
    """A reason for each machine group that caps the priority of this job on machines that it could have; the jobs
    that would be behind it without the cap are named."""
    if not plan.caps or entry.fixed or plan.counted or entry.trouble is not None:
        return []
    hosts = frozenset(plan.site.hosts_of(_eligible(entry)))
    by_group: dict[tuple[str, int], set[str]] = {}
    for cap in plan.caps:
        if cap.limits(entry.ask.user, entry.ask.priority) and (its := cap.hosts & hosts):
            by_group.setdefault((cap.group, cap.priority), set()).update(its)
    return [
        _reason(plan, entry, group, priority, sorted(its)) for (group, priority), its in sorted(by_group.items())
    ]


def _reason(plan: Plan, entry: PlanEntry, group: str, priority: int, hosts: list[str]) -> Waits:
    first = sorted(other.id for other in plan.entries.values() if _passes(plan, other, entry, hosts))
    said = f"its priority of {entry.ask.priority} counts as {priority} on {fold(hosts)} (machine group '{group}')"
    if first:
        names = ", ".join(map(str, first[:_NAMED])) + (
            f" and {len(first) - _NAMED} more" if len(first) > _NAMED else ""
        )
        said += f", so job {names} goes first there" if len(first) == 1 else f", so jobs {names} go first there"
    return Waits("priority_cap", said, hint="rota machine-group list", blockers=tuple(first[:_MOST]))


def _passes(plan: Plan, other: PlanEntry, entry: PlanEntry, hosts: list[str]) -> bool:
    """Does another waiting job go before this one on one of these machines only because of caps?"""
    if other is entry or other.state != WAITING or other.fixed or other.ask.priority >= entry.ask.priority:
        return False
    eligible = _eligible(other)
    return any(
        eligible & plan.site.hosts[host] and _priority(plan.caps, other, host) > _priority(plan.caps, entry, host)
        for host in hosts
    )


def _priority(caps: tuple[Cap, ...], entry: PlanEntry, host: str) -> int:
    return priority_on(caps, host, entry.ask.user, entry.ask.priority)


def _eligible(entry: PlanEntry) -> int:
    """The resources that it could have."""
    found = 0
    for option in entry.options:
        found |= option.shape.eligible
    return found
