"""Shortfalls: which of the resources that a reservation was granted are missing, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rota.plan.language.hostlist import fold
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.timesharing import may_share
from rota.plan.site.bitset import positions

if TYPE_CHECKING:
    from rota.plan.schedule.plan_entry import PlanEntry

#: How many hosts and jobs are named.
_NAMED: Final = 5


def missing_words(plan: Plan, entry: PlanEntry, missing: int) -> list[str]:
    """Which of its resources are missing, and why: hosts that may not be used, and jobs that still run there."""
    site = plan.site
    closed = missing & (~site.usable | site.asleep)
    by_word: dict[str, list[str]] = {}
    for host in site.hosts_of(closed):
        by_word.setdefault(site.away.get(host) or "not usable", []).append(host)
    found = [f"{fold(hosts)} {'is' if len(hosts) == 1 else 'are'} {word}" for word, hosts in by_word.items()]
    for other in plan.running.values():
        held = other.resources & missing & ~closed
        if other is entry or not held or other.home != entry.home or may_share(entry.ask, other.ask):
            continue
        number = held.bit_count()
        hosts = fold(site.hosts_of(held))
        found.append(f"job {other.id} still has {number} core{'' if number == 1 else 's'} of {hosts}")
    if len(found) > _NAMED:
        found = [*found[:_NAMED], f"and {len(found) - _NAMED} more"]
    return found


def missing_now(plan: Plan, entry: PlanEntry) -> int:
    """The resources of a reservation that it could not have now."""
    missing = entry.resources & (~plan.site.usable | plan.site.asleep)
    for other in plan.running.values():
        if other is entry or other.home != entry.home or other.ask.types.besteffort:
            continue
        if not may_share(entry.ask, other.ask):
            missing |= entry.resources & other.resources
    return missing


def begins_with_rest(plan: Plan, entry: PlanEntry) -> float | None:
    """When a reservation with unusable hosts would begin without them; None: it would not."""
    away = entry.resources & ~plan.site.usable & ~plan.site.asleep
    assert entry.start is not None
    begins = entry.start + plan.patience_s
    return None if away == entry.resources or (entry.end is not None and begins >= entry.end) else begins


def is_lacking(plan: Plan, entry: PlanEntry) -> bool:
    """Is it a reservation some of whose hosts may not be used now?"""
    if plan.counted or not entry.fixed or entry.start is None:
        return False
    return bool(entry.resources & ~plan.site.usable & ~plan.site.asleep)


def count_missing(plan: Plan, entry: PlanEntry) -> str:
    """In words, how many resources of a reservation are missing; empty: none."""
    missing = 0 if plan.counted else missing_now(plan, entry)
    if not missing:
        return ""
    number = len(list(positions(missing)))
    words = ", ".join(missing_words(plan, entry, missing))
    return f"{number} of its {entry.resources.bit_count()} cores {'is' if number == 1 else 'are'} missing: {words}"
