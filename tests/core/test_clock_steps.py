"""Clock steps: random histories in which the wall clock is set, forward and back, at any moment.

The manager's clock is the real one (`rota.manager.loop.clock`), over a wall clock that is set at will and the
time that really passes. Everything that holds in other histories holds here, every job ends, and sums stay sane.
"""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from rota.core import events
from rota.core.attempts.reported_times import SLACK_S
from rota.core.changes import Changes
from rota.core.jobs.job import Condition, Spec
from rota.core.jobs.outcome import Outcome
from rota.core.states import State
from rota.manager.accounts import accounts
from rota.manager.loop.clock import CLOCK, CONFIRMED_AFTER_S, Reading, SteadyClock, reading_of, starting_time
from rota.plan.size import CORE
from tests.core.machine import Machine
from tests.core.test_planned_properties import PlannedHistories
from tests.core.test_properties import Histories, entries, numbers
from tests.dose import half, histories

DAY = 86_400.0
YEAR = 366 * DAY

steps = st.sampled_from([-2 * YEAR, -DAY, -1800.0, -30.0, 30.0, 1800.0, DAY, 2 * YEAR])


class ClockHistories(Histories):
    """Runners tell times by clocks that were set, too."""

    begins = 1_800_000_000.0
    earliest = 0.0  #: no clock is set to less

    @initialize(seed=numbers, hosts=st.sampled_from([1, 2]), lines=entries)
    def begin(
        self, seed: int, hosts: int, lines: list[tuple[str, Spec, list[tuple[int, Condition, bool]]]]
    ) -> None:
        self.m = Machine(seed=seed, hosts=hosts)
        self.m.wall, self.off = self.begins, self.begins - self.m.mono
        self.clock = SteadyClock(wall=lambda: self.off + self.m.mono, steady=lambda: self.m.mono)
        self.checked = self.m.mono
        self.seen: dict[tuple[int, int], float] = {}  #: attempts → when there was no such lease yet, really
        first = Changes()
        first.meta[CLOCK] = self._reading().text()
        self.m.store.commit(first)
        for host in self.m.capacity:
            self.m.join(self.m.start_runner(host))
        self.add(lines, None, False, False)
        self.m.pump()

    @rule(by=steps)
    def set_clock(self, by: float) -> None:
        self.off = max(self.earliest, self.off + by)
        self._look()

    @rule(by=steps)
    def an_hour_passes_after_the_clock_was_set(self, by: float) -> None:
        self.set_clock(by)
        for _ in range(3):
            self.m.advance(CONFIRMED_AFTER_S / 2)
            self._look()
        self.m.pump()
        self._look()

    def _look(self) -> None:
        """What the manager does in each turn."""
        self.clock.look()
        before, self.m.wall = self.m.wall, self.clock.now()
        if self.clock.confirmed and not self.m.open:
            by = self.clock.follow()
            self.m.wall = self.clock.now()
            batch = self.m.open
            self.m.happened(events.ClockMoved(by=by))
            batch.changes.meta[CLOCK] = self._reading().text()
        else:
            assert abs(self.m.wall - before) <= SLACK_S, "nobody has agreed with the step"

    def _reading(self, at: float | None = None) -> Reading:
        return Reading("boot", self.m.mono, self.clock.now() if at is None else at)

    @rule(durable=st.booleans())
    def crash(self, durable: bool) -> None:
        """The next manager begins with what was written down; a move that was not, it has to make again."""
        super().crash(durable)
        known = reading_of(self.m.store.load().meta[CLOCK])
        begin = starting_time(known, newest=0.0, at_stake=True, now=self._reading(self.off + self.m.mono))
        self.clock = SteadyClock(begin=begin, wall=lambda: self.off + self.m.mono, steady=lambda: self.m.mono)
        self.m.wall = self.clock.now()

    @rule(pick=numbers, by=steps)
    def a_command_ends_by_a_clock_that_was_set(self, pick: int, by: float) -> None:
        busy = self._some(busy=True, dead=False)
        if busy:
            runner = busy[pick % len(busy)]
            seat = list(runner.busy)[pick % len(runner.busy)]
            started = runner.busy[seat].started_at
            runner.end(seat, Outcome(exit_code=0, started_at=started, ended_at=self.m.wall + by), self.m.wall)

    @invariant()
    def attempts_take_no_longer_than_they_can_have(self) -> None:
        if not hasattr(self, "seen"):
            return
        self._look()
        for job in self.m.world.jobs.values():
            if job.lease is not None:
                self.seen.setdefault((job.id, job.attempt), self.checked)
        self.checked = self.m.mono
        for (job_id, number), since in self.seen.items():
            for row in self.m.store.attempts(job_id):
                if row.number == number and row.started_at is not None and row.ended_at is not None:
                    assert 0 <= row.ended_at - row.started_at <= self.m.mono - since + 2 * SLACK_S + 1

    @invariant()
    def delays_are_over_when_they_should_be(self) -> None:
        if hasattr(self, "seen"):
            for job in self.m.world.jobs.values():
                if job.state is State.DELAYED and job.due_at is not None:
                    assert job.due_at <= self.m.wall + 2 * 3600 + SLACK_S, "it would wait for years"

    def judge(self) -> None:
        super().judge()
        found = self.m.store.accounts(first=0, end=1 << 30)
        specs = self.m.store.load().specs
        shown = accounts.view(found, specs, begin=0, end=200, window_s=366 * 86_400, by=(), now=self.m.wall)
        used = sum(row.used_s for row in shown.rows)
        assert all(row.used_s >= 0 and row.wait_s >= 0 and row.cpu_s >= 0 for row in shown.rows)
        if self.m.removed:
            return  # with their attempts
        attempts = [row for id in range(1, self.m.world.next_job) for row in self.m.store.attempts(id)]
        ran = [row for row in attempts if row.started_at is not None and row.ended_at is not None]
        sizes = {id: each.size for id, each in specs.items()}
        took = sum(
            (row.size or sizes[row.spec]).cpus / CORE * (row.ended_at - row.started_at)
            for row in ran
            if row.outcome != "void"
        )
        assert used == pytest.approx(took, abs=0.01 + 1e-4 * len(ran))


class PlannedClockHistories(ClockHistories, PlannedHistories):
    """With a plan, whose times are dates: reservations, deadlines, the ends of all that runs."""

    begins = 1000.0  #: as `test_planned_properties` has it
    earliest = 1000.0

    def judge(self) -> None:
        PlannedHistories.judge(self)


TestClockHistories = ClockHistories.TestCase
TestClockHistories.settings = histories(half(20), steps=30)
TestPlannedClockHistories = PlannedClockHistories.TestCase
TestPlannedClockHistories.settings = histories(half(16), steps=30)
