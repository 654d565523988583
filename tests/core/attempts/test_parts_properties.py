"""Random histories of jobs over several hosts.

Managers and runners die, hosts fall silent, cannot be made ready or are started anew, and words come late, twice
or not at all. Whatever happens no core is given to another job while something of the first may be left on any of
its hosts, no end is lost, and when every fault is healed everybody ends.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from rota.core import events
from rota.core.attempts.part_index import PartIndex
from rota.core.attempts.parts import closing_jobs
from rota.core.jobs.job import Spec
from rota.core.states import State
from rota.plan.need import LimitUse
from rota.plan.policy.limits import Limit
from tests.core.machine import Entry, Machine, spec
from tests.core.runners import ModelRunner
from tests.core.test_properties import Histories, numbers
from tests.dose import half, histories

requests = st.sampled_from(
    [
        ("/host=2/core=1,walltime=1",),
        ("/host=2/core=2,walltime=1",),
        ("/host=2/core=4,walltime=1",),
        ("/host=3/core=1,walltime=1",),
        ("/host=3/core=4,walltime=1",),
        ("/host=1/core=2+/host=1/core=3,walltime=1",),
        ("core=1,walltime=1",),
    ]
)
wide_specs = st.builds(
    lambda request, retries, priority, limits, types: spec(
        request=request, retries=retries, priority=priority, limits=limits, backoff_s=0.0, types=types,
        queue="besteffort" if types else "default",
    ),
    requests,
    st.sampled_from([0, 0, 1, 2]),
    st.sampled_from([0, 0, 10]),
    st.sampled_from([(), (), (LimitUse("a"),), (LimitUse("a", 2),)]),
    st.sampled_from([(), (), (), ("besteffort",), ("besteffort", "idempotent")]),
)  # fmt: skip
wide = st.lists(wide_specs, min_size=1, max_size=4)


class WideHistories(Histories):
    """Each rule is one thing more that can happen."""

    @initialize(seed=numbers, lines=wide)
    def begin(self, seed: int, lines: list[Spec]) -> None:
        self.m = Machine(seed=seed, hosts=3)
        for host in self.m.capacity:
            self.m.join(self.m.start_runner(host))
        self.m.happened(events.LimitsDeclared(by=self.m.asker(), limits=[Limit("a", 3)]))
        self.add_wide(lines)

    @rule(lines=wide)
    def add_wide(self, lines: list[Spec]) -> None:
        self.m.send_chunk([Entry(f"w{n}", its) for n, its in enumerate(lines)], fresh=True)

    @rule(lines=wide, pick=numbers, count=st.integers(1, 4))
    def hosts_are_told_and_one_says_nothing(self, lines: list[Spec], pick: int, count: int) -> None:
        """In the middle of opening parts, or of closing them."""
        self.add_wide(lines)
        runners = self._some(connected=True)
        quiet = runners[pick % len(runners)] if runners else None
        for _round in range(count):
            self.m.commit()
            for runner in runners:
                runner.deliver()
                if runner is not quiet:
                    runner.report()
                    self.m.hear(runner)

    @precondition(lambda self: self._some(connected=True, unready=False))
    @rule(pick=numbers)
    def a_host_cannot_be_made_ready(self, pick: int) -> None:
        self._runner(pick, connected=True, unready=False).unready = True

    @rule(pick=numbers, whole=st.booleans(), flow=st.booleans())
    def a_runner_dies_and_its_successor_settles_it(self, pick: int, whole: bool, flow: bool) -> None:
        """The usual order of things: what is left of a dead one is ended before anything else."""
        if flow:
            self.m.pump()
        living = self._some(dead=False)
        if living:
            runner = living[pick % len(living)]
            self.m.die(runner, noticed=whole)
            self.m.settle(runner, whole=whole)
            self.m.join(self.m.start_runner(runner.host))

    @precondition(lambda self: closing_jobs(self.m.world))
    @rule(durable=st.booleans())
    def crash_while_parts_are_closed(self, durable: bool) -> None:
        self.crash(durable)

    @precondition(lambda self: self._closers())
    @rule(pick=numbers, crash=st.booleans())
    def a_host_that_is_to_be_cleaned_loses_its_connection(self, pick: int, crash: bool) -> None:
        closers = self._closers()
        runner = closers[pick % len(closers)]
        if crash:
            self.crash(False)
        else:
            self.m.disconnect(runner)
        self.m.join(runner)
        self.m.commit()

    def _closers(self) -> list[ModelRunner]:
        """Connected runners that have a part of an attempt that is over."""
        found = [
            runner
            for runner in self._some(connected=True)
            if {job for job, *_ in runner.parts} & closing_jobs(self.m.world)
        ]
        return sorted(found, key=lambda runner: runner.id)

    @rule(which=numbers, hears=st.booleans())
    def a_command_ends_and_only_its_first_host_is_heard(self, which: int, hears: bool) -> None:
        """Its parts are still there."""
        busy = self._some(busy=True, connected=True)
        if busy:
            runner = busy[which % len(busy)]
            self.command_ends(which, which, "ok")
            for each in [runner] if hears else busy:
                each.report()
                self.m.hear(each)
            self.m.commit()

    @rule(pause=st.sampled_from([True, False, False]))
    def pause_or_resume(self, pause: bool) -> None:
        self.m.happened(events.ManagerPaused() if pause else events.ManagerResumed())

    def lift(self) -> None:
        self._nobody_is_waited_for_in_vain()
        for runner in self.m.runners.values():
            runner.unready = False
        self.m.happened(events.ManagerResumed())
        changes = [("host", name, None) for name in self.m.world.site["host"]]
        if changes:
            self.m.happened(events.SiteChanged(by=self.m.asker(), changes=changes))

    def _nobody_is_waited_for_in_vain(self) -> None:
        """When every host has a runner that answers, no job is lost for long."""
        for _tick in range(4):
            for runner in self._some(connected=True):
                runner.report()
            self.m.pump()
            self.m.advance(30.0)
        assert not [job for job in self.m.world.jobs.values() if job.state is State.LOST]

    def judge(self) -> None:
        assert self.m.unfinished() == []
        assert not self.m.witness.parts
        assert not self.m.world.use(PartIndex).at
        assert not closing_jobs(self.m.world)
        assert not [job for job in self.m.world.jobs.values() if job.state is State.LOST]


TestWideHistories = WideHistories.TestCase
TestWideHistories.settings = histories(half(40), steps=40)
