"""Runs the trace of a whole site through the planner. Time advances from event to event; decisions take none."""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import Final

from msgspec import Struct, structs

from rota.core.jobs.fate import Fate, fate
from rota.core.jobs.job import Condition
from rota.core.states import State
from rota.plan.planner.planner import Planner
from rota.plan.reasons import Waits
from rota.plan.schedule.plan_entry import BLOCKED, PlanEntry
from rota.sim import dependencies
from rota.sim.jobs import Parent, TraceJob
from rota.sim.metrics import ScheduledJob, measure, plain
from rota.sim.trace import Trace, read_trace

_EXPIRED: Final = Waits("expired", "it had not started when it expired")
_MISSED: Final = Waits("expired", "it could not end before its deadline")
_TOO_LATE: Final = Waits("reservation", "its time had passed before its resources were there")
#: The reason of jobs behind the first if only the first of a queue has a planned start.
_ITS_TURN: Final = Waits("resources", "it waits for its turn behind the first of its queue")


def _gave_up(job: TraceJob) -> Waits:
    """Why a job that has not started is over."""
    types = job.ask.types
    if job.ask.at is not None:
        return _TOO_LATE
    return _MISSED if types.deadline is not None and types.deadline <= (types.expire or inf) else _EXPIRED


class RunRecord(Struct):
    """The state of a job during the run."""

    job: TraceJob
    state: State = State.READY
    submitted: bool = False
    serial: int = 0  #: its position among jobs submitted at the same moment
    start: float | None = None
    end: float | None = None
    resources: str | None = None
    width: int = 0  #: how many resources
    reason: Waits | None = None
    attempts: int = 0
    exit: int = 0  #: exit status of the next attempt that ends by itself
    cut: bool = False  #: the running attempt will reach its walltime

    def as_json(self) -> dict[str, object]:
        """As the contract of `rota simulate` has it."""
        return {
            "id": self.job.id,
            "submit": plain(self.job.submit),
            "start": None if self.start is None else plain(self.start),
            "end": None if self.end is None else plain(self.end),
            "resources": self.resources,
            "state": self.state.label,
            "reason": None if self.reason is None else {"code": self.reason.code, "message": self.reason.message},
        }


def simulate(document: bytes, *, plan_only: bool, policy: str | None = None) -> dict[str, object]:
    """The schedule of a trace, or, with `plan_only`, its plan at time 0. Raises `BadInput`."""
    trace = read_trace(document, policy=policy)
    run = SiteRun(trace)
    records = run.plan() if plan_only else run.run()
    placed = [
        ScheduledJob(record.job.submit, record.start, record.end, record.width)
        for record in records
        if record.start is not None and record.end is not None
    ]
    metrics = measure(placed, trace.site.count)
    return {"jobs": [record.as_json() for record in records], "metrics": structs.asdict(metrics)}


