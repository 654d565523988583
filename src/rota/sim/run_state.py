"""The state of a simulation: the planner, the machines, a record of each job, and coming events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from heapq import heappush
from typing import NamedTuple

from msgspec import Struct

from rota.core.gangs.roles import role
from rota.core.jobs.job import Condition
from rota.core.machines.fault_rules import Faults
from rota.core.states import State
from rota.plan.planner.planner import Planner
from rota.plan.schedule.plan_entry import BLOCKED
from rota.sim.gangs import Gang
from rota.sim.lab import Lab
from rota.sim.run_record import RunRecord
from rota.sim.trace import Trace
from rota.sim.usage_rows import UsageRows


class Step(IntEnum):
    """What comes to an end in the course of an attempt."""

    INSTALLED = 1  #: its machines are provisioned
    PROVISIONED = 2  #: it may execute: the machines of its whole gang are provisioned
    EXECUTED = 3
    RELEASED = 4  #: it has kept its machines long enough


class Coming(NamedTuple):
    """A step that comes to an end, in the order of the attempts' starts."""

    moment: float
    order: int  #: how many attempts had started before
    id: int
    attempt: int
    step: Step


class GangRun(Struct, eq=False):
    """A gang during the run."""

    gang: Gang
    waiting: tuple[int, ...] = ()  #: its members in the plan, which has them under the lowest of these ids

    @property
    def leader(self) -> int:
        """The id of the waiting gang in the plan."""
        return min(self.waiting)

    def roles(self, members: Sequence[RunRecord]) -> list[str]:
        """The names by which these members know each other."""
        places = {id: place for place, id in enumerate(self.gang.members)}
        return [role(each.job.ask.name, places[each.job.id]) for each in members]


class RunState:
    """What a simulation knows at one moment."""

    def __init__(self, trace: Trace) -> None:
        self.lab = Lab(trace.stock)
        self.usage = UsageRows(self.lab)
        self.planner = Planner(
            trace.site, trace.policy, quotas=trace.quotas, now=0.0, usage=trace.usage, limits=trace.limits
        )
        self.planner.plan.caps = self.lab.caps()
        self.records = {job.id: RunRecord(job, exits=job.exits) for job in trace.jobs}
        self.gangs: dict[int, GangRun] = {}  #: of each member
        for gang in trace.gangs:
            self.gangs.update(dict.fromkeys(gang.members, GangRun(gang)))
        self.faults: dict[str, Faults] = {}  #: host → faulty runs in a row
        self.site_changed = False  #: since the planner was told of the machines
        self.coming: list[Coming] = []  #: a heap
        #: a heap of (moment, id): when a job gives up if it has not started
        self.expiring: list[tuple[float, int]] = []
        self.started = 0
        #: has the trace a condition other than `afterok`?
        self.conditions = any(parent.condition != Condition.OK for job in trace.jobs for parent in job.after)
        self._children: dict[int, list[RunRecord]] = {}
        for record in self.records.values():
            for parent in record.job.after:
                self._children.setdefault(parent.id, []).append(record)

    def tell_site(self, now: float) -> None:
        """Tell the planner of the machines, if they have changed."""
        if self.site_changed:
            self.site_changed = False
            self.planner.change_site(self.lab.site(), now)

    def children(self, id: int) -> list[RunRecord]:
        """The jobs that wait, or waited, for this one."""
        return self._children.get(id, [])

    def is_planned(self, record: RunRecord) -> bool:
        """Is the job in the plan, alone or with its gang?"""
        gang = self.gangs.get(record.job.id)
        return (gang is not None and record.job.id in gang.waiting) or record.job.id in self.planner.plan.entries

    def is_known(self, record: RunRecord) -> bool:
        """Was the job submitted to the planner, or is it over already?"""
        return record.submitted and (record.state is not State.READY or self.is_planned(record))

    def job_state(self, id: int) -> State:
        """The state of a job. The planner is the first to know that a job is blocked."""
        record = self.records[id]
        entry = self.planner.plan.entries.get(id)
        return State.BLOCKED if entry is not None and entry.state == BLOCKED else record.state

    def fellows(self, record: RunRecord) -> Iterator[RunRecord]:
        """The other members of the job's gang."""
        gang = self.gangs.get(record.job.id)
        for id in gang.gang.members if gang is not None else ():
            if id != record.job.id:
                yield self.records[id]

    def expect(self, record: RunRecord, step: Step, moment: float) -> None:
        """A step of the present attempt comes to an end at this moment."""
        heappush(self.coming, Coming(moment, self.started, record.job.id, record.attempts, step))
        self.started += 1
