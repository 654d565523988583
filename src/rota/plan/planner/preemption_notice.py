"""Besteffort jobs in the way of a reservation are told to leave so early that they are gone when it begins.

How long each may take is `Ask.leave_s`. Only reservations are worth it: all other starts may still move.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from rota.plan.planner import besteffort
from rota.plan.planner.entry import Entry

if TYPE_CHECKING:
    from rota.plan.planner.planner import Planner


def reserved(planner: Planner, entry: Entry) -> None:
    """A reservation was granted: whoever runs there already may have to leave in time."""
    for guest in planner.guests.values():
        _expect(planner, guest, entry)


def guest_runs(planner: Planner, guest: Entry) -> None:
    """A besteffort job began, perhaps where something is reserved."""
    for entry in planner.reserved.values():
        _expect(planner, guest, entry)


def _expect(planner: Planner, guest: Entry, entry: Entry) -> None:
    if guest.ask.leave_s > 0 and entry.start is not None and _may_be_in_the_way(planner, guest, entry):
        heappush(planner.notices, (entry.start - guest.ask.leave_s, entry.id))


def _may_be_in_the_way(planner: Planner, guest: Entry, entry: Entry) -> bool:
    """Might it hold, when the reservation begins, something of what that was given?"""
    if _ends_before(guest, entry):
        return False
    if besteffort.is_in_the_way(guest, entry):
        return True
    if guest.taking is None or entry.taking is None or not guest.taking.keys() & entry.taking.keys():
        return False
    return not set(planner.site.hosts_of(guest.resources)).isdisjoint(planner.site.hosts_of(entry.resources))


def _ends_before(guest: Entry, entry: Entry) -> bool:
    """Does its walltime end it before the reservation begins?"""
    if not guest.options or guest.end is None or entry.start is None or guest.end > entry.start:
        return False
    return guest.options[min(guest.alternative, len(guest.options) - 1)].hard


def give(planner: Planner, now: float) -> None:
    """Tell those whose time to leave has come: they are in `planner.noticed` then, with the reservation."""
    due = set()
    while planner.notices and planner.notices[0][0] <= now:
        due.add(heappop(planner.notices)[1])
    for id in sorted(due):
        entry = planner.reserved.get(id)
        if entry is None or entry.start is None or entry.start <= now or planner.counted:
            continue  # who begins now ends the others by itself
        before = entry.resources
        besteffort.avoid(planner, entry, now)
        if entry.resources != before:
            planner.exchanged.append(id)
        for victim in besteffort.victims(planner, entry):
            guest = planner.running[victim]
            moment = entry.start - guest.ask.leave_s
            if _ends_before(guest, entry):
                continue
            if moment <= now:
                planner.told_for.add(id)
                planner.noticed.append((victim, id, entry.start))
            else:
                heappush(planner.notices, (moment, id))
