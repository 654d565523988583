"""What a machine is now. Nothing else derives it.

Its condition comes from its record, its usage from the jobs that hold it, and the state of its node from its
agent, its record, its hours and its power.
"""

from __future__ import annotations

from typing import Any

from rota.core.machines.closed_hosts import closed_hosts
from rota.core.machines.machine_states import (
    GONE,
    Condition,
    MachineState,
    NodeState,
    Usage,
    furthest,
    machine_state,
)
from rota.core.machines.machine_use import MachineUse
from rota.core.world import Runner, World


def machine_now(world: World, host: str) -> MachineState:
    """Condition, usage and node state of a machine."""
    condition = condition_of(world, host)
    usage = usage_of(world, host) if condition in (Condition.AUTOMATED, Condition.MANUAL) else Usage.IDLE
    what = machine_state(condition, usage, node_state(world, host))
    # Only a machine without a record is gone: stores leave those out when a manager starts.
    return what._replace(state=NodeState.AWAY) if what == GONE else what


def since_of(world: World, host: str) -> int | None:
    """Since when a machine is what it is, in microseconds since 1970; None: not known yet."""
    row = world.use(MachineUse).open.get(host)
    return None if row is None else row.at


def may_begin_there(world: World, host: str) -> bool:
    """May jobs begin there? Otherwise its free cores are no capacity. An agent that is away is another matter."""
    record = world.site["host"].get(host)
    if record is not None and not _is_fit(record):
        return False
    return condition_of(world, host) is Condition.AUTOMATED and host not in closed_hosts(world)


# ------------------------------------------------------------------ condition


def condition_of(world: World, host: str) -> Condition:
    """The condition of a machine, from its record."""
    record = world.site["host"].get(host)
    return Condition.AUTOMATED if record is None else Condition(record.get("condition", Condition.AUTOMATED))


def is_reserved(world: World, host: str) -> bool:
    """Has a user reserved this machine by hand?"""
    record = world.site["host"].get(host)
    return record is not None and bool(record.get("manual_user"))


# ------------------------------------------------------------------ usage


def usage_of(world: World, host: str) -> Usage:
    """What a machine is used for. Of several jobs the furthest counts."""
    use = world.use(MachineUse)
    if use.begun.get(host) or use.kept.get(host):
        return Usage.RUNNING
    if jobs := use.held.get(host):
        if not use.phases:
            return Usage.SCHEDULED
        return furthest(use.phases.get(job, Usage.SCHEDULED) for job in jobs)
    if is_reserved(world, host):
        return Usage.RUNNING
    return Usage.PENDING if host in use.pending else Usage.IDLE


# ------------------------------------------------------------------ node state


def node_state(world: World, host: str) -> NodeState:
    """The state of the node, as the manager sees it."""
    runner = answering(world, host)
    if runner is None:
        energy = world.site["energy"].get(host)
        if energy is not None and energy["state"] != "failed":
            return NodeState.ASLEEP
        use = world.use(MachineUse)
        # Its agent may be reconnecting: its last known state stands until the grace is over.
        return NodeState(use.open[host].state) if host in use.awaited and host in use.open else NodeState.AWAY
    record = world.site["host"].get(host)
    if record is not None:
        if record.get("state") == "suspected":
            return NodeState.SUSPECTED
        if not _is_fit(record):
            return NodeState.DRAINED
    if host in closed_hosts(world):
        return NodeState.CLOSED
    return NodeState.DRAINED if runner.leaving else NodeState.ALIVE


def answering(world: World, host: str) -> Runner | None:
    """The runner of a host, if it answers."""
    runner = world.runners.get(world.runner_at.get(host, ""))
    return runner if runner is not None and runner.connected and not runner.silent else None


def _is_fit(record: dict[str, Any]) -> bool:
    """Is the host alive and not drained, by its record?"""
    return record.get("state", "alive") == "alive" and not record.get("drain")
