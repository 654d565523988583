"""Hosts outside their hours or past `available_until`: no new work goes there.

The planner knows both in advance (`plan.site.availability`). This is for jobs that are placed without a plan.
"""

from __future__ import annotations

from rota.core.feature import Feature
from rota.core.machines.closed_hosts import ClosedHosts, closed_hosts
from rota.core.machines.nodes import update_usable
from rota.core.turn import Turn
from rota.core.world import World
from rota.plan.site.availability import closed_spans
from rota.plan.site.clock import Clock
from rota.plan.site.site_builder import host_record, hours_of

#: Hours are weekly, so the next change is within this time.
_AHEAD_S = 8 * 86400.0


def update_closed_hosts(world: World, turn: Turn) -> None:
    """Find the hosts that are closed now, and update those that changed."""
    records = world.site
    limited = {
        host
        for kind in ("node", "host")
        for host, its in records[kind].items()
        if its.get("hours") or its.get("available_until") is not None
    }
    state = world.use(ClosedHosts)
    if not limited and not state.hosts:
        return
    closed = {host for host in limited if _is_closed(world, host, turn)}
    changed = closed ^ state.hosts
    state.hosts = closed
    for host in changed:
        update_usable(world, host)


def _is_closed(world: World, host: str, turn: Turn) -> bool:
    record = host_record(world.site, host)
    if record.available_until is not None and record.available_until <= turn.wall:
        return True
    hours = hours_of(world.site, host, record)
    return bool(hours) and not _is_open(world, hours, turn)


def _is_open(world: World, hours: str, turn: Turn) -> bool:
    hours_now = world.use(ClosedHosts).hours_now
    known = hours_now.get(hours)
    if known is None or not known[1] <= turn.wall < known[2]:
        known = hours_now[hours] = _stretch(hours, Clock(world.zone), turn.wall)
    return known[0]


def _stretch(hours: str, clock: Clock, at: float) -> tuple[bool, float, float]:
    """Return (open now?, valid from, valid until)."""
    spans = closed_spans(hours, clock, at, at + _AHEAD_S)
    if spans and spans[0][0] <= at:
        return False, at, spans[0][1]
    return True, at, spans[0][0] if spans else at + _AHEAD_S


def _forget_hours(world: World, _turn: Turn, _by: float) -> None:
    world.use(ClosedHosts).hours_now.clear()


def _is_closed_now(world: World, host: str) -> bool:
    return host in closed_hosts(world)


#: Always in use: any record of a host or node may have hours.
FEATURE = Feature(
    name="host hours",
    state=ClosedHosts,
    always=True,
    on_timer=update_closed_hosts,
    clock_moved=_forget_hours,
    closes_host=_is_closed_now,
)
