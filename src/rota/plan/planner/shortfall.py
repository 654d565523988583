"""A reservation that begins with fewer resources than it was granted: what is missing, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from rota.plan.language.hostlist import fold
from rota.plan.placement import Given, Promised
from rota.plan.planner.timesharing import may_share
from rota.plan.site.bitset import positions

if TYPE_CHECKING:
    from rota.plan.planner.entry import Entry
    from rota.plan.planner.planner import Planner

#: Of many hosts and jobs only so many are named.
_NAMED: Final = 5


def with_promise(planner: Planner, entry: Entry, gives: Given, ids: list[int]) -> Given:
    """What it is given, and what it was granted (`ids`) if that was more."""
    if len(ids) <= entry.resources.bit_count() or planner.counted:
        return gives
    site = planner.site
    known = site.mask(id for id in ids if site.knows(id))
    nodes = tuple(site.hosts_of(known))
    gone = len(ids) - known.bit_count()
    words = missing_words(planner, entry, known & ~entry.resources)
    if gone:
        words.append(f"{gone} {'core is' if gone == 1 else 'cores are'} no longer there")
    return replace(gives, promised=Promised(len(ids), nodes, ", ".join(words)))


def missing_words(planner: Planner, entry: Entry, missing: int) -> list[str]:
    """Which of its resources are missing, and why: hosts that may not be used, and jobs that still run there."""
    site = planner.site
    closed = missing & (~site.usable | site.asleep)
    by_word: dict[str, list[str]] = {}
    for host in site.hosts_of(closed):
        by_word.setdefault(site.away.get(host) or "not usable", []).append(host)
    found = [f"{fold(hosts)} {'is' if len(hosts) == 1 else 'are'} {word}" for word, hosts in by_word.items()]
    for other in planner.running.values():
        held = other.resources & missing & ~closed
        if other is entry or not held or other.home != entry.home or may_share(entry.ask, other.ask):
            continue
        number = held.bit_count()
        hosts = fold(site.hosts_of(held))
        found.append(f"job {other.id} still has {number} core{'' if number == 1 else 's'} of {hosts}")
    if len(found) > _NAMED:
        found = [*found[:_NAMED], f"and {len(found) - _NAMED} more"]
    return found


def missing_now(planner: Planner, entry: Entry) -> int:
    """Of what a reservation was granted, that which it could not have now."""
    missing = entry.resources & (~planner.site.usable | planner.site.asleep)
    for other in planner.running.values():
        if other is entry or other.home != entry.home or other.ask.types.besteffort:
            continue
        if not may_share(entry.ask, other.ask):
            missing |= entry.resources & other.resources
    return missing


def begins_with_rest(planner: Planner, entry: Entry) -> float | None:
    """When a reservation of which hosts may not be used would begin with what is there; None: it would not."""
    away = entry.resources & ~planner.site.usable & ~planner.site.asleep
    assert entry.start is not None
    begins = entry.start + planner.patience_s
    return None if away == entry.resources or (entry.end is not None and begins >= entry.end) else begins


def is_lacking(planner: Planner, entry: Entry) -> bool:
    """Is it a reservation with hosts that may not be used now?"""
    if planner.counted or not entry.fixed or entry.start is None:
        return False
    return bool(entry.resources & ~planner.site.usable & ~planner.site.asleep)


def count_missing(planner: Planner, entry: Entry) -> str:
    """In words, how much is missing of what a reservation was granted; empty: nothing is."""
    missing = 0 if planner.counted else missing_now(planner, entry)
    if not missing:
        return ""
    number = len(list(positions(missing)))
    words = ", ".join(missing_words(planner, entry, missing))
    return f"{number} of its {entry.resources.bit_count()} cores {'is' if number == 1 else 'are'} missing: {words}"
