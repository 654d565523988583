"""Accounting: sums that are exact whatever happens, split over windows, with what runs up to now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from rota.core.accounts.accounting import HOUR_US, micros, spread
from rota.core.accounts.sums import AccountKey, AccountSums, HourAccount, MinuteSums
from rota.core.changes import Changes
from rota.core.jobs.job import Spec
from rota.core.jobs.outcome import Outcome
from rota.errors import BadInput
from rota.manager.accounts import accounts
from rota.manager.loop import clock
from rota.plan.size import Size
from rota.store import json_columns
from rota.store.base import Accounts
from rota.store.memory.store import MemoryStore
from rota.wire import messages as m
from rota.wire.sums import AccountRow
from tests.core.machine import Machine
from tests.core.test_properties import Histories, entries, numbers
from tests.dose import half, histories

DAY_S = 86_400
ANN = ("ann", "", "default")
#: Of every hour that the tests know.
MANY_HOURS = 2000


def shown(
    rows: dict[AccountKey, AccountSums], *, begin: int = 0, end: int = MANY_HOURS, window_s: int = 3600
) -> list[AccountRow]:
    stored = [HourAccount(*key, row) for key, row in rows.items()]
    found = accounts.view(
        Accounts(stored, []), {}, begin=begin, end=end, window_s=window_s, by=accounts.BY, now=0.0
    )
    return found.rows


def by_hour(start: int, end: int, cpus: int) -> Iterator[tuple[int, int]]:
    """Hour by hour, as one would do it by hand."""
    at = start
    while at < end:
        over = min(end, (at // HOUR_US + 1) * HOUR_US)
        yield at // HOUR_US, cpus * (over - start) // 100 - cpus * (at - start) // 100
        at = over


moments = st.integers(1, 40 * HOUR_US)


@given(st.lists(st.tuples(moments, moments, st.sampled_from([0, 1, 33, 50, 100, 250, 6400])), max_size=6))
def test_spans_are_split_over_the_hours_they_lie_in(spans: list[tuple[int, int, int]]) -> None:
    rows: dict[AccountKey, AccountSums] = {}
    expected: Counter[int] = Counter()
    for start, length, cpus in spans:
        spread(rows, ANN, start, start + length, cpus, "used")
        expected.update(dict(by_hour(start, start + length, cpus)) if cpus else {})
    assert found(shown(rows), "used_s") == +expected


@given(moments, moments, st.integers(1, 90), st.integers(0, 30))
def test_a_view_that_begins_in_the_middle_shows_the_same_as_the_whole(
    start: int, length: int, window: int, begin: int
) -> None:
    store = MemoryStore()
    changes = Changes()
    spread(changes.accounts, ANN, start, start + length, 150, "used")
    spread(changes.accounts, ANN, start, start + length // 2, 150, "asked")
    store.commit(changes)

    def windows(begin: int) -> list[AccountRow]:
        found = store.accounts(first=begin * window, end=100 * window)
        return accounts.view(found, {}, begin=begin, end=100, window_s=3600 * window, by=accounts.BY, now=0.0).rows

    assert windows(begin) == [row for row in windows(0) if row.at.timestamp() >= begin * 3600 * window]


def test_a_long_job_is_few_rows() -> None:
    rows: dict[AccountKey, AccountSums] = {}
    spread(rows, ANN, HOUR_US // 2, 5000 * HOUR_US + 1, 100, "used")
    assert len(rows) == 3


def test_ten_days_of_two_resources_are_172800_resource_seconds_in_each_inner_day() -> None:
    rows: dict[AccountKey, AccountSums] = {}
    start = 6 * HOUR_US
    spread(rows, ANN, start, start + 240 * HOUR_US, 200, "used")
    found = shown(rows, end=100, window_s=DAY_S)
    assert [row.used_s for row in found] == [129_600.0, *[172_800.0] * 9, 43_200.0]


# ------------------------------------------------------------------ jobs


def accounted(machine: Machine, *, by: tuple[str, ...] = accounts.BY, window_s: int = 3600) -> list[AccountRow]:
    hours = window_s // 3600
    end = int(machine.wall // window_s) + 200 // hours + 2
    found = machine.store.accounts(first=0, end=end * hours)
    specs = machine.store.load().specs
    return accounts.view(found, specs, begin=0, end=end, window_s=window_s, by=by, now=machine.wall).rows


def until_now(machine: Machine, window_s: int) -> list[AccountRow]:
    """What is shown of windows of this length unless somebody says until when."""
    hours, end = window_s // 3600, -int(-machine.wall // window_s)
    found = machine.store.accounts(first=0, end=end * hours)
    specs = machine.store.load().specs
    return accounts.view(found, specs, begin=0, end=end, window_s=window_s, by=accounts.BY, now=machine.wall).rows


def total(rows: list[AccountRow], name: str) -> float:
    return sum(getattr(row, name) for row in rows)


def test_an_attempt_adds_what_it_used_and_what_it_asked_for() -> None:
    machine = Machine()
    machine.with_runner()
    (job,) = machine.add("a", project="p", walltime_s=600.0).added
    machine.advance(50.0)
    machine.end(job, Outcome(exit_code=0, started_at=1000.0, ended_at=1050.0, cpu_s=12.5))
    (row,) = accounted(machine)
    assert (row.user, row.project, row.queue) == ("ann", "p", "default")
    assert (row.attempts, row.jobs, row.failed) == (1, 1, 0)
    assert (row.used_s, row.given_s, row.asked_s, row.cpu_s) == (50.0, 600.0, 600.0, 12.5)


def test_what_was_asked_for_is_neither_what_was_learned_nor_a_default() -> None:
    """Four attempts run for a second each of which two asked for five; what they were given is something else."""
    machine = Machine()
    machine.with_runner()
    sizes = [(Size(time_s=5.0), ("time",)), (Size(), ())] * 2
    for n, (size, said) in enumerate(sizes):
        (job,) = machine.add(f"tool {n}", size=size, given=said).added
        machine.advance(1.0)
        machine.end(job)
    (row,) = accounted(machine)
    assert (row.used_s, row.asked_s, row.unasked) == (4.0, 10.0, 2)
    assert row.given_s > 600.0


def test_what_was_asked_for_is_not_known_of_hours_that_an_earlier_version_summed_up() -> None:
    rows: dict[AccountKey, AccountSums] = {}
    spread(rows, ANN, HOUR_US // 2, 5 * HOUR_US + 7, 100, "used")
    spread(rows, ANN, HOUR_US // 2, 5 * HOUR_US + 7, 100, "given")
    spread(rows, ANN, 7 * HOUR_US, 8 * HOUR_US, 100, "asked")
    found = Accounts([HourAccount(*key, row) for key, row in rows.items()], [], asked_since=6)
    seen = accounts.view(found, {}, begin=0, end=9, window_s=3600, by=accounts.BY, now=0.0).rows
    assert [(row.at.hour, row.asked_s, row.unasked) for row in seen] == [
        *((hour, None, None) for hour in range(6)),
        (7, 3600.0, 0),
    ]
    (whole,) = accounts.view(found, {}, begin=0, end=1, window_s=DAY_S, by=accounts.BY, now=0.0).rows
    assert (whole.asked_s, whole.given_s) == (None, whole.used_s)


@pytest.mark.parametrize("lasted", [10.0, 4000.0, 9000.0])
@pytest.mark.parametrize("asked", [5.0, 3600.0, 20_000.0])
def test_days_and_hours_until_now_have_the_same_sums(lasted: float, asked: float) -> None:
    machine = Machine()
    machine.with_runner()
    ended, _runs = machine.add("a", "b", walltime_s=asked).added
    began = machine.wall
    machine.advance(lasted)
    machine.end(ended, Outcome(exit_code=0, started_at=began, ended_at=machine.wall))
    hours, days = until_now(machine, 3600), until_now(machine, DAY_S)
    assert total(days, "asked_s") == asked + min(asked, lasted)
    for name in ("attempts", "used_s", "asked_s"):
        assert total(hours, name) == total(days, name)


def test_what_runs_counts_up_to_now_and_no_more_is_asked_than_was() -> None:
    machine = Machine()
    machine.with_runner()
    machine.add("a", walltime_s=60.0)
    machine.advance(40.0)
    assert [(row.attempts, row.used_s, row.asked_s) for row in accounted(machine)] == [(0, 40.0, 40.0)]
    machine.advance(40.0)
    assert [(row.used_s, row.asked_s) for row in accounted(machine)] == [(80.0, 60.0)]


def test_a_retried_job_has_several_attempts_and_one_end() -> None:
    machine = Machine()
    machine.with_runner()
    (job,) = machine.add("a", retries=1, backoff_s=0.0).added
    for _ in range(2):
        machine.advance(1.0)
        machine.pump()
        machine.end(job, exit_code=1)
    rows = accounted(machine)
    assert (total(rows, "attempts"), total(rows, "jobs"), total(rows, "failed")) == (2, 1, 2)


def test_rows_are_told_apart_only_by_what_is_asked_for() -> None:
    machine = Machine()
    machine.with_runner()
    for project in ("p", "q"):
        (job,) = machine.add(project, project=project).added
        machine.end(job)
    assert [row.project for row in accounted(machine) if row.jobs] == ["p", "q"]
    (row,) = [row for row in accounted(machine, by=("user",)) if row.jobs]
    assert (row.user, row.project, row.queue, row.jobs) == ("ann", "", "", 2)


def test_a_time_that_cannot_be_does_no_harm() -> None:
    machine = Machine()
    machine.with_runner()
    for cmd, ended_at in (("a", float("nan")), ("b", float("inf")), ("c", -5.0)):
        (job,) = machine.add(cmd).added
        machine.end(job, Outcome(exit_code=0, started_at=1000.0, ended_at=ended_at, cpu_s=float("inf")))
    assert total(accounted(machine), "attempts") == 3
    assert micros(None) == micros(float("nan")) == micros(1e300) == 0


def test_the_minutes_count_starts_ends_waits_and_runs() -> None:
    machine = Machine(cpus=100)
    machine.with_runner()
    first, second = machine.add("a", "b").added
    machine.advance(30.0)
    machine.end(first)
    machine.advance(60.0)
    machine.end(second, exit_code=1)
    (cancelled,) = machine.add("c").added
    machine.do("kill", cancelled)
    machine.pump()
    rows = machine.store.minutes(since=0)
    total = MinuteSums()
    for row in rows:
        total.add(row.sums)
    assert (total.complete, total.failed) == (1, 1)
    assert total.started >= 2
    assert total.waited == 30_000_000
    assert total.ran >= 90_000_000


@pytest.mark.parametrize(
    "ask",
    [
        m.GetAccounts(1, by=("host",)),
        m.GetAccounts(1, window_s=5),
        m.GetAccounts(1, window_s=0),
        m.GetAccounts(1, since=2e9, until=1e9),
        m.GetAccounts(1, since=float("nan")),
        m.GetAccounts(1, until=float("inf")),
        m.GetAccounts(1, since=-1e15, until=1e15),
        m.GetAccounts(1, since=0.0, until=4e9, window_s=3600),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(ask: m.GetAccounts) -> None:
    with pytest.raises(BadInput):
        accounts.accounting(MemoryStore(), {}, ask)


def test_a_client_of_an_earlier_version_reads_numbers_where_it_knows_no_null() -> None:
    store, changes = MemoryStore(), Changes()
    changes.accounts[AccountKey(int(clock.now() // 3600), *ANN)] = AccountSums(given=HOUR_US)
    store.commit(changes)
    for ask in (m.GetAccounts(1), m.GetAccounts(1, apart=True)):
        row = accounts.accounting(store, {}, ask).rows[0]
        assert row.given_s == 3600.0
        assert row.asked_s == (0.0 if ask.apart else 3600.0)


@pytest.mark.parametrize("minutes", [0, -1, 10_081])
def test_a_history_has_at_most_a_week(minutes: int) -> None:
    with pytest.raises(BadInput):
        accounts.history(MemoryStore(), m.GetHistory(1, minutes))


def test_a_history_has_every_minute() -> None:
    assert len(accounts.history(MemoryStore(), m.GetHistory(1, 90)).minutes) == 90


# ------------------------------------------------------------------ any history


class Accounted(Histories):
    """After every fault, crash and repeated report the sums are those of the attempts that ended."""

    @initialize(seed=numbers, hosts=st.sampled_from([1, 1, 2]), lines=entries)
    def begin(self, seed: int, hosts: int, lines: list[Any]) -> None:
        super().begin(seed=seed, hosts=hosts, lines=lines)
        #: every attempt whose end is on disk, also of jobs that were removed since
        self.told: dict[tuple[int, int], tuple[int, Size | None, float | None, float]] = {}
        store, commit = self.m.store, self.m.store.commit

        def witnessed(changes: Changes) -> None:
            stored = store.tables.attempts
            sizes = {key: (row.spec, row.size) for key, row in stored.items()}
            sizes |= {
                (row.job, row.number): (row.spec_id, json_columns.size(row.size)) for row in changes.attempts
            }
            starts = {key: row.started_at for key, row in stored.items()}
            starts |= {(row.job, row.number): row.started_at for row in changes.starts}
            for row in changes.ends:
                key = (row.job, row.number)
                self.told[key] = (*sizes[key], row.started_at or starts.get(key), row.ended_at)
            commit(changes)

        store.commit = witnessed  # type: ignore[method-assign]

    def judge(self) -> None:
        super().judge()
        store = self.m.store
        specs: dict[int, Spec] = store.load().specs
        used: Counter[int] = Counter()
        asked: Counter[int] = Counter()
        lent: Counter[int] = Counter()
        for spec_id, size, started_at, ended_at in self.told.values():
            spec, start = specs[spec_id], micros(started_at)
            its = size or spec.size
            if start and its.cpus:
                used.update(dict(by_hour(start, micros(ended_at), its.cpus)))
                said = spec.walltime_s or (spec.size.time_s if "time" in spec.given else 0.0)
                for sums, seconds in ((lent, spec.walltime_s or its.time_s), (asked, said)):
                    whole = micros(seconds)
                    part = dict(by_hour(start, min(micros(ended_at), start + whole), its.cpus))
                    sums.update(part)
                    sums[micros(ended_at) // HOUR_US] += its.cpus * whole // 100 - sum(part.values())
        rows = accounted(self.m)
        assert store.accounts(first=0, end=1).running == []
        assert total(rows, "attempts") == len(self.told)
        assert found(rows, "used_s") == +used
        assert found(rows, "given_s") == +lent
        assert found(rows, "asked_s") == +asked
        for name in ("attempts", "used_s", "given_s", "asked_s", "cpu_s", "wait_s"):
            sums = {round(total(until_now(self.m, hours * 3600), name) * 1e6) for hours in (1, 5, 24, 168)}
            assert len(sums) == 1, name


def found(rows: list[AccountRow], name: str) -> dict[int, int]:
    """Microseconds of each hour."""
    hours = {int(row.at.timestamp()) // 3600: round(getattr(row, name) * 1e6) for row in rows}
    return {hour: us for hour, us in hours.items() if us}


TestAccounted = Accounted.TestCase
TestAccounted.settings = histories(half(25), steps=40)
