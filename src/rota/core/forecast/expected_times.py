"""Expected starts and ends of all jobs: the only place where they are computed.

Works on a snapshot, in any thread, and treats equal jobs as one. An unknown time has a code and a sentence that
say why.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from heapq import merge
from itertools import pairwise
from math import inf
from operator import attrgetter
from typing import Final

from rota.core.accounts.amounts import asked_s, walltime_of
from rota.core.attempts import suspension_phases
from rota.core.forecast.equal_jobs import PlacedJobs, capacity, fitting, units
from rota.core.forecast.expectation import (
    AHEAD,
    EMPTY,
    MANY,
    NEW,
    NO_ESTIMATE,
    NO_ROOM,
    OVERDUE,
    RESTING,
    Expected,
    ForecastSnapshot,
    Unknown,
)
from rota.core.jobs.dependencies import verdict
from rota.core.jobs.job import Job, Parent
from rota.core.learning.durations import usual_s
from rota.core.learning.estimate import learning_group
from rota.core.site.limits import openings
from rota.core.states import LEASED, LIVE, State
from rota.core.world import World
from rota.plan.forecast import planned_jobs
from rota.plan.forecast.free_capacity import CapacityPiece, FreeCapacity
from rota.plan.forecast.waiting_jobs import Commitment, EqualJobs, Forecast, Key, Stretch
from rota.plan.need import Need
from rota.plan.placement import Waiting
from rota.plan.size import CORE, Size

#: A job class with several report groups is cut into at most this many runs.
_MOST_LINES: Final = 16
#: Jobs of a run whose duration is looked up.
_SAMPLES: Final = 8
#: For longer jobs the rate follows from their duration; for shorter ones it is measured.
_SHORT_S: Final = 5.0
#: Wider than any capacity.
_TOO_WIDE: Final = 1 << 62
#: Jobs handled in one step, during which no other thread can run.
_SLICE: Final = 1 << 14
#: Dependent jobs are placed one by one. Beyond this many nothing is said about them, so that an answer takes a
#: second or two at most.
MOST_DEPENDENT: Final = 20_000
_GROUP: Final = attrgetter("spec.group")
#: A preempted besteffort job of this type is queued again.
_IDEMPOTENT: Final = frozenset({"idempotent"})
#: Name of the capacity for jobs without cores.
_CORELESS: Final = ""


class Expectations:
    """The expected times of every live job at the moment of the snapshot."""

    def __init__(self, taken: ForecastSnapshot, also: Job | None = None) -> None:
        """`also`: a job that does not exist, and that is asked about."""
        self.wall = taken.wall
        self._taken = taken
        jobs = taken.world.jobs
        self._jobs: Mapping[int, Job] = jobs if also is None else ChainMap({also.id: also}, jobs)
        self._known: dict[int, Expected] = {}  #: jobs outside runs of equal jobs
        self._lines: dict[tuple[int, Need], list[PlacedJobs]] = {}
        self._seen: dict[tuple[str, float | None], list[float]] = {}
        self._at_once: dict[str, int] = {}
        #: report group → end of its last job, without jobs that wait for a person
        self.group_end: dict[str, float] = {}
        self.group_unknown: dict[str, Unknown] = {}  #: why a report group has no such end
        self._run()

    # -- answers

    def of(self, job: Job) -> Expected:
        """The expected start and end of this job."""
        resting = RESTING.get(job.state)
        if resting is not None and job.id not in self._known:
            code = resting if job.reason is None else Unknown(resting.code, job.reason.message)
            return Expected(unknown=code)
        known = self._known.get(job.id)
        if known is not None:
            return known
        for placed in self._lines.get((job.spec.priority, job.need), ()):
            if (found := placed.of(job.id)) is not None:
                return found
        if job.state in LEASED:
            return self._leased(job)
        if job.state not in LIVE:
            return Expected()
        return Expected(unknown=self._taken.stopped or NEW)

    def end_of(self, jobs: Iterable[Job]) -> tuple[float | None, Unknown | None]:
        """The end of the last of these jobs, or why it is unknown. Jobs that wait for a person are left out."""
        latest: float | None = None
        for job in jobs:
            if job.state in RESTING or job.state not in LIVE:
                continue
            expected = self.of(job)
            if expected.end is None:
                return None, expected.unknown
            latest = expected.end if latest is None else max(latest, expected.end)
        return latest, None

    # -- how long jobs take

    def length(self, job: Job, *, ran_s: float = 0.0, limit_s: float | None = None) -> float | None:
        """The whole duration of a job in seconds; None: unknown."""
        spec = job.spec
        limit = limit_s if limit_s is not None else walltime_of(spec)
        if spec.done_at_walltime and limit is not None:
            return limit
        estimate_s = spec.size.time_s if "time" in spec.given else None
        return usual_s(self._times(job), estimate_s=estimate_s, limit_s=limit, ran_s=ran_s)

    def _times(self, job: Job) -> list[float]:
        """Durations of similar jobs: of its learning group, those for which as much time was asked."""
        like = (learning_group(job), asked_s(job.spec, None))
        found = self._seen.get(like)
        if found is None:
            model = self._taken.world.models.get(like[0])
            found = self._seen[like] = model.times(like[1]) if model is not None else []
        if not found and like[1] is None and (seen := self._taken.seen_s.get(job.spec.group)) is not None:
            return [seen]
        return found

    def _leased(self, job: Job) -> Expected:
        """The expected times of a leased job: it runs, or will in a moment."""
        lease, wall = job.lease, self.wall
        if job.state is State.FINISHING or lease is None:
            return Expected(end=wall)
        began = lease.started_at
        ran_s = 0.0 if began is None else max(0.0, wall - began - suspension_phases.suspended_s(lease, wall))
        limit = suspension_phases.walltime_of(job, lease)
        length = self.length(job, ran_s=ran_s, limit_s=limit)
        start = wall if began is None else None
        if length is None:
            known = bool(self._times(job)) or "time" in job.spec.given
            return Expected(start, None, OVERDUE if known else NO_ESTIMATE)
        return Expected(start, wall + max(0.0, length - ran_s))

    # -- working it out

    def _run(self) -> None:
        taken = self._taken
        ends: dict[int, float | None] = {}
        leaves = planned_jobs.evictions(taken.plan) if taken.plan is not None and taken.stopped is None else {}
        for job in taken.leased:
            resting = RESTING.get(job.state)
            expected = Expected(unknown=resting) if resting is not None else self._leased(job)
            gone = leaves.get(job.id, inf)
            end = min(gone, inf if expected.end is None else expected.end)
            if resting is None:
                if end == gone < inf and not _IDEMPOTENT & set(job.spec.types):
                    expected = Expected(
                        expected.start, max(gone, self.wall)
                    )  # another job takes its resources then
                self._known[job.id] = expected
                self._note(job.spec.group, expected)
            ends[job.id] = None if end == inf else end
            self._at_once[job.spec.group] = self._at_once.get(job.spec.group, 0) + 1
        if taken.stopped is not None:
            self._all_stand_still(taken.stopped)
            return
        limits = self._limits(ends)
        packed = self._packed(ends, limits)
        firm_jobs: set[int] = set()
        if taken.plan is not None:
            left = {id: max(0.0, end - self.wall) for id, end in ends.items() if end is not None}
            planned = planned_jobs.forecast_of(taken.plan, self.wall, left=left.get, limits=limits)
            firm, single = planned_jobs.with_lengths(taken.plan, self._length_of)
            firm_jobs = {each.job for each in firm} | {line.jobs[0] for line in single}
            for id, waits in taken.plan.stuck:
                firm_jobs.add(id)
                self._known[id] = Expected(unknown=Unknown(waits.code, waits.message))
                self._note(self._group(id), self._known[id])
            first = {self._alike(each.job): each for each in sorted(firm, key=lambda one: -one.start)}
            lines = [
                line
                for lane in taken.waiting
                if lane.width
                for line in self._cut(lane, firm_jobs, first.get((lane.priority, lane.need)))
            ]
            lines += self._delayed(plan=True)
            lines += [PlacedJobs(line, NO_ROOM, {self._group(line.jobs[0]): 0}) for line in single]
            for each, stretches in zip(lines, planned.run(firm, [each.line for each in lines]), strict=True):
                self._settle(each, stretches)
            for id, (start, length) in planned.commitments.items():
                self._knows(id, start, length)
        else:
            planned = packed
        lanes = [line for lane in taken.waiting if not lane.width for line in self._cut(lane, firm_jobs)]
        lanes += self._delayed(plan=False)
        for each, stretches in zip(lanes, packed.run((), [each.line for each in lanes]), strict=True):
            self._settle(each, stretches)
        self._dependent(planned, packed)

    def _alike(self, id: int) -> tuple[int, Need] | None:
        job = self._jobs.get(id)
        return None if job is None else (job.spec.priority, job.need)

    def _all_stand_still(self, why: Unknown) -> None:
        """Nothing starts: only running jobs have an end."""
        for group, counts in list(self._taken.world.counts.items()):
            if counts[State.READY] or counts[State.DEPENDENT] or counts[State.DELAYED]:
                self.group_unknown[group] = why
                self.group_end.pop(group, None)

    def _group(self, id: int) -> str:
        job = self._jobs.get(id)
        return job.spec.group if job is not None else ""

    def _length_of(self, id: int) -> float | None:
        job = self._jobs.get(id)
        if job is None:
            return None
        if job.lease is None:
            return self.length(job)
        end = self._leased(job).end  # suspended; it will be resumed
        return None if end is None else end - self.wall

    def _knows(self, id: int, start: float, length: float | None) -> None:
        job = self._jobs.get(id)
        if job is None:
            return
        start = max(start, self.wall)
        end = None if length is None else start + length
        expected = Expected(start, end, NO_ESTIMATE if end is None else None)
        self._known[id] = expected
        self._note(job.spec.group, expected)

    def _note(self, group: str, expected: Expected) -> None:
        """Add a job's end to its report group, which ends with its last job."""
        if expected.end is None:
            self.group_unknown.setdefault(group, expected.unknown or NO_ESTIMATE)
            self.group_end.pop(group, None)
        elif group not in self.group_unknown:
            self.group_end[group] = max(expected.end, self.group_end.get(group, 0.0))

    # -- room

    def _packed(self, ends: Mapping[int, float | None], limits: dict[str, FreeCapacity]) -> Forecast:
        """The free capacity of all hosts together, as packing sees it; jobs without cores apart."""
        hosts, wall = self._taken.capacities, self.wall
        pieces, coreless = [], []
        cores = sum(host.cpus for host in hosts)
        places = sum(host.zero_cpu_jobs for host in hosts)
        # Leases sent ahead of need have no core yet: they come last.
        for job in sorted(self._taken.leased, key=lambda job: job.lease is None or job.lease.started_at is None):
            end = ends.get(job.id)
            lease = job.lease
            if lease is not None and suspension_phases.has_given_up(lease):
                continue
            at = inf if end is None else max(wall, end)
            if job.size.cpus:
                amount = min(self._width(job.size)[0], max(0, cores))
                pieces.append(CapacityPiece(at, amount))
                cores -= amount
            else:
                coreless.append(CapacityPiece(at, 1))
                places -= 1
        pieces.append(CapacityPiece(wall, max(0, cores)))
        coreless.append(CapacityPiece(wall, max(0, places)))
        limits[_CORELESS] = FreeCapacity(coreless)
        return Forecast(wall, FreeCapacity(pieces), limits)

    def _limits(self, ends: Mapping[int, float | None]) -> dict[str, FreeCapacity]:
        """The free capacity of each limit with a number of units."""
        held: dict[str, list[CapacityPiece]] = {}
        taken = self._taken
        for job in taken.leased:
            for use in job.spec.limits:
                end = ends.get(job.id)
                takes = units(taken.limits.get(use.name), use.units, use.exclusive)
                held.setdefault(use.name, []).append(
                    CapacityPiece(inf if end is None else max(self.wall, end), takes)
                )
        rooms = {}
        for name, limit in taken.limits.items():
            most = capacity(limit)
            if most is not None:
                pieces = held.get(name, [])
                free = max(0, most - sum(piece.amount for piece in pieces))
                rooms[name] = FreeCapacity([*pieces, CapacityPiece(self.wall, free)])
        return rooms

    # -- lines

    def _cut(self, lane: Waiting, but: set[int], like: Commitment | None = None) -> list[PlacedJobs]:
        """Cut a job class into runs of jobs that are of one report group and follow each other."""
        ids = _ordered(lane.jobs)
        if lane.gone or but:
            ids = [id for id in ids if id not in lane.gone and id not in but]
        jobs: list[Job] = []
        groups: list[str] = []
        for begin in range(0, len(ids), _SLICE):
            some = list(filter(None, map(self._jobs.get, ids[begin : begin + _SLICE])))
            jobs += some
            groups += map(_GROUP, some)
        if not jobs:
            return []
        if len(jobs) < len(ids):
            ids = [job.id for job in jobs]  # some have ended since
        bounds: list[int] = []
        if len(set(groups)) > 1:
            bounds = [at for at, (one, other) in enumerate(pairwise(groups), 1) if one != other]
        if len(bounds) >= _MOST_LINES:
            step = -(-len(groups) // _MOST_LINES)
            bounds = list(range(step, len(groups), step))
        lines = []
        first = (-lane.priority,) if like is None else like.key[:-1]
        for begin, stop in zip([0, *bounds], [*bounds, len(jobs)], strict=True):
            whole = {groups[0]: stop - 1}
            last = {group: at for at, group in enumerate(groups[begin:stop])} if bounds else whole
            placed = self._line(lane, ids[begin:stop], jobs[begin:stop], last, first)
            if like is not None:
                placed.line = placed.line._replace(since=like.start)
            lines.append(placed)
        return lines

    def _line(
        self, lane: Waiting, ids: list[int], jobs: Sequence[Job], last: dict[str, int], first: Key
    ) -> PlacedJobs:
        need = lane.need
        width, trouble = (lane.width, None) if lane.width else self._width(need.size)
        uses = []
        for use in need.limits:
            limit = self._taken.limits.get(use.name)
            most = capacity(limit)
            if most is not None:
                takes = units(limit, use.units, use.exclusive)
                uses.append((use.name, takes))
                if takes > most:
                    trouble = Unknown("limit", f"limit '{use.name}' has fewer units than it needs")
        if not width:
            uses.append((_CORELESS, 1))
        windows = [
            limit.window for use in need.limits if (limit := self._taken.limits.get(use.name)) and limit.window
        ]
        hours = openings(self._taken.world.zone, windows) if windows else None
        length = self._line_length(jobs, last, need.size)
        line = EqualJobs(
            ids, (*first, ids[0]), width if trouble is None else _TOO_WIDE, length, tuple(uses), hours
        )
        return PlacedJobs(line, trouble or AHEAD, last, possible=trouble is None)

    def _line_length(self, jobs: Sequence[Job], last: Mapping[str, int], size: Size) -> float | None:
        """The average duration of a run's jobs; for short ones including the cost of starting them."""
        step = max(1, len(jobs) // _SAMPLES)
        lengths = [self.length(job) for job in jobs[::step]]
        known = [length for length in lengths if length is not None]
        usual = sum(known) / len(known) if len(known) == len(lengths) else None
        group = next(iter(last))
        rate = self._taken.rates.get(group) if len(last) == 1 else None
        if rate and (usual is None or usual < _SHORT_S):
            at_once = min(self._at_once.get(group, 0), self._most(size))
            if at_once:
                return max(usual or 0.0, at_once / rate)
        return usual

    def _most(self, size: Size) -> int:
        """How many jobs of this size could run at once."""
        return sum(fitting(size, host) for host in self._taken.capacities)

    def _width(self, size: Size) -> tuple[int, Unknown | None]:
        """The cores that such a job takes from the total; more than it asks for if memory, disk or GPUs are
        scarcer."""
        most = self._most(size)
        if not most:
            return max(1, size.cpus), NO_ROOM
        cores = sum(host.cpus for host in self._taken.capacities)
        return (max(size.cpus, cores // most), None) if size.cpus else (0, None)

    def _settle(self, placed: PlacedJobs, stretches: list[Stretch]) -> None:
        placed.take(stretches, self.wall)
        job = self._jobs.get(placed.line.jobs[0])
        if job is not None:
            self._lines.setdefault((job.spec.priority, job.need), []).append(placed)
        for group, last in placed.last.items():
            self._note(group, placed.at(last))

    # -- those that are not ready yet

    def _delayed(self, *, plan: bool) -> list[PlacedJobs]:
        """Delayed jobs: each waits for capacity from a moment of its own."""
        found = []
        for due, id in self._taken.delayed:
            job = self._jobs.get(id)
            if job is not None and job.state is State.DELAYED and job.due_at == due and self._plans(job) == plan:
                found.append(self._later(job, due))
        return found

    def _plans(self, job: Job) -> bool:
        """Would the job be in the plan if it were ready?"""
        return self._taken.plan is not None and (job.size.cpus > 0 or job.spec.on_terms)

    def _later(self, job: Job, after: float) -> PlacedJobs:
        """Place a job that waits for capacity from some moment on."""
        width = max(1, -(-job.size.cpus // CORE)) if self._plans(job) else 0
        lane = Waiting(job.spec.priority, job.need, [job.id], frozenset(), width)
        placed = self._line(lane, [job.id], [job], {job.spec.group: 0}, (-job.spec.priority,))
        placed.line = placed.line._replace(after=after)
        return placed

    def _dependent(self, planned: Forecast, packed: Forecast) -> None:
        """Place dependent jobs: each waits for capacity from the expected end of its last parent."""
        world = self._taken.world
        ends: dict[Parent, tuple[float, Unknown | None]] = {}
        looked_at = 0
        begun: set[int] = set()  #: jobs whose parents are being placed; guards against cycles
        for root in sorted(self._taken.dependent):
            stack = [root]
            while stack:  # iterative: chains may be long
                id = stack[-1]
                job = self._jobs.get(id)
                if id in self._known or job is None or job.state is not State.DEPENDENT:
                    stack.pop()
                    continue
                missing, after, why = self._parents(world, job, ends)
                fresh = [parent for parent in missing if parent not in begun]
                if fresh:
                    begun.add(id)
                    stack += fresh
                    continue
                stack.pop()
                if why is None and (looked_at := looked_at + 1) > MOST_DEPENDENT:
                    why = MANY
                if why is not None:
                    self._known[id] = Expected(unknown=why)
                    self._note(job.spec.group, self._known[id])
                else:
                    placed = self._later(job, after)
                    room = planned if placed.line.width and self._plans(job) else packed
                    self._settle(placed, room.place(placed.line) if placed.possible else [])
                    self._known[id] = placed.at(0)

    def _parents(
        self, world: World, job: Job, ends: dict[Parent, tuple[float, Unknown | None]]
    ) -> tuple[list[int], float, Unknown | None]:
        """Return (parents not placed yet, when all parents have ended, why that is unknown)."""
        missing: list[int] = []
        after, why = self.wall, None
        for each in job.after:
            ok, _never = verdict(world, each.parent, each.condition)
            if ok:
                continue
            known = ends.get(each.parent)
            if known is None:
                members = [each.parent] if isinstance(each.parent, int) else list(world.groups[each.parent].open)
                late, cause, unready = self._last_of(members)
                if not members:
                    cause = EMPTY
                if unready:
                    missing += unready
                    continue
                known = ends[each.parent] = (late, cause)
            after = max(after, known[0])
            if (cause := known[1]) is not None and why is None:
                if cause.code == "dependency":
                    why = cause  # name the first cause in a chain, not every link
                    continue
                name = f"job {each.parent}" if isinstance(each.parent, int) else f"group '{each.parent}'"
                why = Unknown("dependency", f"{name} has no expected end: {cause.message}")
        return missing, after, why

    def _last_of(self, members: list[int]) -> tuple[float, Unknown | None, list[int]]:
        late, cause = self.wall, None
        unready = []
        for id in members:
            job = self._jobs.get(id)
            if job is None:
                continue
            if job.state is State.DEPENDENT and id not in self._known:
                unready.append(id)
                continue
            expected = self.of(job)
            if expected.end is None:
                cause = cause or expected.unknown or NEW
            else:
                late = max(late, expected.end)
        return late, cause, unready


def _ordered(ids: list[int]) -> list[int]:
    """Sort in slices, so that other threads can run in between."""
    if len(ids) <= _SLICE:
        return sorted(ids)
    return list(merge(*(sorted(ids[at : at + _SLICE]) for at in range(0, len(ids), _SLICE))))
