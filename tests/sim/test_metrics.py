"""The metrics of a schedule, as the contract of `rota simulate` defines them."""

from __future__ import annotations

import msgspec
import pytest

from rota.sim.metrics import Metrics, ScheduledJob, bounded_slowdown, measure


def test_two_jobs_by_hand() -> None:
    jobs = [
        ScheduledJob(submit=10, start=10, end=110, procs=2),
        ScheduledJob(submit=20, start=110, end=130, procs=4),
    ]
    found = measure(jobs, 4)
    assert found.avg_flow_s == (100 + 110) / 2
    assert found.avg_wait_s == 45
    assert found.avg_bounded_slowdown == (1 + 110 / 20) / 2
    assert found.makespan_s == 120
    assert found.utilisation == pytest.approx((100 * 2 + 20 * 4) / (4 * 120))


@pytest.mark.parametrize(
    ("wait", "run", "expected"),
    [(0, 1, 1), (9, 1, 1), (19, 1, 2), (0, 1000, 1), (1000, 1000, 2), (90, 10, 10)],
)
def test_a_slowdown_is_at_least_one_and_short_jobs_count_as_ten_seconds(
    wait: float, run: float, expected: float
) -> None:
    assert bounded_slowdown(ScheduledJob(5, 5 + wait, 5 + wait + run, 1)) == expected


def test_without_jobs_all_metrics_are_zero() -> None:
    assert measure([], 8) == Metrics()
    assert set(msgspec.json.decode(msgspec.json.encode(measure([], 8))).values()) == {0}


def test_whole_numbers_are_written_without_a_fraction() -> None:
    text = msgspec.json.encode(measure([ScheduledJob(0.0, 0.0, 10.0, 1)], 1)).decode()
    assert text == ('{"avg_bounded_slowdown":1,"avg_flow_s":10,"avg_wait_s":0,"makespan_s":10,"utilisation":1}')


def test_the_makespan_begins_with_the_first_submission_and_ends_with_the_last_end() -> None:
    assert measure([ScheduledJob(50, 60, 70, 1), ScheduledJob(30, 90, 95, 1)], 1).makespan_s == 65
