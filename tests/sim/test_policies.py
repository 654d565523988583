"""The policies of `rota simulate`: by hand on small traces, and job by job against the naive reference."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.sim.replay import replay
from rota.sim.swf import SwfJob, SwfTrace
from tests.dose import FACTOR, dose
from tests.sim.reference import POLICIES, Reference, RefJob

#: Of each job, in the order of the file: when it starts, and on which processors (none: they are counted).
Schedule = list[tuple[float, list[int]]]
#: submit, processors, run, estimate
Line = tuple[float, int, float, float]
Simulate = Callable[..., Schedule]


def by_planner(lines: Sequence[Line], *, procs: int, policy: str, counted: bool = False) -> Schedule:
    jobs = [SwfJob(n, submit, asked, run, estimate) for n, (submit, asked, run, estimate) in enumerate(lines)]
    trace = SwfTrace({}, sorted(jobs, key=lambda job: job.submit))
    replayed = replay(trace, processors=procs, policy=policy, counted=counted)
    assert not replayed.skipped
    assert all(each.end == each.start + each.job.run for each in replayed.ran)
    found = {each.job.id: (each.start, each.processors or []) for each in replayed.ran}
    return [found[n] for n in range(len(lines))]


def by_reference(lines: Sequence[Line], *, procs: int, policy: str, counted: bool = False) -> Schedule:
    jobs = [RefJob(*line) for line in lines]
    Reference(jobs, procs=procs, policy=policy, counted=counted).replay()
    return [(job.start if job.start is not None else -1, sorted(job.held)) for job in jobs]


@pytest.fixture(params=[by_planner, by_reference], ids=["planner", "reference"])
def simulate(request: pytest.FixtureRequest) -> Simulate:
    found: Simulate = request.param
    return found


def starts(schedule: Schedule) -> list[float]:
    return [start for start, _ in schedule]


# ------------------------------------------------------------------ by hand

BOTH = pytest.mark.parametrize("counted", [False, True], ids=["numbered", "counted"])

#: The head (of 3) waits for the first, then comes one that wants all, then a long small one.
DIFFERENT = [(0, 2, 10, 10), (1, 3, 10, 10), (2, 4, 10, 10), (3, 1, 100, 100)]


@BOTH
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("fcfs", [0, 10, 20, 30]),
        ("easy", [0, 10, 103, 3]),  # only the head is protected
        ("easy-sjbf", [0, 10, 103, 3]),
        ("conservative", [0, 10, 20, 30]),  # everybody is
    ],
)
def test_easy_and_conservative_differ_as_defined(
    simulate: Simulate, policy: str, expected: list[float], counted: bool
) -> None:
    assert starts(simulate(DIFFERENT, procs=4, policy=policy, counted=counted)) == expected


@BOTH
def test_fcfs_lets_nobody_past_the_head(simulate: Simulate, counted: bool) -> None:
    lines = [(0, 2, 10, 10), (1, 4, 10, 10), (2, 1, 1, 1)]
    assert starts(simulate(lines, procs=4, policy="fcfs", counted=counted)) == [0, 10, 20]
    assert starts(simulate(lines, procs=4, policy="easy", counted=counted)) == [0, 10, 2]


@BOTH
def test_sjbf_offers_a_gap_to_the_shortest_estimate_first(simulate: Simulate, counted: bool) -> None:
    lines = [(0, 3, 20, 20), (0, 1, 10, 10), (1, 4, 10, 10), (2, 1, 10, 10), (3, 1, 5, 5)]
    assert starts(simulate(lines, procs=4, policy="easy", counted=counted)) == [0, 0, 20, 10, 30]
    assert starts(simulate(lines, procs=4, policy="easy-sjbf", counted=counted)) == [0, 0, 20, 30, 10]


@BOTH
@pytest.mark.parametrize("policy", POLICIES)
def test_an_early_end_brings_everybody_forward(simulate: Simulate, policy: str, counted: bool) -> None:
    lines = [(0, 4, 5, 20), (1, 4, 10, 10), (2, 2, 10, 10)]
    assert starts(simulate(lines, procs=4, policy=policy, counted=counted)) == [0, 5, 15]


@BOTH
@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_whose_estimate_ends_now_holds_nothing_for_one_submitted_now(
    simulate: Simulate, policy: str, counted: bool
) -> None:
    assert starts(simulate([(0, 2, 10, 10), (10, 2, 1, 1)], procs=2, policy=policy, counted=counted)) == [0, 10]


def test_a_job_that_ends_early_still_holds_its_estimate_when_one_is_submitted_in_the_same_second(
    simulate: Simulate,
) -> None:
    # At 5 the third is planned beside the first, which has not ended yet; the end that follows changes nothing for
    # a job that is planned for now.
    lines = [(0, 2, 5, 10), (1, 4, 5, 5), (5, 2, 5, 5)]
    assert simulate(lines, procs=4, policy="conservative") == [(0, [1, 2]), (10, [1, 2, 3, 4]), (5, [3, 4])]


def test_the_lowest_processors_that_are_free_all_the_time_are_taken(simulate: Simulate) -> None:
    # The head is to have 1-3 from 10 on: a short job takes 3, which is free until then, a long one 4.
    lines = [(0, 2, 10, 10), (1, 3, 10, 10), (2, 1, 8, 8), (3, 1, 9, 9)]
    expected = [(0, [1, 2]), (10, [1, 2, 3]), (2, [3]), (3, [4])]
    assert simulate(lines, procs=4, policy="easy") == expected
    assert simulate(lines, procs=4, policy="conservative") == expected


def test_a_job_that_is_put_back_may_change_its_processors_and_keep_its_start(simulate: Simulate) -> None:
    # The third is planned for 10 on 2 and 3, as 1 is held until 20; when 1 is free, at 5, it is put back on 1-2.
    lines = [(0, 1, 5, 20), (0, 3, 10, 10), (1, 2, 5, 5)]
    found = simulate(lines, procs=4, policy="conservative")
    assert found == [(0, [1]), (0, [2, 3, 4]), (10, [1, 2])]


def test_numbers_can_fit_where_definite_processors_do_not(simulate: Simulate) -> None:
    # When the first ends, early, one processor is free all the time from 3 to 6, but not the same one: 1 until the
    # fourth, planned for 5, and 2 after the second.
    lines = [(1, 1, 2, 4), (1, 1, 3, 3), (1, 1, 3, 3), (3, 1, 4, 4)]
    assert starts(simulate(lines, procs=2, policy="conservative", counted=True)) == [1, 1, 3, 4]
    assert simulate(lines, procs=2, policy="conservative") == [(1, [1]), (1, [2]), (4, [2]), (3, [1])]


def test_ties_are_submitted_in_the_order_of_the_file(simulate: Simulate) -> None:
    lines = [(5, 2, 1, 1), (0, 2, 10, 10), (5, 2, 2, 2), (0, 2, 1, 1)]
    assert starts(simulate(lines, procs=2, policy="fcfs")) == [11, 0, 12, 10]


# ------------------------------------------------------------------ against the reference


@st.composite
def traces(draw: st.DrawFn) -> tuple[int, list[Line]]:
    procs = draw(st.integers(1, 6))
    lines: list[Line] = []
    for _ in range(draw(st.integers(0, 12))):
        estimate = draw(st.integers(1, 10))
        run = draw(st.integers(1, estimate))
        lines.append((draw(st.integers(0, 15)), draw(st.integers(1, procs)), run, estimate))
    return procs, lines


@BOTH
@pytest.mark.parametrize("policy", POLICIES)
@given(trace=traces())
@dose(100)
def test_every_start_and_every_processor_are_those_of_the_reference(
    trace: tuple[int, list[Line]], policy: str, counted: bool
) -> None:
    procs, lines = trace
    expected = by_reference(lines, procs=procs, policy=policy, counted=counted)
    assert by_planner(lines, procs=procs, policy=policy, counted=counted) == expected


@BOTH
@pytest.mark.hypothesis
@pytest.mark.parametrize("policy", POLICIES)
def test_long_queues_are_planned_as_the_reference_does(policy: str, counted: bool) -> None:
    for seed in range(50 * FACTOR):
        rng = random.Random(seed)
        procs = rng.randint(2, 12)
        unit = rng.choice([1, 1, 0.5, 60, 86_400])  # days: some wait longer than any bound on waiting
        lines: list[Line] = []
        for _ in range(rng.randint(15, 40)):
            estimate = rng.choice([rng.randint(1, 6), rng.randint(1, 30)]) * unit
            run = estimate if rng.random() < 0.4 else rng.randint(1, max(int(estimate / unit), 1)) * unit
            lines.append((rng.randint(0, 60) * unit, rng.randint(1, procs), run, estimate))
        expected = by_reference(lines, procs=procs, policy=policy, counted=counted)
        assert by_planner(lines, procs=procs, policy=policy, counted=counted) == expected, f"seed {seed}"


@pytest.mark.parametrize("policy", POLICIES)
@given(trace=traces())
@dose(50)
def test_no_processor_has_two_jobs_at_once(trace: tuple[int, list[Line]], policy: str) -> None:
    procs, lines = trace
    found = by_planner(lines, procs=procs, policy=policy)
    busy: dict[int, list[tuple[float, float]]] = {}
    for (start, taken), (submit, asked, run, _) in zip(found, lines, strict=True):
        assert start >= submit
        assert len(taken) == asked
        for number in taken:
            busy.setdefault(number, []).append((start, start + run))
    for intervals in busy.values():
        intervals.sort()
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(intervals))


def test_the_same_trace_gives_the_same_schedule_twice() -> None:
    rng = random.Random(7)
    lines: list[Line] = [(rng.randint(0, 50), rng.randint(1, 8), 1 + n % 9, 10) for n in range(60)]
    for policy in POLICIES:
        assert by_planner(lines, procs=8, policy=policy) == by_planner(lines, procs=8, policy=policy)
