"""Runs the trace of a whole site through the planner. Time advances from event to event; decisions take none."""

from __future__ import annotations

from typing import Final

from msgspec import structs

from rota.core.states import State
from rota.plan.reasons import Waits
from rota.plan.schedule.plan_entry import PlanEntry
from rota.plan.schedule.unusable_hosts import nowhere
from rota.sim import queueing, running
from rota.sim.machine_changes import MachineChanges
from rota.sim.metrics import ScheduledJob, measure
from rota.sim.run_record import RunRecord
from rota.sim.run_state import RunState
from rota.sim.trace import Trace, read_trace

#: The reason of jobs behind the first if only the first of a queue has a planned start.
_ITS_TURN: Final = Waits("resources", "it waits for its turn behind the first of its queue")


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
    metrics = measure(placed, trace.count)
    found: dict[str, object] = {
        "jobs": [record.as_json() for record in records],
        "metrics": structs.asdict(metrics),
    }
    return found if plan_only else found | run.machines(records)


class SiteRun:
    """The virtual clock, and the coming submissions."""

    def __init__(self, trace: Trace) -> None:
        self._state = RunState(trace)
        self._changes = MachineChanges(trace.events)
        #: coming submissions, the last first; ties in the order of the file
        self._coming = sorted((job for job in trace.jobs if job.start is None), key=lambda job: job.submit)[::-1]
        self._last = 0.0  #: the last moment at which something happened

    # -- the plan at time 0

    def plan(self) -> list[RunRecord]:
        """The plan at time 0, for the jobs submitted by then."""
        state = self._state
        self._adopt_all()
        self._changes.happen(state, 0.0)
        self._submit_all(0.0)
        state.planner.tick(0.0)
        for record in state.records.values():
            record.state = state.job_state(record.job.id)
            entry = self._entry(record)
            if entry is None:
                continue
            record.reason = self._why(entry)
            if entry.start is not None:
                self._show_planned(record, entry, entry.start)
        return [record for record in state.records.values() if record.submitted]

    def _entry(self, record: RunRecord) -> PlanEntry | None:
        """Its entry in the plan, or that of its gang."""
        gang = self._state.gangs.get(record.job.id)
        waiting = gang is not None and record.job.id in gang.waiting
        return self._state.planner.plan.entries.get(gang.leader if gang and waiting else record.job.id)

    def _why(self, entry: PlanEntry) -> Waits:
        """Why it waits."""
        if entry.trouble is not None and entry.reason is entry.trouble:
            return nowhere(self._state.planner.plan, entry, entry.trouble)
        return entry.reason or _ITS_TURN

    def _show_planned(self, record: RunRecord, entry: PlanEntry, start: float) -> None:
        """The planned place of a job, as if it had been."""
        state, ask = self._state, record.job.ask
        resources = running.resources_of(state, record, entry)
        running.place(state, record, start, resources)
        record.reason = None
        if entry.end is not None:
            length = ask.alternatives[entry.alternative].walltime_s or ask.time_s
            record.executing = start + ask.before_s
            record.end = record.executing + length if record.job.id in state.gangs else entry.end - ask.after_s
            record.provision_s, record.hold_s = ask.before_s, ask.after_s

    # -- the run

    def run(self) -> list[RunRecord]:
        """Run until nothing is left to happen. Returns the records of all jobs."""
        state = self._state
        self._adopt_all()
        now = 0.0
        while True:
            # One instant: events, then submissions as in the file, ends in the order of their starts, and starts.
            self._changes.happen(state, now)
            self._submit_all(now)
            running.end_all(state, now)
            state.tell_site(now)
            state.planner.tick(now)
            running.begin_all(state, now)
            running.expire_all(state, now)
            self._last = now
            following = self._next(now)
            if following is None:
                break
            now = following
        for record in state.records.values():
            record.state = state.job_state(record.job.id)
            entry = self._entry(record)
            if entry is not None and record.state in (State.READY, State.BLOCKED):
                record.reason = self._why(entry)
        return list(state.records.values())

    def machines(self, records: list[RunRecord]) -> dict[str, object]:
        """What each machine was used for, up to the last end of a job or of its hold; and events refused."""
        ends = [record.end + record.hold_s for record in records if record.end is not None]
        found: dict[str, object] = {"usage": self._state.usage.as_json(max(ends, default=self._last))}
        return found | ({"refused": self._changes.refused} if self._changes.refused else {})

    def _next(self, now: float) -> float | None:
        """The time of the next event; None: nothing will happen any more."""
        state, planner = self._state, self._state.planner
        moments: list[float] = []
        if (change := self._changes.next(state)) is not None:
            moments.append(change)
        if self._coming:
            moments.append(self._coming[-1].submit)
        if state.coming:
            moments.append(max(now, state.coming[0].moment))
        if state.expiring:
            moments.append(max(now, state.expiring[0][0]))
        # A job that could have started now and did not waits for another event.
        planned = planner.next_start()
        if planned is not None and planned > now:
            moments.append(planned)
        moments += [moment for moment in planner.plan.recheck_times[:1] if moment > now]
        if not moments:
            return None
        if (next_event := planner.next_event()) is not None and next_event > now:
            moments.append(next_event)
        return min(moments)

    # -- submissions

    def _adopt_all(self) -> None:
        for record in self._state.records.values():
            job = record.job
            if job.start is not None:
                entry = self._state.planner.adopt(
                    job.id, job.ask, start=job.start, resources=job.resources, now=0.0
                )
                record.submitted = True
                running.begin(self._state, [entry], job.start)

    def _submit_all(self, now: float) -> None:
        while self._coming and self._coming[-1].submit <= now:
            record = self._state.records[self._coming.pop().id]
            record.submitted = True
            queueing.submit(self._state, record, now)
