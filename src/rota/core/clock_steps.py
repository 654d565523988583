"""The wall clock was set and the manager follows it: durations so far stay what they were.

Times of unended jobs move with the clock. Dates that people chose (reservations, hours, quota periods) stay, and
the plan is rebuilt around them. Records of what has ended stay.
"""

from __future__ import annotations

from heapq import heapify

from rota.core.events import ClockMoved
from rota.core.jobs.job import Job
from rota.core.site import plan_facts
from rota.core.states import TERMINAL
from rota.core.turn import NO_JOB_ID, Turn
from rota.core.world import World
from rota.errors import Bug
from rota.units import about_duration


def on_clock_moved(world: World, turn: Turn, event: ClockMoved) -> None:
    """Shift the times of unended jobs by as much as the clock.

    Must be the first event of its batch: the store shifts its rows before it writes any.
    """
    if turn.changes:
        raise Bug("the clock was moved in the middle of a batch")
    by = event.by
    turn.changes.moved_by = by
    for job in world.jobs.values():
        if job.state not in TERMINAL:
            _move(job, by)
    world.delayed_until = [(at + by, id) for at, id in world.delayed_until]
    heapify(world.delayed_until)
    for clock_moved in world.points.clock_moved:
        clock_moved(world, turn, by)
    if world.placement.planner is not None:
        plan_facts.inform(world, turn.wall, anew=True)
        world.placement.clock_moved(turn.wall)
    way = "forward" if by > 0 else "back"
    turn.note(NO_JOB_ID, 0, "clock", f"the clock was set {way} by {about_duration(abs(by))}, and is followed")


def _move(job: Job, by: float) -> None:
    job.submitted_at += by
    if job.ready_at is not None:
        job.ready_at += by
    if job.due_at is not None:
        job.due_at += by
    lease = job.lease
    if lease is None:
        return
    lease.leased_at += by
    if lease.started_at is not None:
        lease.started_at += by