class SiteRun:
    """The virtual clock, and the coming submissions and ends."""

    def __init__(self, trace: Trace) -> None:
        self._site = trace.site
        self._planner = Planner(
            trace.site, trace.policy, quotas=trace.quotas, now=0.0, usage=trace.usage, limits=trace.limits
        )
        self._records = {job.id: RunRecord(job, exit=job.exit) for job in trace.jobs}
        #: coming submissions, the last first; ties in the order of the file
        self._coming = sorted((job for job in trace.jobs if job.start is None), key=lambda job: job.submit)[::-1]
        self._ends: list[
            tuple[float, int, int, int]
        ] = []  #: a heap of (end, number of attempts started before, id, attempt)
        #: a heap of (moment, id): when a job gives up if it has not started
        self._expiring: list[tuple[float, int]] = []
        self._started = 0
        #: has the trace a condition other than `afterok`?
        self._conditions = any(parent.condition != Condition.OK for job in trace.jobs for parent in job.after)
        self._children: dict[int, list[RunRecord]] = {}
        for record in self._records.values():
            for parent in record.job.after:
                self._children.setdefault(parent.id, []).append(record)

    # -- the plan at time 0

    def plan(self) -> list[RunRecord]:
        """The plan at time 0, for the jobs submitted by then."""
        self._adopt_all()
        self._submit_all(0.0)
        self._planner.tick(0.0)
        for record in self._records.values():
            record.state = self._state(record.job.id)
            entry = self._planner.plan.entries.get(record.job.id)
            if entry is None:
                continue
            record.reason = entry.reason or _ITS_TURN
            if entry.start is not None:
                self._place(record, entry.start, entry.resources)
                record.end = entry.end
                record.reason = None
        return [record for record in self._records.values() if record.submitted]

    # -- the run

    def run(self) -> list[RunRecord]:
        """Run until nothing is left to happen. Returns the records of all jobs."""
        self._adopt_all()
        now = 0.0
        while True:
            # One instant: submissions as in the file, then ends in the order of their starts, then starts.
            self._submit_all(now)
            self._end_all(now)
            self._planner.tick(now)
            self._begin_all(now)
            self._expire_all(now)
            following = self._next(now)
            if following is None:
                break
            now = following
        for record in self._records.values():
            record.state = self._state(record.job.id)
            entry = self._planner.plan.entries.get(record.job.id)
            if entry is not None and record.state in (State.READY, State.BLOCKED):
                record.reason = entry.reason or _ITS_TURN
        return list(self._records.values())

    def _next(self, now: float) -> float | None:
        """The time of the next event; None: nothing will happen any more."""
        moments: list[float] = []
        if self._coming:
            moments.append(self._coming[-1].submit)
        if self._ends:
            moments.append(max(now, self._ends[0][0]))
        if self._expiring:
            moments.append(max(now, self._expiring[0][0]))
        # A job that could have started now and did not waits for another event.
        planned = self._planner.next_start()
        if planned is not None and planned > now:
            moments.append(planned)
        moments += [moment for moment in self._planner.plan.recheck_times[:1] if moment > now]
        if not moments:
            return None
        if (next_event := self._planner.next_event()) is not None and next_event > now:
            moments.append(next_event)
        return min(moments)

    def _state(self, id: int) -> State:
        """The state of a job. The planner is the first to know that a job is blocked."""
        record = self._records[id]
        entry = self._planner.plan.entries.get(id)
        return State.BLOCKED if entry is not None and entry.state == BLOCKED else record.state

    # -- submissions

    def _adopt_all(self) -> None:
        for record in self._records.values():
            job = record.job
            if job.start is not None:
                entry = self._planner.adopt(job.id, job.ask, start=job.start, resources=job.resources, now=0.0)
                record.submitted = True
                self._begun(record, job.start, entry)

    def _submit_all(self, now: float) -> None:
        while self._coming and self._coming[-1].submit <= now:
            record = self._records[self._coming.pop().id]
            record.submitted = True
            self._submit(record, now)

    def _submit(self, record: RunRecord, now: float) -> None:
        """Submit a job once its parents are submitted and none is hopeless; then the jobs that wait for it."""
        coming = [record]
        record.state = State.READY
        while coming:  # chains may be long
            record = coming.pop()
            if self._known(record):
                continue
            parents = [(parent, self._records[parent.id]) for parent in record.job.after]
            missing = next((parent for parent, other in parents if not self._known(other)), None)
            if missing is not None:
                record.reason = dependencies.not_yet(missing)
                continue
            self._enter(record, parents, now)
            children = self._children.get(record.job.id, ())
            coming += [child for child in reversed(children) if child.submitted and not self._known(child)]

    def _known(self, record: RunRecord) -> bool:
        """Was the job submitted to the planner, or is it over already?"""
        over = record.state is not State.READY
        return record.submitted and (over or record.job.id in self._planner.plan.entries)

    def _enter(self, record: RunRecord, parents: list[tuple[Parent, RunRecord]], now: float) -> None:
        job = record.job
        if (vain := dependencies.hopeless(job, self._state)) is not None:
            self._over(record, State.BLOCKED, dependencies.never(vain))
            return
        waits_for = [parent.id for parent, other in parents if dependencies.is_open(parent, other.state)]
        entry = self._planner.submit(
            job.id, job.ask, now, after=waits_for, submitted=job.submit, serial=record.serial
        )
        record.serial = entry.serial
        record.reason = entry.reason
        if job.id not in self._planner.plan.entries:
            message = entry.reason.message if entry.reason is not None else "rejected"
            self._over(record, State.FAILED, Waits("reservation", message))
            return
        types = job.ask.types
        limits = [types.expire, types.deadline, entry.end if job.ask.at is not None else None]
        if found := [moment for moment in limits if moment is not None]:
            heappush(self._expiring, (min(found), job.id))

    # -- starts

    def _begin_all(self, now: float) -> None:
        while begun := self._planner.begin(now):
            for begin in begun:
                for victim in begin.victims:
                    self._preempt(self._records[victim], now)
                self._begun(self._records[begin.entry.id], now, begin.entry)

    def _begun(self, record: RunRecord, start: float, entry: PlanEntry) -> None:
        """An attempt started. It runs as long as the trace gives, at most until its walltime."""
        ask = record.job.ask
        limit = ask.alternatives[entry.alternative].walltime_s
        length = record.job.run_s
        if length is None:
            length = ask.time_s if limit is None else limit
        record.cut = False
        if limit is not None:
            # A reservation ends on time even if it began late.
            limit = limit if ask.at is None else min(limit, ask.at + limit - start)
            record.cut = length > limit
            length = min(length, limit)
        record.state = State.RUNNING
        record.reason = None
        record.attempts += 1
        self._place(record, start, entry.resources)
        heappush(self._ends, (start + length, self._started, record.job.id, record.attempts))
        self._started += 1

    def _place(self, record: RunRecord, start: float, resources: int) -> None:
        record.start = start
        record.resources = self._site.spans(resources)
        record.width = resources.bit_count()

    def _expire_all(self, now: float) -> None:
        """End the jobs that expired before they started. Other jobs may use what they leave at once."""
        while self._expiring and self._expiring[0][0] <= now:
            record = self._records[heappop(self._expiring)[1]]
            if record.state is State.READY and record.job.id in self._planner.plan.entries:
                self._over(record, State.FAILED, _gave_up(record.job))
                self._leave(record, now)
                self._begin_all(now)

    # -- ends

    def _end_all(self, now: float) -> None:
        while self._ends and self._ends[0][0] <= now:
            _end, _order, id, attempt = heappop(self._ends)
            record = self._records[id]
            if record.state is State.RUNNING and record.attempts == attempt:
                self._end(record, now)

    def _end(self, record: RunRecord, now: float) -> None:
        """An attempt ended by itself, or reached its walltime."""
        if record.job.ask.types.container:
            self._end_inner(record, now)
        if record.cut:
            self._conclude(record, Waits("walltime", "it was still running at the end of its walltime"), now)
        else:
            self._conclude(record, Waits("exit", f"exit {record.exit}") if record.exit else None, now)

    def _conclude(self, record: RunRecord, failed: Waits | None, now: float, *, vacated: bool = False) -> None:
        """An attempt ended; it failed if there is a reason. The fate of the job is decided as in the engine."""
        assert record.start is not None
        types = record.job.ask.types
        become = fate(
            code=failed.code if failed is not None else "",
            exit_code=record.exit,
            ran_s=now - record.start,
            idempotent=types.idempotent,
            done_at_walltime=types.done_at_walltime,
            vacated=vacated,
        )
        if become is Fate.AGAIN:
            if not vacated:
                record.exit = 0  # the next attempt does not ask again
            self._again(record, now)
            return
        if become is Fate.COMPLETE:
            self._over(record, State.COMPLETE, None, now)
        else:
            self._over(record, State.FAILED, failed, now)
        self._leave(record, now)

    def _end_inner(self, container: RunRecord, now: float) -> None:
        """End the inner jobs of a container that has ended."""
        names = {str(container.job.id), container.job.ask.name} - {""}
        ending = {id for end, _order, id, _attempt in self._ends if end <= now}
        for record in self._records.values():
            if (
                record.state is State.RUNNING
                and record.job.ask.types.inner in names
                and self._lies_in(record, container)
            ):
                if record.job.id in ending:
                    self._end(record, now)
                else:
                    self._conclude(record, Waits("container", "its container ended"), now, vacated=True)

    def _lies_in(self, record: RunRecord, container: RunRecord) -> bool:
        """Does the job run in this container? Several containers may have the same name."""
        entry = self._planner.plan.entries.get(record.job.id)
        return entry is not None and entry.home == container.job.id

    def _preempt(self, record: RunRecord, now: float) -> None:
        """A besteffort job is preempted."""
        if record.state is not State.RUNNING:
            return  # ended by another job that starts now
        wanted = Waits("preempted", "a job that is not besteffort wanted its resources")
        self._conclude(record, wanted, now, vacated=True)

    def _again(self, record: RunRecord, now: float) -> None:
        """Queue a job again. Its dependents wait for the new attempt."""
        self._planner.ended(record.job.id, now, again=True)
        record.start = record.resources = None
        self._submit(record, now)

    def _over(self, record: RunRecord, state: State, reason: Waits | None, now: float | None = None) -> None:
        record.state = state
        record.reason = reason
        record.end = now

    def _leave(self, record: RunRecord, now: float) -> None:
        """Remove a finished job from the planner, and update its dependents."""
        complete = record.state is State.COMPLETE
        if complete and self._conditions:
            for child in self._children.get(record.job.id, ()):
                vain = dependencies.hopeless(child.job, self._state)
                if vain is not None and child.state is State.READY and child.job.id in self._planner.plan.entries:
                    self._planner.ended(child.job.id, now, complete=False)
                    self._over(child, State.BLOCKED, dependencies.never(vain))
        self._planner.ended(record.job.id, now, complete=complete)
        if not complete and self._conditions:
            self._revive(now)

    def _revive(self, now: float) -> None:
        """Submit jobs again that the planner has blocked although their conditions may still hold."""
        blocked = [
            self._records[id].job for id, entry in self._planner.plan.entries.items() if entry.state == BLOCKED
        ]
        found = dependencies.revived(blocked, self._state)
        for job in found:
            self._planner.ended(job.id, now, complete=False)
        for job in found:
            if not self._known(self._records[job.id]):  # submitting one may submit others
                self._submit(self._records[job.id], now)
