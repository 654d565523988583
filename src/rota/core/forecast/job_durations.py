"""How long jobs take: the expected duration of any job, and the expected end of a leased one."""

from __future__ import annotations

from rota.core.accounts.amounts import asked_s, walltime_of
from rota.core.attempts import suspension_phases
from rota.core.forecast.expectation import NO_ESTIMATE, OVERDUE, Expected, ForecastSnapshot
from rota.core.jobs.job import Job
from rota.core.learning.durations import usual_s
from rota.core.states import State


class JobDurations:
    """Expected durations at the moment of a snapshot. Durations of similar jobs are looked up once."""

    def __init__(self, taken: ForecastSnapshot) -> None:
        self._taken = taken
        self._wall = taken.wall
        #: (learning group, requested time) → durations
        self._seen: dict[tuple[str, float | None], list[float]] = {}

    def whole_s(self, job: Job, *, ran_s: float = 0.0, limit_s: float | None = None) -> float | None:
        """The whole duration of a job in seconds; None: unknown."""
        spec = job.spec
        limit = limit_s if limit_s is not None else walltime_of(spec)
        if spec.done_at_walltime and limit is not None:
            return limit
        estimate_s = spec.size.time_s if "time" in spec.given else None
        return usual_s(self._times(job), estimate_s=estimate_s, limit_s=limit, ran_s=ran_s)

    def _times(self, job: Job) -> list[float]:
        """Durations of similar jobs: of its learning group, those for which as much time was asked."""
        like = (job.learning_group, asked_s(job.spec, None))
        found = self._seen.get(like)
        if found is None:
            model = self._taken.world.models.get(like[0])
            found = self._seen[like] = model.times(like[1]) if model is not None else []
        if not found and like[1] is None and (seen := self._taken.seen_s.get(job.spec.group)) is not None:
            return [seen]
        return found

    def leased(self, job: Job) -> Expected:
        """The expected times of a leased job: it runs, or will in a moment."""
        lease, wall = job.lease, self._wall
        if job.state is State.FINISHING or lease is None:
            return Expected(end=wall)
        began = lease.started_at
        ran_s = 0.0 if began is None else max(0.0, wall - began - suspension_phases.suspended_s(lease, wall))
        limit = suspension_phases.walltime_of(job, lease)
        length = self.whole_s(job, ran_s=ran_s, limit_s=limit)
        start = wall if began is None else None
        if length is None:
            known = bool(self._times(job)) or "time" in job.spec.given
            return Expected(start, None, OVERDUE if known else NO_ESTIMATE)
        return Expected(start, wall + max(0.0, length - ran_s))
