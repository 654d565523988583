"""Tiny traces as text, whose schedules were worked out on paper by the rules of every policy."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rota.sim.replay import ReplayResult, replay
from rota.sim.swf import parse_swf

#: submit, processors, run, estimate
Line = tuple[float, int, float, float]

BOTH = pytest.mark.parametrize("counted", [False, True], ids=["numbered", "counted"])
EASY_AND_CONSERVATIVE = pytest.mark.parametrize("policy", ["easy", "conservative"])


def text_of(lines: Sequence[Line]) -> str:
    rows = [
        f"{number} {submit} -1 {run} -1 -1 -1 {procs} {estimate}" + " -1" * 9
        for number, (submit, procs, run, estimate) in enumerate(lines, 1)
    ]
    return "\n".join(rows) + "\n"


def replayed(text: str, *, procs: int | None = None, policy: str = "easy", **how: bool) -> ReplayResult:
    trace = parse_swf(text.encode(), "t.swf")
    processors = procs or trace.processors()
    assert processors is not None
    return replay(trace, processors=processors, policy=policy, **how)


def starts(found: ReplayResult) -> dict[int, float]:
    return {each.job.id: each.start for each in found.ran}


# ------------------------------------------------------------------ fields and metrics

#: Job 1 is cut at what was requested; 2 has no estimate; 3 has neither an estimate nor requested processors.
FIELDS = """\
; Computer: two processors
;MaxProcs:2
  ; MaxNodes: 1

