"""The vocabulary of forecasts, and the snapshot that they are computed from.

Taking a snapshot costs a copy of what runs, waits and is planned.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from rota.core.attempts.parts import all_leased
from rota.core.jobs.job import Job
from rota.core.site.manager_pause import why_nothing_starts
from rota.core.states import LIVE, State
from rota.core.world import World
from rota.plan.forecast import planned_jobs
from rota.plan.placement.explanation import Waiting
from rota.plan.policy.limits import Limit
from rota.plan.size import Capacity


class Unknown(NamedTuple):
    """Why a time is unknown: a stable code and a sentence."""

    code: str
    message: str


class Expected(NamedTuple):
    """The expected start and end of a job, as far as known."""

    start: float | None = None  #: for a waiting job
    end: float | None = None
    unknown: Unknown | None = None  #: why the end, or the start, is unknown


class Pacing(Protocol):
    """Measured rates at which the jobs of a group end."""

    def group_rate(self, group: str, now: float) -> float | None: ...
    def stalled(self, group: str, now: float, *, at_once: int) -> bool: ...
    def wall_s(self, group: str) -> float | None: ...


NO_ESTIMATE: Final = Unknown(
    "no_estimate", "no --time or --walltime was given, and too few similar jobs have ended"
)
OVERDUE: Final = Unknown("overdue", "it has run for longer than such jobs do, and it has no walltime")
AHEAD: Final = Unknown("no_estimate", "the ends of the jobs before it are not known")
NO_ROOM: Final = Unknown("no_resources", "no host that is there now could run it")
ELSEWHERE: Final = Unknown("pool", "it begins when the engine of its pool has started a runner")
FAR: Final = Unknown("far", "not within ten years")
NEW: Final = Unknown("new", "it was added a moment ago")
MANY: Final = Unknown("many", "too many jobs wait for others to say when each of them begins")
EMPTY: Final = Unknown("empty_group", "nothing has joined it yet")
RESTING: Final = {
    State.HELD: Unknown("held", "it is held until it is released"),
    State.BLOCKED: Unknown("blocked", "what it waits for failed"),
    State.SUSPENDED: Unknown("suspended", "it is suspended until it is resumed"),
    State.LOST: Unknown("lost", "its runner is silent"),
}


class ForecastSnapshot(NamedTuple):
    """Everything that a forecast is computed from.

    The jobs themselves are shared and go on; a forecast skips those that changed since.
    """

    world: World
    wall: float
    stopped: Unknown | None  #: why nothing starts
    leased: list[Job]
    plan: planned_jobs.PlanSnapshot | None
    waiting: list[Waiting]
    capacities: list[Capacity]
    limits: dict[str, Limit]
    delayed: list[tuple[float, int]]
    dependent: list[int]
    rates: dict[str, float]
    seen_s: dict[str, float]  #: report group → average duration of its jobs


def snapshot(world: World, pacing: Pacing | None, *, now: float, wall: float) -> ForecastSnapshot:
    """Take a snapshot. Must run in the thread that changes the world.

    `now` is the monotonic clock of the rates, `wall` the wall clock.
    """
    placement = world.placement
    planner = placement.planner
    stopped = why_nothing_starts(world)
    leased = [job for job, _host in all_leased(world)]
    at_once: dict[str, int] = {}
    for job in leased:
        at_once[job.spec.group] = at_once.get(job.spec.group, 0) + 1
    rates, seen_s = {}, {}
    for group in world.counts if pacing is not None else ():
        if pacing is None or not any(world.counts[group][state] for state in LIVE):
            continue
        rate = pacing.group_rate(group, now)
        if rate and not pacing.stalled(group, now, at_once=at_once.get(group, 0)):
            rates[group] = rate
        if (seen := pacing.wall_s(group)) is not None:
            seen_s[group] = seen
    return ForecastSnapshot(
        world=world,
        wall=wall,
        stopped=None if stopped is None else Unknown(stopped.code, stopped.message),
        leased=leased,
        plan=planned_jobs.snapshot(planner.plan) if planner is not None else None,
        waiting=placement.waiting(),
        capacities=placement.capacities(),
        limits={limit.name: limit for limit in placement.limits},
        delayed=world.delayed_until[:],
        dependent=list(world.unmet_parents),
        rates=rates,
        seen_s=seen_s,
    )
