"""When jobs will be done, as far as that can be said: from the rate at which those of the same group ended lately,
else from how long they took, or from the user's own estimate, and how many run at once. What is not known stays
unknown: no group is taken to be like another, and a learned size, which is rounded up, is no forecast.

The cost is that of the groups and of the jobs that run, never of those that wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from rota.core.holding import cores_held, holders
from rota.core.job import Job
from rota.core.pauses import suspended_s
from rota.core.states import LIVE, State
from rota.core.world import World
from rota.manager.rates import Rates
from rota.plan.size import CORE
from rota.wire.views import StatusView

#: These end without anybody's doing; of held, blocked, suspended and lost jobs nobody can say when.
_MOVING: Final = [state.label for state in sorted(LIVE - {State.HELD, State.BLOCKED, State.SUSPENDED, State.LOST})]
#: With fewer rounds left than this, those that run now decide: a rate says nothing about a few long ones.
_ROUNDS: Final = 4
#: Further ahead nothing can be foreseen (nor written as a date).
_FAR_S: Final = 10 * 365 * 86_400.0


class Running:
    """The jobs of one group that run now."""

    __slots__ = ("jobs", "ran_s", "time_s", "timed")

    def __init__(self) -> None:
        self.jobs = 0
        self.ran_s = 0.0  #: how long, together
        self.timed = 0  #: of how many the user said how long they take
        self.time_s = 0.0  #: what was said of these, together

    def add(self, job: Job, wall: float) -> None:
        self.jobs += 1
        if job.lease is not None and job.lease.started_at is not None:
            self.ran_s += max(0.0, wall - job.lease.started_at - suspended_s(job.lease, wall))
        if "time" in job.spec.given:
            self.timed += 1
            self.time_s += job.spec.size.time_s


def foresee(status: StatusView, world: World, rates: Rates, *, now: float, wall: float) -> None:
    """Fill in rates, expected ends and the use of cores. `now` is the clock of the rates, `wall` that of
    the calendar. Belongs to the loop's own thread."""
    running = _running(status, world, wall)
    begin = datetime.fromtimestamp(wall, UTC)
    latest, unknown, rate_in_all = 0.0, False, 0.0
    for group, counts in status.groups.items():
        left = _left(counts)
        if not left:
            continue
        whole = world.counts.get(group)
        if whole is None or left != _left_of(whole):
            # The pace is known of the group as a whole, but not whose turn is next.
            unknown = True
            continue
        rate = rates.group_rate(group, now)
        if rate:
            status.group_rates[group] = rate
            rate_in_all += rate
        run = running.get(group)
        at_once = run.jobs if run else 0
        if rate and left > _ROUNDS * at_once and not rates.stalled(group, now, at_once=at_once):
            seconds: float | None = left / rate
        else:
            seconds = _by_time(left, run, rates.wall_s(group))
        if seconds is None or seconds > _FAR_S:
            unknown = True
        else:
            latest = max(latest, seconds)
            status.group_expected_end[group] = begin + timedelta(seconds=seconds)
    status.rate = rate_in_all or None
    if status.group_expected_end and not unknown:
        status.expected_end = begin + timedelta(seconds=latest)


def _running(status: StatusView, world: World, wall: float) -> dict[str, Running]:
    """The running jobs by group; the cores that they take are noted in passing."""
    found: dict[str, Running] = {}
    there = {runner.host for runner in world.runners.values() if runner.connected} & world.capacity.keys()
    taken = 0
    for job, first in holders(world):
        taken += sum(cpus for host, cpus in cores_held(job, first).items() if host in there)
        if job.state is State.RUNNING:
            found.setdefault(job.spec.group, Running()).add(job, wall)
    room = sum(world.capacity[host].cpus for host in there)
    status.cores, status.cores_in_use = room / CORE, taken / CORE
    return found


def _by_time(left: int, running: Running | None, seen_s: float | None) -> float | None:
    """How long for so many jobs, if so many go on running at once; None when it is not known."""
    if running is None:
        return None
    if seen_s is not None:
        each_s = seen_s
    elif running.timed:
        each_s = running.time_s / running.timed
    else:
        return None
    if running.ran_s > running.jobs * each_s:
        return None  # they take longer than such jobs did, and who knows how much longer
    return (left * each_s - running.ran_s) / running.jobs


def _left(counts: Mapping[str, int]) -> int:
    return sum(counts.get(label, 0) for label in _MOVING)


def _left_of(counts: list[int]) -> int:
    return sum(counts) - sum(counts[state] for state in _RESTING)


_RESTING: Final = [state for state in State if state.label not in _MOVING]