1 0 7 20 1 -1 -1 -1 10 -1 1 1 1 1 1 1 -1 -1
2 0 7 5 9 -1 -1 2 -1 -1 1 1 1 1 1 1 -1 -1
; a remark between jobs
3 1 7 4 1 -1 -1 0 0 -1 1 1 1 1 1 1 -1 -1
4 2 7 0 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1
5 2 7 -1 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1
6 2 7 9 0 -1 -1 -1 10 -1 1 1 1 1 1 1 -1 -1
7 2 7 9 1 -1 -1 3 10 -1 1 1 1 1 1 1 -1 -1
"""


def test_fields_skipped_jobs_and_metrics_of_a_small_trace() -> None:
    assert replayed(FIELDS).as_json() | {"metrics": None, "skipped": None} == {
        "jobs": [
            {"id": 1, "submit": 0, "start": 0, "end": 10},
            {"id": 2, "submit": 0, "start": 10, "end": 15},
            {"id": 3, "submit": 1, "start": 1, "end": 5},
        ],
        "metrics": None,
        "skipped": None,
    }
    found = replayed(FIELDS)
    assert [job.id for job, _reason in found.skipped] == [4, 5, 6, 7]
    metrics = found.metrics
    assert metrics.avg_flow_s == pytest.approx((10 + 15 + 4) / 3)
    assert metrics.avg_wait_s == pytest.approx((0 + 10 + 0) / 3)
    assert metrics.avg_bounded_slowdown == pytest.approx((10 / 10 + 15 / 10 + 1) / 3)
    assert metrics.makespan_s == 15
    assert metrics.utilisation == pytest.approx((1 * 10 + 2 * 5 + 1 * 4) / (2 * 15))


def test_the_number_of_processors_that_is_given_wins_over_the_header() -> None:
    assert 7 in starts(replayed(FIELDS, procs=3))
    assert starts(replayed(FIELDS, procs=1)) == {1: 0, 3: 10}


def test_exact_estimates_let_a_job_pass_that_asked_for_too_much() -> None:
    # The head wants both from 10 on; the last asked for 20 seconds and needs 9.
    lines = [(0, 1, 10, 10), (1, 2, 5, 5), (1, 1, 9, 20)]
    assert starts(replayed(text_of(lines), procs=2)) == {1: 0, 2: 10, 3: 15}
    assert starts(replayed(text_of(lines), procs=2, exact=True)) == {1: 0, 2: 10, 3: 1}


# ------------------------------------------------------------------ the order of events

#: Two end at 10, ten seconds early. Then there is room for the one that wants two, but after the first of both
#: ends there is room only for the last, which fits beside the reservation of the other at 20.
TWO_ENDS = [(0, 1, 10, 20), (0, 1, 10, 20), (0, 1, 30, 30), (1, 2, 5, 5), (2, 1, 10, 10)]


@BOTH
@pytest.mark.parametrize(
    ("policy", "expected"),
    [("fcfs", (10, 15)), ("easy", (20, 10)), ("easy-sjbf", (20, 10)), ("conservative", (20, 10))],
)
def test_two_ends_in_one_second_are_two_passes(policy: str, expected: tuple[int, int], counted: bool) -> None:
    found = starts(replayed(text_of(TWO_ENDS), procs=3, policy=policy, counted=counted))
    assert (found[4], found[5]) == expected


@BOTH
@EASY_AND_CONSERVATIVE
def test_at_one_instant_a_submission_comes_before_an_end(policy: str, counted: bool) -> None:
    # At 5 the last is submitted, and fits beside the reservation at 10; only then the first ends.
    lines = [(0, 1, 5, 10), (1, 2, 5, 5), (5, 1, 5, 5)]
    assert starts(replayed(text_of(lines), procs=2, policy=policy, counted=counted)) == {1: 0, 2: 10, 3: 5}


@BOTH
@EASY_AND_CONSERVATIVE
def test_of_two_ends_at_one_instant_that_of_the_job_started_first_comes_first(policy: str, counted: bool) -> None:
    # 2 and 3 end at 10; 2 was submitted first and 3 started first. Were 2 to end first, 6 would be let past 5.
    lines = [(0, 3, 2, 2), (0, 2, 8, 18), (0, 1, 10, 20), (0, 1, 30, 30), (3, 3, 5, 5), (4, 2, 10, 10)]
    found = starts(replayed(text_of(lines), procs=4, policy=policy, counted=counted))
    assert found == {1: 0, 2: 2, 3: 0, 4: 2, 5: 10, 6: 15}


@BOTH
@pytest.mark.parametrize("policy", ["fcfs", "easy", "easy-sjbf", "conservative"])
def test_an_estimate_that_is_over_holds_nothing_for_a_submission_of_the_same_second(
    policy: str, counted: bool
) -> None:
    lines = [(0, 2, 10, 10), (10, 1, 5, 5), (10, 1, 5, 5), (10, 1, 5, 5)]
    found = starts(replayed(text_of(lines), procs=2, policy=policy, counted=counted))
    assert found == {1: 0, 2: 10, 3: 10, 4: 15}


# ------------------------------------------------------------------ policies


@BOTH
def test_shortest_first_is_by_estimate_not_by_run_and_equal_ones_keep_their_order(counted: bool) -> None:
    # One processor is free from 10 to 20, when the fourth wants all three. The fifth runs for a second only.
    lines = [(0, 2, 20, 20), (0, 1, 10, 10), (1, 3, 5, 5), (2, 1, 1, 8), (3, 1, 4, 4), (4, 1, 4, 4)]
    easy = starts(replayed(text_of(lines), procs=3, policy="easy", counted=counted))
    shortest = starts(replayed(text_of(lines), procs=3, policy="easy-sjbf", counted=counted))
    assert easy == {1: 0, 2: 0, 3: 20, 4: 10, 5: 11, 6: 15}
    assert shortest == {1: 0, 2: 0, 3: 20, 4: 25, 5: 10, 6: 14}


@BOTH
def test_lines_out_of_order_are_queued_by_submission_and_ties_by_line(counted: bool) -> None:
    lines = [(7, 2, 3, 3), (0, 2, 10, 10), (7, 2, 4, 4), (5, 2, 1, 1)]
    found = starts(replayed(text_of(lines), procs=2, policy="fcfs", counted=counted))
    assert found == {2: 0, 4: 10, 1: 11, 3: 14}


@BOTH
def test_a_reservation_of_the_head_is_dropped_and_made_anew_in_every_pass(counted: bool) -> None:
    # At 1 the head is to begin at 20. At 4 the second ends early: now it is to begin at 10, and the last, which
    # would have fitted before 20, has to wait for it.
    lines = [(0, 1, 10, 10), (0, 1, 4, 20), (1, 2, 5, 5), (5, 1, 9, 9)]
    found = starts(replayed(text_of(lines), procs=2, policy="easy", counted=counted))
    assert found == {1: 0, 2: 0, 3: 10, 4: 15}
