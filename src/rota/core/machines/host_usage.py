"""Usage history of hosts: one row per change of state, the last one still open.

Sampled once a second: shorter states are missed, but no time is lost or counted twice.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from rota.core.accounts.accounting import micros
from rota.core.restart import Restart
from rota.core.turn import Turn
from rota.core.world import World

BUSY: Final = "busy"
DRAINING: Final = "draining"  #: busy, and no new job may begin
IDLE: Final = "idle"
DRAINED: Final = "drained"  #: connected, but an administrator lets nothing run there
SUSPECTED: Final = "suspected"  #: connected, but a hook or an administrator found it unfit
CLOSED: Final = "closed"  #: connected, but outside its hours or past `available_until`
ASLEEP: Final = "asleep"  #: put to sleep; it can be woken
AWAY: Final = "away"  #: no runner answers
UNSEEN: Final = "unseen"  #: no manager was running
GONE: Final = "gone"  #: no longer a host of this deployment
STATES: Final = (BUSY, DRAINING, IDLE, DRAINED, SUSPECTED, CLOSED, ASLEEP, AWAY, UNSEEN, GONE)

#: Grace after a restart: so long, a host is not taken for away, because its runner may be reconnecting.
RETURN_S: Final = 60.0


def restore_host_states(world: World, restart: Restart) -> None:
    """Restore the last written states. Hosts whose runners answered are awaited."""
    world.host_states = dict(restart.snapshot.host_states)
    world.awaited_hosts = {host for host, (state, _at) in world.host_states.items() if state != AWAY}


def record_host_states(world: World, turn: Turn) -> None:
    """Write a row for each host whose state changed."""
    if world.stopping:
        return  # see `mark_hosts_unseen`
    holding: dict[str, bool] = {}  #: hosts whose runner answers → has it work?
    for runner in world.runners.values():
        if runner.connected and not runner.silent:
            there = bool(runner.leases) or runner.host in world.parts_at
            holding[runner.host] = there or holding.get(runner.host, False)
    if world.awaited_hosts:
        _await_runners(world, turn, holding.keys())
    records = world.site["host"]
    for host in world.capacity:
        state = BUSY if (busy := holding.get(host)) else AWAY if busy is None else IDLE
        if state is not AWAY:
            if (record := records.get(host)) is not None:
                state = _unused(record, state)
            if state is IDLE and host in world.closed_hosts:
                state = CLOSED
        if (
            state is AWAY
            and (energy := world.site["energy"].get(host)) is not None
            and energy["state"] != "failed"
        ):
            state = ASLEEP
        if state is AWAY and host in world.awaited_hosts:
            continue
        known = world.host_states.get(host)
        if known is None or known[0] != state:
            _write(world, turn, host, state)
    if len(world.host_states) > len(world.capacity):
        for host in world.host_states.keys() - world.capacity.keys():
            if world.host_states[host][0] != GONE:
                _write(world, turn, host, GONE)
            del world.host_states[host]


def mark_hosts_unseen(world: World, turn: Turn) -> None:
    """The manager stops: from now on nothing is observed."""
    for host, (state, _at) in list(world.host_states.items()):
        if state in (BUSY, DRAINING, IDLE):  # other states do not depend on a running manager
            _write(world, turn, host, UNSEEN)


def _await_runners(world: World, turn: Turn, there: Collection[str]) -> None:
    """Stop awaiting hosts whose runners came back, and all of them when the grace is over."""
    if world.awaited_until is None:
        world.awaited_until = turn.mono + RETURN_S
    world.awaited_hosts.difference_update(there)
    if turn.mono >= world.awaited_until:
        world.awaited_hosts.clear()


def _unused(record: dict[str, object], state: str) -> str:
    """The state of a connected host according to its record."""
    recorded = record.get("state", "alive")
    if recorded == "alive" and not record.get("drain"):
        return state
    if state is BUSY:
        return DRAINING
    return SUSPECTED if recorded == "suspected" else DRAINED


def _write(world: World, turn: Turn, host: str, state: str) -> None:
    before = world.host_states.get(host)
    at = micros(turn.wall)
    if before is not None:
        at = max(at, before[1] + 1)  # the clock may have been set back
    world.host_states[host] = (state, at)
    turn.changes.host_states.append((host, at, state))
