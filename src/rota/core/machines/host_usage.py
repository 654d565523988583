"""Usage history of hosts: one row per change of state, the last one still open.

Sampled once a second: shorter states are missed, but no time is lost or counted twice.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from rota.core.accounts.accounting import micros
from rota.core.attempts.parts import jobs_with_part
from rota.core.feature import Feature
from rota.core.machines.closed_hosts import closed_hosts
from rota.core.restart import Restart
from rota.core.rows import HostState, HostStateRow
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


class HostUsage:
    """State of the feature `host usage`."""

    __slots__ = ("awaited", "awaited_until", "states")

    def __init__(self) -> None:
        self.states: dict[str, HostState] = {}  #: by host, as last written
        #: After a restart: hosts whose runners may still come back, and until when (monotonic) to wait for them;
        #: None: the wait has not begun.
        self.awaited: set[str] = set()
        self.awaited_until: float | None = None


def restore_host_states(world: World, restart: Restart) -> None:
    """Restore the last written states. Hosts whose runners answered are awaited."""
    usage = world.use(HostUsage)
    usage.states = dict(restart.snapshot.host_states)
    usage.awaited = {host for host, (state, _at) in usage.states.items() if state != AWAY}


def record_host_states(world: World, turn: Turn) -> None:
    """Write a row for each host whose state changed."""
    if world.stopping:
        return  # see `mark_hosts_unseen`
    holding: dict[str, bool] = {}  #: hosts whose runner answers → has it work?
    for runner in world.runners.values():
        if runner.connected and not runner.silent:
            there = bool(runner.leases or jobs_with_part(world, runner.host))
            holding[runner.host] = there or holding.get(runner.host, False)
    usage = world.use(HostUsage)
    if usage.awaited:
        _await_runners(usage, turn, holding.keys())
    records, closed = world.site["host"], closed_hosts(world)
    for host in world.capacity:
        state = BUSY if (busy := holding.get(host)) else AWAY if busy is None else IDLE
        if state is not AWAY:
            if (record := records.get(host)) is not None:
                state = _unused(record, state)
            if state is IDLE and host in closed:
                state = CLOSED
        if (
            state is AWAY
            and (energy := world.site["energy"].get(host)) is not None
            and energy["state"] != "failed"
        ):
            state = ASLEEP
        if state is AWAY and host in usage.awaited:
            continue
        known = usage.states.get(host)
        if known is None or known.state != state:
            _write(usage, turn, host, state)
    if len(usage.states) > len(world.capacity):
        for host in usage.states.keys() - world.capacity.keys():
            if usage.states[host].state != GONE:
                _write(usage, turn, host, GONE)
            del usage.states[host]


def mark_hosts_unseen(world: World, turn: Turn) -> None:
    """The manager stops: from now on nothing is observed."""
    usage = world.use(HostUsage)
    for host, (state, _at) in list(usage.states.items()):
        if state in (BUSY, DRAINING, IDLE):  # other states do not depend on a running manager
            _write(usage, turn, host, UNSEEN)


def _await_runners(usage: HostUsage, turn: Turn, there: Collection[str]) -> None:
    """Stop awaiting hosts whose runners came back, and all of them when the grace is over."""
    if usage.awaited_until is None:
        usage.awaited_until = turn.mono + RETURN_S
    usage.awaited.difference_update(there)
    if turn.mono >= usage.awaited_until:
        usage.awaited.clear()


def _unused(record: dict[str, object], state: str) -> str:
    """The state of a connected host according to its record."""
    recorded = record.get("state", "alive")
    if recorded == "alive" and not record.get("drain"):
        return state
    if state is BUSY:
        return DRAINING
    return SUSPECTED if recorded == "suspected" else DRAINED


def _write(usage: HostUsage, turn: Turn, host: str, state: str) -> None:
    before = usage.states.get(host)
    at = micros(turn.wall)
    if before is not None:
        at = max(at, before.at + 1)  # the clock may have been set back
    usage.states[host] = HostState(state, at)
    turn.changes.host_states.append(HostStateRow(host, at, state))


FEATURE = Feature(
    name="host usage",
    state=HostUsage,
    always=True,
    restore=restore_host_states,
    on_timer=record_host_states,
    stopping=mark_hosts_unseen,
)
