"""Delayed jobs wait again when their delay is over."""

from __future__ import annotations

from heapq import heappop

from rota.core.jobs.dependencies import enter_waiting, waiting_state
from rota.core.jobs.retry import MAX_DELAY_S
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import World


def end_delays(world: World, turn: Turn) -> None:
    """Queue the jobs whose delay is over."""
    due = world.delayed_until
    # A delay longer than the longest possible one means that the clock was set back: it is over too.
    while due and not turn.wall < due[0][0] <= turn.wall + MAX_DELAY_S:
        when, id = heappop(due)
        job = world.jobs.get(id)
        # The job may have been retried, held or killed in the meantime.
        if job is not None and job.state is State.DELAYED and (job.due_at == when or not job.due_at):
            job.due_at = None
            enter_waiting(world, turn, job, waiting_state(world, job))


def next_delay(world: World) -> float | None:
    """Return the wall time at which the next delay is over."""
    due = world.delayed_until
    while due:
        when, id = due[0]
        job = world.jobs.get(id)
        if job is not None and job.state in (State.DELAYED, State.HELD) and job.due_at == when:
            return when
        heappop(due)
    return None
