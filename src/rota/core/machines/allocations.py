"""Allocations of other engines: when a runner with a ticket must stop taking jobs.

A runner gets no more jobs once another one of its group would outlive the allocation, or when its pool no longer
wants it. It finishes the jobs that it has and is then sent away.
"""

from __future__ import annotations

from rota.core.effects import DismissRunner
from rota.core.events import RunnerJoined
from rota.core.feature import Feature
from rota.core.machines.nodes import update_usable
from rota.core.machines.ticket_grants import TicketGrant
from rota.core.turn import Turn
from rota.core.world import Runner, World
from rota.plan.need import Need


class Allocations:
    """State of the feature `allocations`."""

    __slots__ = ("closed", "ends_at")

    def __init__(self) -> None:
        self.ends_at: dict[str, float] = {}  #: runner → monotonic time at which its allocation ends
        self.closed: set[str] = set()  #: runners that get no more jobs


def seconds_for(need: Need, grace_s: float) -> float:
    """How long an allocation must last for a job of this need to begin there."""
    return max(need.size.time_s, need.walltime_s + grace_s if need.walltime_s else 0.0)


def take_allocation(world: World, turn: Turn, runner: Runner, event: RunnerJoined, grant: TicketGrant) -> None:
    """A runner with a ticket joins, and says how much time it has."""
    allocations = world.use(Allocations)
    runner.pool, runner.machine = grant.pool, event.machine
    if event.left_s is None:
        allocations.ends_at.pop(runner.id, None)
    else:
        allocations.ends_at[runner.id] = turn.mono + event.left_s
    allocations.closed.discard(runner.id)
    if not grant.valid or _is_short(world, runner, turn):
        allocations.closed.add(runner.id)


def _is_short(world: World, runner: Runner, turn: Turn) -> bool:
    """Would a job that begins now outlive the allocation?"""
    ends_at, need = world.use(Allocations).ends_at.get(runner.id), runner.made_for
    if ends_at is None or need is None:
        return False
    return turn.mono + seconds_for(need, world.settings.vacate_times.grace_s) > ends_at


def _dismiss_closed(world: World, turn: Turn, runner: Runner, _event: RunnerJoined) -> None:
    """Send away a runner that joined after it was closed; its rules were sent, so it knows that it has joined."""
    if runner.id in world.use(Allocations).closed and not runner.leases:
        turn.effects.append(DismissRunner(runner.id))


def _close_short(world: World, turn: Turn) -> None:
    """Close allocations in which no further job would end in time."""
    allocations = world.use(Allocations)
    for id in (*allocations.ends_at, *allocations.closed):
        if id not in world.runners:
            allocations.ends_at.pop(id, None)
            allocations.closed.discard(id)
    for id in allocations.ends_at.keys() - allocations.closed:
        runner = world.runners[id]
        if _is_short(world, runner, turn):
            close_allocation(world, turn, runner)


def close_allocation(world: World, turn: Turn, runner: Runner) -> None:
    """Give this runner no more jobs. It leaves when it has none left."""
    world.use(Allocations).closed.add(runner.id)
    update_usable(world, runner.host)
    if runner.connected and not runner.leases:
        turn.effects.append(DismissRunner(runner.id))


def _is_closed(world: World, host: str) -> bool:
    return world.runner_at.get(host) in world.use(Allocations).closed


FEATURE = Feature(
    name="allocations",
    state=Allocations,
    on_timer=_close_short,
    closes_host=_is_closed,
    runner_joined=_dismiss_closed,
)
