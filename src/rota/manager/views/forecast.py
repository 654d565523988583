"""Expected starts and ends, shared by all answers: computed off the loop, and cached for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Final

from rota.core.attempts.held_resources import cores_held, holders
from rota.core.forecast.expectation import RESTING, ForecastSnapshot, Unknown, snapshot
from rota.core.forecast.expected_times import Expectations
from rota.core.jobs.job import Job
from rota.core.jobs.report_groups import by_name, names_of
from rota.core.machines.hosts import counted_cores
from rota.core.machines.machine_now import may_begin_there
from rota.core.states import LIVE, State
from rota.core.world import World
from rota.manager.loop import clock
from rota.manager.loop.readers import Readers
from rota.manager.metrics.rates import Rates
from rota.manager.views.expected_times import moment, reason_view
from rota.plan.size import CORE
from rota.wire.views import StatusView

#: With so few jobs it is computed on the loop: that is quicker than a worker thread.
_FEW: Final = 500
#: A forecast that took a second to compute is used for so many seconds.
_REST: Final = 20.0


class Forecasts:
    """The newest expectations, which all answers share."""

    def __init__(self, world: World, rates: Rates, readers: Readers) -> None:
        self._world = world
        self._rates = rates
        self._readers = readers
        self.latest: Expectations | None = None
        self._until = 0.0  #: monotonic time until which it is used
        self._pending: asyncio.Task[Expectations] | None = None

    async def current(self) -> Expectations:
        """The forecast, which may be a few moments old if many jobs wait. Belongs to the loop's thread."""
        if self.latest is not None and time.monotonic() < self._until:
            return self.latest
        if self._pending is None or self._pending.done():
            self._pending = asyncio.get_running_loop().create_task(self._work_out())
        return await asyncio.shield(self._pending)

    async def _work_out(self) -> Expectations:
        taken = self.snapshot()
        begun = time.thread_time()
        if len(self._world.jobs) <= _FEW:
            found, took = Expectations(taken), time.thread_time() - begun
        else:
            found, took = await self._readers.read(lambda: _timed(taken))
        self.latest, self._until = found, time.monotonic() + _REST * took
        return found

    def snapshot(self) -> ForecastSnapshot:
        """The input of a forecast."""
        return snapshot(self._world, self._rates, now=time.monotonic(), wall=clock.now())


def _timed(taken: ForecastSnapshot) -> tuple[Expectations, float]:
    begun = time.thread_time()
    return Expectations(taken), time.thread_time() - begun


def measure(status: StatusView, world: World, rates: Rates, *, now: float) -> None:
    """Fill in how fast jobs end, and the use of cores. Belongs to the loop's thread."""
    paces: dict[str, float] = {}
    keys = by_name(list(world.counts))
    for group, counts in status.groups.items():
        whole = keys.get(group, ())
        if not _left(counts) or _left(counts) != sum(_left_of(world.counts[key]) for key in whole):
            continue  # the rate is known for the whole group only
        found = {key: rate for key in whole if (rate := rates.group_rate(key, now))}
        if found:
            status.group_rates[group] = sum(found.values())
            paces |= found  # a job in several groups ends once
    status.rate = sum(paces.values()) or None
    there = {runner.host for runner in world.runners.values() if runner.connected} & world.capacity.keys()
    taken = dict.fromkeys(there, 0)
    for job, first in holders(world):
        for host, cpus in cores_held(job, first).items():
            if host in taken:
                taken[host] += cpus
    capacity = sum(
        counted_cores(world.capacity[host].cpus, used, usable=may_begin_there(world, host))
        for host, used in taken.items()
    )
    status.cores, status.cores_in_use = capacity / CORE, sum(taken.values()) / CORE


def foresee(status: StatusView, expected: Expectations, jobs: Iterable[Job] | None = None) -> None:
    """Fill in when groups end, counting all their jobs or only these, or why that is unknown."""
    ends, unknown = _of_names(expected.group_end, expected.group_unknown)
    if jobs is not None:
        ends, unknown = {}, {}
        by_group: dict[str, list[Job]] = {}
        for job in jobs:
            for name in names_of(job.spec.group):
                by_group.setdefault(name, []).append(job)
        for group, some in by_group.items():
            end, why = expected.end_of(some)
            if end is not None:
                ends[group] = end
            elif why is not None:
                unknown[group] = why
    latest: float | None = None
    first: Unknown | None = None
    for group, counts in status.groups.items():
        if not _left(counts):
            resting = _resting(counts)
            if resting is not None:
                status.group_end_reasons[group] = reason_view(resting)
                first = first or resting
            continue
        end, why = ends.get(group), unknown.get(group)
        if end is None:
            status.group_end_reasons[group] = reason_view(why or _NEW)
            first = why or _NEW
        else:
            status.group_expected_end[group] = moment(end)
            latest = end if latest is None else max(latest, end)
            if (resting := _resting(counts)) is not None:
                status.group_end_reasons[group] = reason_view(resting)
    if latest is not None and not any(
        _left(status.groups[each]) for each in status.group_end_reasons if each not in status.group_expected_end
    ):
        status.expected_end = moment(latest)
    if first is not None:
        status.end_reason = reason_view(first)


def _of_names(ends: dict[str, float], unknown: dict[str, Unknown]) -> tuple[dict[str, float], dict[str, Unknown]]:
    """Ends by group name, where a job may be in several groups."""
    why: dict[str, Unknown] = {}
    for key, reason in unknown.items():
        for name in names_of(key):
            why.setdefault(name, reason)
    found: dict[str, float] = {}
    for key, end in ends.items():
        for name in names_of(key):
            if name not in why:
                found[name] = max(end, found.get(name, 0.0))
    return found, why


_NEW: Final = Unknown("new", "its jobs have only just come")


def _resting(counts: dict[str, int]) -> Unknown | None:
    """The reason why a group does not end by itself: some of its jobs need an action."""
    for state in RESTING:
        if number := counts.get(state.label, 0):
            return Unknown(state.label, f"{number:,} of its jobs {'is' if number == 1 else 'are'} {state.label}")
    return None


_MOVING: Final = [state.label for state in sorted(LIVE - RESTING.keys())]


def _left(counts: dict[str, int]) -> int:
    return sum(counts.get(label, 0) for label in _MOVING)


def _left_of(counts: list[int]) -> int:
    return sum(counts[state] for state in State if state.label in _MOVING)
