"""What jobs may rely on when others fail, move, run too long or can never run: each by a trace of a few jobs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.sites import P5, P32, job, plan, run

ONE_HOST = [{"ids": "1-4", "host": "a"}]


# -- what becomes free is used


def test_the_room_of_a_job_that_is_blocked_is_free_for_others() -> None:
    rows = [{"ids": "1-2", "host": "a"}]
    found = run(
        rows,
        job("core=1,walltime=100s", exit=1),
        job("core=1,walltime=100s", after=[1]),
        job("core=2,walltime=5s", submit=50),
    )
    assert found.starts() == {1: 0, 2: None, 3: 100}


def test_the_room_that_a_queue_of_higher_priority_leaves_is_used_by_those_below() -> None:
    found = run(
        ONE_HOST,
        job("core=1,walltime=100s"),
        job("core=4,walltime=10s", run=3, queue="admin"),
        job("core=4,walltime=20s", queue="admin"),
    )
    assert found.starts() == {1: 23, 2: 0, 3: 3}


def test_the_room_that_a_dependent_of_another_queue_leaves_is_used() -> None:
    found = run(
        ONE_HOST,
        job("core=4,walltime=20s", run=15),
        job("core=1,walltime=100s"),
        job("core=4,walltime=50s"),
        job("core=1,walltime=100s", queue="admin", after=[2]),
    )
    assert found.starts() == {1: 0, 2: 15, 3: 215, 4: 115}


# -- jobs that run longer than expected


def test_who_waits_for_a_job_past_its_estimate_keeps_his_place_before_those_of_lower_rank() -> None:
    found = run(
        [{"ids": "1-2", "host": "a"}, {"ids": "3-6", "host": "b"}],
        {"cpus": 1, "time": 5, "run": 30},
        job("core=6,walltime=50s"),
        job("core=4,walltime=10s"),
        {"cpus": 1, "time": 3600},
    )
    assert found.starts() == {1: 0, 2: 30, 3: 5, 4: 80}


@pytest.mark.parametrize(("late", "start", "resources"), [(100, 100, "1-5"), (360, 360, "1-5"), (400, 360, "3-5")])
def test_a_reservation_waits_five_minutes_and_then_begins_on_what_is_there(
    late: float, start: float, resources: str
) -> None:
    found = run(P5, {"cpus": 2, "time": 60, "run": late}, job("core=5,walltime=400s", at=60))
    assert found.place(2) == (start, resources)
    assert found[2]["end"] == 460


def test_a_reservation_fails_when_its_time_has_passed() -> None:
    found = run(P5, {"cpus": 2, "time": 60, "run": 1500}, job("core=5,walltime=100s", at=60))
    assert found.place(2) == (None, None)
    assert (found[2]["state"], found.code(2)) == ("failed", "reservation")


def test_a_long_chain_moves_with_its_first_job_and_is_blocked_with_it() -> None:
    first = {"cpus": 1, "time": 10, "run": 20, "exit": 1}
    found = run(P5, first, *(job("core=1,walltime=10s", after=[number]) for number in range(1, 1500)))
    assert {each["state"] for id, each in found.items() if id > 1} == {"blocked"}


def test_a_job_without_a_walltime_makes_way_for_a_reservation_that_is_granted_after_it_was_planned() -> None:
    rows = [{"ids": "1", "host": "a"}]
    found = run(rows, job("core=1,walltime=20s"), {"cpus": 1, "time": 10}, job("core=1,walltime=50s", at=40))
    assert found.starts() == {1: 0, 2: 90, 3: 40}


# -- jobs that can never run stop nobody


@pytest.mark.parametrize("policy", ["fcfs", "easy", "easy-sjbf", "conservative"])
@pytest.mark.parametrize(
    "bad",
    [
        job("nodes=5,walltime=60s"),
        job("nodes=1,walltime=60s", type=["inner=nowhere"]),
        job("nodes=3,walltime=60s", user="greedy"),
    ],
    ids=["impossible", "no container", "over quota"],
)
def test_a_job_that_can_never_run_does_not_hold_up_its_queue(policy: str, bad: dict[str, Any]) -> None:
    good = [job("nodes=3,walltime=20s"), job("nodes=2,walltime=20s"), job("nodes=1,walltime=20s")]
    found = run(P32, bad, *good, policy=policy, quotas={"*,*,*,greedy": [16, -1, -1]})
    assert found[1]["start"] is None
    assert list(found.starts().values())[1:] == ([0, 20, 20] if policy == "fcfs" else [0, 20, 0])


@pytest.mark.parametrize(("one", "two"), [("2", "1"), ("b", "a"), ("1", "2")])
def test_a_container_that_lies_in_itself_is_never_planned(one: str, two: str) -> None:
    found = plan(
        P32,
        job("nodes=1,walltime=60s", name="a", type=["container", f"inner={one}"]),
        job("nodes=1,walltime=60s", name="b", type=["container", f"inner={two}"]),
        job("nodes=1,walltime=60s"),
    )
    assert found.starts() == {1: None, 2: None, 3: 0}
    assert [found.code(id) for id in (1, 2)] == ["container", "container"]


# -- besteffort


def test_who_waits_for_a_besteffort_job_moves_with_it() -> None:
    jobs = [
        job("nodes=1,walltime=10s", type=["besteffort"]),
        job("core=1,walltime=10s", after=[1]),
        job("core=1,walltime=30s"),
    ]
    # Until it has begun nobody can say when it will end.
    assert plan(ONE_HOST, *jobs).starts() == {1: 30, 2: None, 3: 0}
    assert run(ONE_HOST, *jobs).starts() == {1: 30, 2: 40, 3: 0}


def test_besteffort_jobs_in_one_container_take_different_resources() -> None:
    inner = job("core=3,walltime=50s", type=["inner=1", "besteffort"])
    found = run(ONE_HOST, job("core=4,walltime=120s", type=["container"]), inner, inner)
    assert found.starts() == {1: 0, 2: 0, 3: 50}


def test_a_job_in_a_besteffort_container_does_not_end_its_own_container() -> None:
    found = run(
        ONE_HOST,
        job("core=4,walltime=100s", type=["container", "besteffort"]),
        job("core=1,walltime=30s", submit=10, type=["inner=1"]),
    )
    assert found.starts() == {1: 0, 2: 10}
    assert [found[id]["state"] for id in (1, 2)] == ["complete", "complete"]


# -- limits and quotas


def test_a_limit_taken_exclusively_is_shared_with_nobody() -> None:
    found = run(
        P5,
        job("core=1,walltime=10s", limits="lic!"),
        job("core=1,walltime=10s", limits="lic"),
        job("core=1,walltime=10s", limits="lic"),
        limits={"lic": 4},
    )
    assert found.starts() == {1: 0, 2: 10, 3: 10}


def test_a_container_may_move_while_a_job_that_does_not_fit_in_it_waits() -> None:
    found = run(
        [{"ids": "1-2", "host": "a", "gpu": "YES"}, {"ids": "5-8", "host": "b", "gpu": "NO"}],
        job("core=5,walltime=50s", submit=62, type=["container", "placeholder=b"]),
        job("nodes=1,walltime=60s", type=["inner=1"]),
        job("{gpu='NO'}/nodes=1+nodes=1,walltime=60s"),
        job("core=4,walltime=60s", run=40),
        quotas={"/,*,*,*": [6, 1, -1]},
    )
    assert found.starts() == {1: 100, 2: None, 3: 0, 4: 60}
    assert found.code(2) == "container"


# -- found by others


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_a_job_that_was_postponed_begins_at_its_time_though_nothing_else_happens(policy: str) -> None:
    assert run(ONE_HOST, job("core=1,walltime=10s", type=["postpone=100"]), policy=policy).starts() == {1: 100}


def test_what_runs_in_a_besteffort_container_ends_with_it() -> None:
    found = run(
        ONE_HOST,
        job("core=4,walltime=100s", name="c", type=["container", "besteffort"]),
        job("core=2,walltime=50s", type=["inner=c"]),
        job("core=4,walltime=5s", submit=5),
    )
    assert found.starts() == {1: 0, 2: 0, 3: 5}
    assert [found[id]["end"] for id in (1, 2)] == [5, 5]


@pytest.mark.parametrize("terms", [{"type": ["container"]}, {"at": 20}])
def test_containers_and_reservations_spare_besteffort_jobs_where_they_can(terms: dict[str, Any]) -> None:
    rows = [{"ids": "1-8", "host": "a"}]
    low = job("core=2,walltime=100s", type=["besteffort"])
    found = run(rows, low, job("core=4,walltime=10s", submit=10, **terms))
    assert found[1]["state"] == "complete"
    assert found[2]["resources"] == "3-6"


def test_a_besteffort_job_behind_one_that_follows_a_failure_runs_once() -> None:
    found = run(
        ONE_HOST,
        job("core=1,walltime=10s", exit=1),
        job("core=4,walltime=5s", after=["afternotok:1"]),
        job("core=4,walltime=1s", after="afterany:2", type=["besteffort"]),
    )
    assert found.starts() == {1: 0, 2: 10, 3: 15}
