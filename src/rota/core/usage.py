"""How hosts spend their time: one row for each change of what a host does, the last of them still open.

Looked at once a second: what begins and ends in between is not seen, but no time is lost or counted twice.
"""

from __future__ import annotations

from typing import Final

from rota.core.accounting import micros
from rota.core.turn import Turn
from rota.core.world import World

BUSY: Final = "busy"
IDLE: Final = "idle"
DRAINED: Final = "drained"  #: it is there, but an administrator lets nothing run there
SUSPECTED: Final = "suspected"  #: it is there, but a hook or an administrator found it unfit
ASLEEP: Final = "asleep"  #: it was put to sleep, and can be woken
AWAY: Final = "away"  #: no runner answers there, or nobody is there to ask
GONE: Final = "gone"  #: it is not one of our hosts any more
STATES: Final = (BUSY, IDLE, DRAINED, SUSPECTED, ASLEEP, AWAY, GONE)


def look_at_hosts(world: World, turn: Turn) -> None:
    """Write down which hosts do something else than before."""
    if world.stopping:
        return  # see `leave_hosts`
    holding: dict[str, bool] = {}  #: hosts whose runner answers → is something there?
    for runner in world.runners.values():
        if runner.connected and not runner.silent:
            there = bool(runner.leases) or runner.host in world.parts_at
            holding[runner.host] = there or holding.get(runner.host, False)
    records = world.site["host"]
    for host in world.capacity:
        state = BUSY if (busy := holding.get(host)) else AWAY if busy is None else IDLE
        if state is IDLE and (record := records.get(host)) is not None:
            state = _unused(record)
        if (
            state is AWAY
            and (energy := world.site["energy"].get(host)) is not None
            and energy["state"] != "failed"
        ):
            state = ASLEEP
        known = world.host_states.get(host)
        if known is None or known[0] != state:
            _write(world, turn, host, state)
    if len(world.host_states) > len(world.capacity):
        for host in world.host_states.keys() - world.capacity.keys():
            if world.host_states[host][0] != GONE:
                _write(world, turn, host, GONE)
            del world.host_states[host]


def leave_hosts(world: World, turn: Turn) -> None:
    """The manager stops: what hosts do from now on is not seen."""
    for host, (state, _at) in list(world.host_states.items()):
        if state not in (AWAY, GONE):
            _write(world, turn, host, AWAY)


def _unused(record: dict[str, object]) -> str:
    """What a host does on which nothing is, by what is written down about it."""
    state = record.get("state", "alive")
    if state == "suspected":
        return SUSPECTED
    return DRAINED if record.get("drain") or state != "alive" else IDLE


def _write(world: World, turn: Turn, host: str, state: str) -> None:
    before = world.host_states.get(host)
    at = micros(turn.wall)
    if before is not None:
        at = max(at, before[1] + 1)  # the clock may have been set back
    world.host_states[host] = (state, at)
    turn.changes.host_states.append((host, at, state))
