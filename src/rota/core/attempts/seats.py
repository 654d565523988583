"""The leases and seats that each runner is known to have.

A lease needs a seat of its size: `Runner.unseated` counts, by size, leases minus seats.
"""

from __future__ import annotations

from rota.core.jobs.job import Job
from rota.core.world import Runner, World
from rota.plan.size import Size


def take_lease(runner: Runner, job: Job) -> None:
    """The runner holds this lease from now on."""
    runner.leases.add(job.id)
    count_unseated(runner, job.size, 1)


def take_seat(runner: Runner, seat: int, size: Size) -> None:
    """The runner has this seat from now on."""
    runner.seats[seat] = size
    count_unseated(runner, size, -1)


def count_unseated(runner: Runner, size: Size, more: int) -> None:
    """Add to the number of leases of this size without a seat."""
    number = runner.unseated[size] = runner.unseated[size] + more
    if not number:
        del runner.unseated[size]


def adopt_seat(world: World, runner: Runner, seat: int, job: Job) -> None:
    """Record a seat of the job's size that the runner reports, known or not."""
    if seat not in runner.seats:
        take_seat(runner, seat, job.size)
        world.placement.adopt(seat, runner.host, job.size)


def close_seat(world: World, runner: Runner, seat: int) -> None:
    """The runner has closed this seat. Seats of other runners are left alone."""
    size = runner.seats.pop(seat, None)
    if size is not None:
        count_unseated(runner, size, 1)
        world.placement.close(seat)


def vacate_seat(world: World, runner: Runner, *, job: int, seat: int, size: Size) -> None:
    """Close the seat of a job of which nothing is left.

    If its seat is unknown, any seat of that size without a known lease will do.
    """
    if seat not in runner.seats:
        known = {lease.seat for id in runner.leases if (lease := world.jobs[id].lease) is not None}
        spare = [each for each, its in runner.seats.items() if its == size and each not in known]
        if not spare or runner.unseated.get(size, 0) >= 0:
            return
        seat = -job if -job in spare else spare[-1]
    close_seat(world, runner, seat)
