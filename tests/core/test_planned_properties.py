"""Random histories in which jobs ask for more than a size: the plan opens, closes, and survives what happens.

To all that happens in `test_properties` come requests, types, queues, reservations, quotas, hosts that are
drained, limits and modifications. The plan agrees with itself after every step, no core is given twice, and
once every fault is healed nobody waits for ever.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from rota.core import events
from rota.core.jobs.job import Job, Spec
from rota.core.rows import SpecRow
from rota.core.site.reservations import Reservations
from rota.core.states import RETRYABLE, WAITING, State
from rota.plan.need import LimitUse
from rota.plan.policy.limits import Limit
from rota.plan.size import Size
from tests.core.machine import GIB, Entry, spec
from tests.core.test_properties import Histories, numbers
from tests.dose import half, histories

requests = st.sampled_from(
    [
        (),
        ("core=1",),
        ("core=1,walltime=0:1:0",),
        ("core=2,walltime=0:10:0",),
        ("host=1,walltime=1",),
        ("core=3,walltime=2", "core=1,walltime=3"),
        ("/host=1/core=2+/host=1/core=1,walltime=0:5:0",),
        ("core=ALL,walltime=0:1:0",),
        ("core=BEST",),
    ]
)
#: Types, and the queue that goes with them. Times are counted from the beginning of the history, 1000.
types = st.sampled_from(
    [
        ((), "default"),
        ((), "default"),
        ((), "admin"),
        (("besteffort",), "besteffort"),
        (("besteffort", "idempotent"), "besteffort"),
        (("idempotent",), "default"),
        (("container",), "default"),
        (("inner=box",), "default"),
        (("timesharing=*,*",), "default"),
        (("timesharing=user,*",), "admin"),
        (("placeholder=p",), "default"),
        (("allowed=p",), "default"),
        (("noop",), "default"),
        (("deploy",), "default"),
        (("postpone=1200",), "default"),
        (("expire=1500",), "default"),
        (("deadline=9000",), "default"),
    ]
)
sizes = st.sampled_from([Size(), Size(), Size(mem=3 * GIB, time_s=60.0), Size(mem=GIB, time_s=20.0)])
limits = st.sampled_from([(), (), (), (LimitUse("a"),), (LimitUse("a", 2),), (LimitUse("a", exclusive=True),)])


@st.composite
def planned_specs(draw: st.DrawFn) -> Spec:
    words, queue = draw(types)
    timed = {word.partition("=")[0] for word in words}
    reserved = st.none() if timed & {"besteffort", "inner", "postpone", "expire", "deadline"} else moments
    return spec(
        request=draw(requests),
        types=words,
        queue=queue,
        at=draw(reserved),
        size=draw(sizes),
        where=draw(st.sampled_from(["", "", "", "host = 'h1'", "core > 1"])),
        name=draw(st.sampled_from(["", "", "box"])),
        priority=draw(st.sampled_from([0, 0, 10])),
        retries=draw(st.sampled_from([0, 1])),
        walltime_s=draw(st.sampled_from([None, None, 300.0])),
        limits=draw(limits),
    )


moments = st.sampled_from([None, None, None, 1100.0, 2000.0, 6000.0, 20000.0])
planned = st.lists(planned_specs(), min_size=1, max_size=4)
records = st.sampled_from(
    [
        ("quota", "*,*,*,/", [1]),
        ("quota", "*,*,*,*", [-1, 2]),
        ("quota", "*,*,*,/", None),
        ("queue", "default", {"backfill": "easy"}),
        ("queue", "default", {"backfill": "none"}),
        ("queue", "default", {"order": "fairshare"}),
        ("queue", "default", None),
        ("host", "h1", {"drain": True}),
        ("host", "h1", {"mem": 4 * GIB}),
        ("host", "h1", None),
    ]
)


def postponed_to(job: Job) -> float:
    """When it may begin; 0.0: at any time."""
    return max(
        (float(word.partition("=")[2]) for word in job.spec.types if word.startswith("postpone=")), default=0.0
    )


class PlannedHistories(Histories):
    """Each rule is one thing more that can happen."""

    @rule(lines=planned, apart=st.booleans(), fresh=st.booleans())
    def add_planned(self, lines: list[Spec], apart: bool, fresh: bool) -> None:
        chunk = [Entry(f"p{n}", its) for n, its in enumerate(lines)]
        for some in [[each] for each in chunk] if apart else [chunk]:
            self.m.send_chunk(some, fresh=fresh, allow_unsatisfiable=True)

    @rule(its=planned_specs(), count=st.integers(2, 6))
    def add_many_equal_ones(self, its: Spec, count: int) -> None:
        self.m.send_chunk([Entry("equal", its)] * count, fresh=True, allow_unsatisfiable=True)

    @rule(record=records)
    def change_site(self, record: tuple[str, str, Any]) -> None:
        kind, name, value = record
        if value is None and name not in self.m.world.site[kind]:
            return
        self.m.happened(events.SiteChanged(by=self.m.asker(), changes=[record]))

    @rule(units=st.sampled_from([0, 1, 2, 3, None]))
    def declare_limit(self, units: int | None) -> None:
        self.m.happened(events.LimitsDeclared(by=self.m.asker(), limits=[Limit("a", units)]))

    @rule(pause=st.sampled_from([True, False, False]))
    def pause_or_resume(self, pause: bool) -> None:
        self.m.happened(events.ManagerPaused() if pause else events.ManagerResumed())

    @rule(picks=st.lists(numbers, min_size=1, max_size=3), its=planned_specs(), plain=st.booleans())
    def modify(self, picks: list[int], its: Spec, plain: bool) -> None:
        jobs = self._jobs(picks, *WAITING, *RETRYABLE)
        fields: dict[str, Any] = {"priority": 5}
        if plain:
            fields |= {"request": (), "types": (), "queue": "default", "at": None, "where": ""}
        elif its.at is None:
            fields |= {"request": its.request, "types": its.types, "queue": its.queue, "at": None}
        specs, rows = {}, []
        for id in jobs:
            found = self.m.world.jobs.get(id) or self.m.load([id]).get(id)
            if found is not None:
                new = msgspec.structs.replace(found.spec, **fields)
                number = self.m._spec_ids.setdefault(new, len(self.m._spec_ids) + 1)
                rows.append(SpecRow(number, msgspec.json.encode(new).decode()))
                specs[found.spec_id] = (number, new)
        by = self.m.asker()
        self.m.happened(
            events.LibraryGrew(specs=rows, envs=[]),
            events.JobsModified(by=by, jobs=jobs, loaded=self.m.load(jobs), specs=specs, fields=sorted(fields)),
        )

    def lift(self) -> None:
        self.m.happened(events.ManagerResumed())
        changes = [(kind, name, None) for kind in ("quota", "queue", "host") for name in self.m.world.site[kind]]
        if changes:
            self.m.happened(events.SiteChanged(by=self.m.asker(), changes=changes))
        self.m.happened(events.LimitsDeclared(by=self.m.asker(), limits=[Limit("a", 3)]))

    def _has_reservations(self) -> bool:
        found = self.m.world.find(Reservations)
        return found is not None and bool(found.granted)

    def _is_idle(self) -> bool:
        """Has nobody a lease, or the promise of one at a fixed time?"""
        return not self._has_reservations() and not any(runner.leases for runner in self.m.world.runners.values())

    def _ready(self) -> list[Job]:
        return [job for job in self.m.world.jobs.values() if job.state is State.READY]

    def _let_postponed_jobs_come_due(self) -> None:
        """Until then the cores are kept for them: a job that goes after one, and would not be over, waits."""
        last = max((postponed_to(job) for job in self._ready()), default=0.0)
        if last > self.m.wall:
            self.m.advance(last - self.m.wall + 1.0)
            self.m.pump()

    @precondition(lambda self: not self.m.world.uploads)
    @rule()
    def nobody_waits_while_everything_is_idle(self) -> None:
        self.m.heal()
        self.lift()
        self.m.pump()
        if self._is_idle():
            self._let_postponed_jobs_come_due()
        if self._is_idle():
            assert not [
                job for job in self._ready() if (not job.spec.types or postponed_to(job)) and job.spec.at is None
            ]

    def judge(self) -> None:
        # An inner job waits for a container that may never come, and so do those after it.
        homeless = {
            job.id for job in self.m.world.jobs.values() if any("inner" in word for word in job.spec.types)
        }
        left = [job for job in self.m.unfinished() if job.id not in homeless and job.state is not State.DEPENDENT]
        assert left == []
        if not homeless and not self.m.unfinished():
            assert self.m.world.placement.planner is None, "nobody needs a plan any more"


TestPlannedHistories = PlannedHistories.TestCase
TestPlannedHistories.settings = histories(half(60), steps=50)
