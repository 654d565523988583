"""The cases of the planning semantics, each put through the simulation as a trace of a small site."""

from __future__ import annotations

from typing import Any

import pytest

from rota.errors import BadInput
from tests.sim.sites import P5, P32, job, plan, run

# -- where and when


def _tried(**fields: object) -> tuple[object, ...]:
    found = run(P5, job("core=5,walltime=100s", run=10, **fields), job("core=5,walltime=10s", after=[1]))
    return found[1]["start"], found[1]["end"], found[1]["state"], found[2]["start"]


def test_a_failed_job_is_tried_again_by_the_rules_of_the_engine() -> None:
    assert _tried(exit=1) == (0, 10, "failed", None)
    assert _tried(exit=[1, 0], retries=2) == (40, 50, "complete", 50)
    assert _tried(exit=[1, 1, 0], retries=2, backoff="10s") == (50, 60, "complete", 60)  # 10 s, then 20 s
    assert _tried(exit=1, retries=2, backoff=0) == (20, 30, "failed", None)
    assert _tried(exit=1, retries=2, retry_on=["memory"]) == (0, 10, "failed", None)
    cut = {"run": 200, "retries": 1}
    assert run(P5, job("core=5,walltime=100s", **cut))[1]["start"] == 0
    assert run(P5, job("core=5,walltime=100s", retry_on="walltime", **cut))[1]["start"] == 130


def test_two_nodes_take_the_first_two_and_leave_the_others_free() -> None:
    two = job("nodes=2,walltime=60s")
    found = plan(P32, two, two, job("nodes=4,walltime=60s"))
    assert found.place(1) == (0, "1-16")
    assert found[1]["end"] == 60
    assert found.place(2) == (0, "17-32")
    assert found.place(3) == (60, "1-32")


def test_groups_joined_by_plus_take_different_resources() -> None:
    found = plan(_with_gpu(), job("nodes=2+gpu=1,walltime=60s"))
    assert found.place(1) == (0, "1-16,22-32")


def test_a_request_for_two_blocks_where_there_is_one_is_never_planned_and_takes_nothing() -> None:
    found = plan(_with_gpu(), job("nodes=2+gpu=2,walltime=60s"), job("nodes=4,walltime=60s"))
    assert found.place(1) == (None, None)
    assert found.code(1) == "unsatisfiable"
    assert found.place(2) == (0, "1-32")


def _with_gpu() -> list[dict[str, Any]]:
    return [
        *P32[:2],
        {"ids": "17-21", "host": "n3"},
        {"ids": "22-24", "host": "n3", "gpu": "g1"},
        {"ids": "25-32", "host": "n4", "gpu": "g1"},
    ]


def test_a_job_starts_beside_one_that_is_running() -> None:
    busy = job("nodes=1,walltime=60s", start=-30, resources="1-8")
    found = plan(P32, busy, job("nodes=2,walltime=60s"), job("nodes=2,walltime=60s"))
    assert found[1]["state"] == "running"
    assert (found[1]["start"], found[1]["end"]) == (-30, 30)
    assert found.place(2) == (0, "9-24")
    assert found.place(3) == (30, "1-8,25-32")


@pytest.mark.parametrize(
    ("request_", "resources"),
    [
        ("h0=2/h1=1", "1-8,17-24"),
        ("h0=2/h1=1/h2=1", "1-4,17-20"),
        ("h0=2/h1=2/h2=1", "1-4,9-12,17-20,25-28"),
        ("h0=1/h1=3", None),
    ],
)
def test_blocks_nest_as_the_request_says(request_: str, resources: str | None) -> None:
    rows = [
        {"ids": f"{4 * n + 1}-{4 * n + 4}", "h0": f"a{n // 4}", "h1": f"b{n // 2}", "h2": f"c{n}"}
        for n in range(8)
    ]
    found = plan(rows, job(f"/{request_},walltime=60s"), levels=["h0", "h1", "h2", "core"])
    assert found[1]["resources"] == resources
    assert found.code(1) == (None if resources else "unsatisfiable")


@pytest.mark.parametrize(
    ("number", "start", "resources"), [("ALL", 60, "1-32"), ("BEST", 0, "9-32"), ("HALF_BEST", 0, "9-16")]
)
def test_all_best_and_half_best_count_the_blocks_that_are_free(number: str, start: float, resources: str) -> None:
    busy = job("core=1,walltime=60s", start=0, resources="1")
    found = plan(P32, busy, job(f"nodes={number},walltime=10s"))
    assert found.place(2) == (start, resources)


def test_a_walltime_of_ten_and_nothing_is_ten_hours() -> None:
    rows = [{"ids": n, "host": f"n{n}", "switch": f"s{n // 11}"} for n in range(1, 22)]
    found = plan(rows, job("/switch=2/nodes=10,walltime=10:0"), levels=["switch", "host", "core"])
    assert (found[1]["start"], found[1]["end"]) == (0, 36_000)
    assert found[1]["resources"] == "1-20"


def test_two_groups_with_expressions_take_what_each_describes() -> None:
    rows = [{"ids": "1-8", "host": "n1", "gpu": "YES"}, {"ids": "9-32", "host": "n2", "gpu": "NO"}]
    found = plan(rows, job("{gpu='YES'}/nodes=ALL+{gpu='NO'}/core=20,walltime=1m"))
    assert found.place(1) == (0, "1-28")


def test_a_comma_inside_an_expression_is_part_of_it() -> None:
    rows = [{"ids": "1-8", "host": "n,1"}, {"ids": "9-16", "host": "n2"}]
    found = plan(rows, job("{host in ('n,1', 'n3')}/core=2,walltime=1m"))
    assert found.place(1) == (0, "1-2")


def test_of_two_alternatives_the_one_that_ends_first_is_taken() -> None:
    first = job("core=3,walltime=60s")
    later = plan(P5, first, job(["core=4,walltime=60s", "core=3,walltime=70s"]))
    assert later.place(2) == (60, "1-4")
    assert later[2]["end"] == 120
    now = plan(P5, first, job(["core=4,walltime=60s", "core=2,walltime=70s"]))
    assert now.place(2) == (0, "4-5")
    assert now[2]["end"] == 70


def test_jobs_for_one_host_follow_each_other_and_jobs_for_two_run_together() -> None:
    on_h1 = job("core=2,walltime=60s", where="host='h1'")
    one_after_the_other = plan(P5, on_h1, on_h1)
    assert one_after_the_other.place(1) == (0, "3-4")
    assert one_after_the_other.place(2) == (60, "3-4")
    together = plan(P5, on_h1, job("core=2,walltime=60s", where="host='h0'"))
    assert together.starts() == {1: 0, 2: 0}


# -- containers


def test_an_inner_job_lies_within_its_container() -> None:
    found = plan(
        P32, job("nodes=2,walltime=80s", type=["container"]), job("nodes=1,walltime=30s", type=["inner=1"])
    )
    assert found.place(1) == (0, "1-16")
    assert found.place(2) == (0, "1-8")


def test_inner_jobs_wait_for_each_other_and_not_for_those_outside() -> None:
    inner = job("nodes=2,walltime=30s", type="inner=box")
    found = plan(P32, job("nodes=2,walltime=80s", type="container", name="box"), inner, inner)
    assert found.place(2) == (0, "1-16")
    assert found.place(3) == (30, "1-16")


def test_containers_of_one_name_are_all_used_and_each_ends_its_own() -> None:
    box = job("nodes=2,walltime=40s", type="container", name="box")
    longer = job("nodes=2,walltime=100s", type="container", name="box")
    inner = job("nodes=2,walltime=100s", type="inner=box")
    short = job("nodes=2,walltime=40s", type="inner=box")
    found = run(P32, box, longer, inner, short)
    assert [found.place(id)[0] for id in (3, 4)] == [0, 0]
    assert [found[id]["state"] for id in (3, 4)] == ["complete", "complete"]
    assert found[3]["end"] == 100, "the end of the other container is none of its business"


def test_containers_nest() -> None:
    found = plan(
        P32,
        job("nodes=3,walltime=80s", type=["container"]),
        job("nodes=2,walltime=50s", type=["container", "inner=1"]),
        job("nodes=1,walltime=30s", type=["inner=2"]),
    )
    assert [found.place(id) for id in (1, 2, 3)] == [(0, "1-24"), (0, "1-16"), (0, "1-8")]


@pytest.mark.parametrize("request_", ["nodes=3,walltime=30s", "nodes=1,walltime=81s"])
def test_an_inner_job_larger_or_longer_than_its_container_is_never_planned(request_: str) -> None:
    found = plan(P32, job("nodes=2,walltime=80s", type=["container"]), job(request_, type=["inner=1"]))
    assert found.place(2) == (None, None)
    assert found[2]["state"] == "ready"
    assert found.code(2) == "container"


def test_an_inner_job_of_a_container_that_does_not_exist_is_never_planned() -> None:
    found = run(P32, job("nodes=1,walltime=30s", type=["inner=99"]), job("nodes=4,walltime=30s"))
    assert found.place(1) == (None, None)
    assert found.code(1) == "container"
    assert found.place(2) == (0, "1-32")


def test_when_a_container_ends_early_its_inner_jobs_end_and_those_to_come_stay_unplanned() -> None:
    found = run(
        P32,
        job("nodes=2,walltime=80s", type=["container"], run=20),
        job("nodes=2,walltime=30s", type=["inner=1"]),
        job("nodes=2,walltime=30s", type=["inner=1"]),
    )
    assert (found[2]["start"], found[2]["end"], found[2]["state"]) == (0, 20, "failed")
    assert found.code(2) == "container"
    assert found[3]["start"] is None
    assert found.code(3) == "container"


def test_an_inner_job_that_ends_with_its_container_is_complete() -> None:
    found = run(
        P32, job("nodes=2,walltime=80s", type=["container"]), job("nodes=1,walltime=80s", type=["inner=1"])
    )
    assert [found[id]["state"] for id in (1, 2)] == ["complete", "complete"]
    assert found[2]["end"] == 80


# -- dependencies


def test_a_dependent_job_is_planned_at_the_end_of_its_parent() -> None:
    found = plan(P32, job("nodes=2,walltime=60s"), job("nodes=2,walltime=60s", after=[1]))
    assert found.starts() == {1: 0, 2: 60}


def test_a_dependent_job_starts_when_its_parent_ends_early() -> None:
    found = run(P32, job("nodes=2,walltime=60s", run=45), job("nodes=2,walltime=60s", after=[1]))
    assert found.starts() == {1: 0, 2: 45}


def test_jobs_after_one_that_failed_are_blocked_and_so_are_those_after_them() -> None:
    found = run(
        P32,
        job("nodes=2,walltime=60s", exit=3),
        job("nodes=2,walltime=60s", after=[1]),
        job("nodes=2,walltime=60s", after=[2]),
        job("nodes=2,walltime=60s", submit=100, after=[1]),
    )
    assert found[1]["state"] == "failed"
    assert found.code(1) == "exit"
    for id in (2, 3, 4):
        assert found.place(id) == (None, None)
        assert found[id]["state"] == "blocked"
        assert found.code(id) == "dependency_never"


def test_a_job_after_one_that_is_running_is_predicted_at_its_expected_end() -> None:
    parent = job("nodes=2,walltime=60s", start=-20, resources="1-16")
    assert plan(P32, parent, job("nodes=1,walltime=60s", after=[1])).starts() == {1: -20, 2: 40}


def test_a_job_after_one_that_cannot_be_planned_is_not_planned_either() -> None:
    found = plan(P32, job("nodes=5,walltime=60s"), job("nodes=1,walltime=60s", after=[1]))
    assert found.starts() == {1: None, 2: None}
    assert found.code(1) == "unsatisfiable"
    assert found.code(2) == "dependency"


def test_a_job_after_one_that_is_complete_starts_at_once() -> None:
    found = run(P32, job("nodes=1,walltime=60s"), job("nodes=1,walltime=60s", submit=70, after="afterok:1"))
    assert found.starts() == {1: 0, 2: 70}


def test_conditions_on_how_a_parent_ended_hold_as_their_names_say() -> None:
    after = ["afterok:1", "afterany:1", "afternotok:1"]
    failed = run(P5, job("core=1,walltime=9s", exit=1), *(job("core=1,walltime=9s", after=word) for word in after))
    assert failed.starts() == {1: 0, 2: None, 3: 9, 4: 9}
    complete = run(P5, job("core=1,walltime=9s"), *(job("core=1,walltime=9s", after=word) for word in after))
    assert complete.starts() == {1: 0, 2: 9, 3: 9, 4: None}
    assert (complete[4]["state"], complete.code(4)) == ("blocked", "dependency_never")


def test_what_waits_for_a_job_that_need_not_be_blocked_is_not_blocked_with_it() -> None:
    found = run(
        P5,
        job("core=1,walltime=9s", exit=1),
        job("core=1,walltime=9s", after="afterany:1"),
        job("core=1,walltime=9s", after=[2]),
        job("core=1,walltime=9s", after=[1, "afterany:2"]),
    )
    assert found.starts() == {1: 0, 2: 9, 3: 18, 4: None}


def test_a_job_waits_for_parents_that_are_submitted_after_it() -> None:
    found = run(
        P5,
        job("core=1,walltime=9s", after=[2]),
        job("core=1,walltime=9s", after=[3]),
        job("core=1,walltime=9s", submit=50),
    )
    assert found.starts() == {1: 68, 2: 59, 3: 50}
    assert (
        plan(P5, job("core=1,walltime=9s", after=[2]), job("core=1,walltime=9s", submit=50)).code(1)
        == "dependency"
    )


# -- sharing


def test_a_placeholder_keeps_its_resources_for_those_who_are_allowed() -> None:
    found = plan(
        P32,
        job("nodes=4,walltime=80s", type=["placeholder=yop"]),
        job("nodes=4,walltime=50s"),
        job("nodes=4,walltime=60s", type=["allowed=yop"]),
        job("nodes=4,walltime=10s", type=["allowed=other"]),
    )
    assert found.starts() == {1: 0, 2: 80, 3: 0, 4: 130}


@pytest.mark.parametrize(
    ("sharing", "users", "starts"),
    [
        ("*,*", ("ann", "bob"), [0, 0]),
        ("user,*", ("ann", "bob"), [0, 60]),
        ("user,*", ("ann", "ann"), [0, 0]),
    ],
)
def test_timesharing_jobs_overlap_when_they_match(
    sharing: str, users: tuple[str, str], starts: list[float]
) -> None:
    both = [job("nodes=4,walltime=60s", type=[f"timesharing={sharing}"], user=user) for user in users]
    assert list(plan(P32, *both).starts().values()) == starts


def test_timesharing_by_name_needs_equal_names() -> None:
    share = "timesharing=*,name"
    same = [job("nodes=4,walltime=60s", type=[share], name="x") for _ in range(2)]
    other = job("nodes=4,walltime=60s", type=[share], name="y")
    assert list(plan(P32, *same, other).starts().values()) == [0, 0, 60]


# -- quotas


def test_a_job_over_a_quota_for_ever_stays_ready_with_its_reason() -> None:
    quotas = {"*,*,*,/": [16, -1, -1]}
    found = run(
        P32, job("nodes=2,walltime=60s", user="ann"), job("nodes=3,walltime=60s", user="ann"), quotas=quotas
    )
    assert found.place(1) == (0, "1-16")
    assert found.place(2) == (None, None)
    assert found[2]["state"] == "ready"
    assert found.code(2) == "quota"
    assert "*,*,*,/" in found[2]["reason"]["message"]


def test_one_job_a_user_runs_at_a_time() -> None:
    found = run(
        P32,
        job("nodes=1,walltime=50s", user="ann"),
        job("nodes=1,walltime=50s", user="ann"),
        job("nodes=1,walltime=50s", user="bob"),
        quotas={"*,*,*,/": [-1, 1, -1]},
    )
    assert found.starts() == {1: 0, 2: 50, 3: 0}


# -- reservations


def test_a_reservation_is_granted_and_jobs_keep_clear_of_it() -> None:
    found = plan(P5, job("core=4,walltime=60s", at=10), job("core=3,walltime=20s"), job("core=2,walltime=10s"))
    assert found.place(1) == (10, "1-4")
    assert found.starts() == {1: 10, 2: 70, 3: 0}


def test_a_reservation_in_the_past_is_rejected() -> None:
    found = run(P5, job("core=4,walltime=60s", at=10, submit=20), job("core=4,walltime=60s"))
    assert found.place(1) == (None, None)
    assert found[1]["state"] == "failed"
    assert found.code(1) == "reservation"
    assert found[2]["state"] == "complete"


def test_of_three_reservations_for_one_time_those_that_fit_are_granted() -> None:
    found = run(P5, *(job(f"core={n},walltime=60s", at=10) for n in (4, 2, 1)))
    assert found.place(1) == (10, "1-4")
    assert found.place(2) == (None, None)
    assert (found[2]["state"], found.code(2)) == ("failed", "reservation")
    assert found.place(3) == (10, "5")


def test_jobs_after_a_rejected_reservation_are_blocked() -> None:
    found = run(P5, job("core=9,walltime=60s", at=10), job("core=1,walltime=60s", after=1))
    assert (found[1]["state"], found.code(1)) == ("failed", "reservation")
    assert (found[2]["state"], found.code(2)) == ("blocked", "dependency_never")


def test_a_job_without_a_walltime_is_not_placed_before_a_reservation() -> None:
    found = plan(P5, job("core=5,walltime=60s", at=1000), {"cpus": 1, "time": 10}, job("core=1,walltime=10s"))
    assert found.starts() == {1: 1000, 2: 1060, 3: 0}


# -- besteffort


def test_a_besteffort_job_is_ended_when_a_normal_one_wants_its_resources() -> None:
    found = run(
        P5,
        job("core=4,walltime=100s", type=["besteffort"]),
        job("core=4,walltime=60s", submit=10),
        job("core=1,walltime=60s", submit=10),
    )
    assert (found[1]["start"], found[1]["end"], found[1]["state"]) == (0, 10, "failed")
    assert found.code(1) == "preempted"
    assert found.starts() == {1: 0, 2: 10, 3: 10}


def test_a_besteffort_job_that_is_not_in_the_way_goes_on() -> None:
    found = run(P5, job("core=2,walltime=100s", type=["besteffort"]), job("core=3,walltime=60s", submit=10))
    assert found.starts() == {1: 0, 2: 10}
    assert found[1]["state"] == "complete"


def test_an_idempotent_besteffort_job_is_queued_again() -> None:
    found = run(
        P5, job("core=4,walltime=100s", type=["besteffort", "idempotent"]), job("core=4,walltime=60s", submit=10)
    )
    assert found.starts() == {1: 70, 2: 10}
    assert (found[1]["state"], found[1]["end"]) == ("complete", 170)


def test_an_idempotent_job_that_asks_for_it_is_queued_again_and_its_dependents_follow() -> None:
    found = run(
        P5, job("core=5,walltime=100s", type=["idempotent"], exit=99), job("core=5,walltime=10s", after=[1])
    )
    assert (found[1]["state"], found[1]["start"], found[1]["end"]) == ("complete", 100, 200)
    assert found[2]["start"] == 200


def test_an_idempotent_job_that_asks_too_soon_has_failed() -> None:
    found = run(P5, job("core=5,walltime=100s", type=["idempotent"], exit=99, run=59))
    assert (found[1]["state"], found.code(1)) == ("failed", "exit")


def test_an_idempotent_inner_job_whose_container_ended_is_queued_again_as_by_a_manager() -> None:
    found = run(
        P32,
        job("nodes=2,walltime=80s", type=["container"], run=40),
        job("nodes=1,walltime=70s", type=["inner=1", "idempotent"]),
        job("nodes=1,walltime=70s", type=["inner=1"]),
    )
    assert (found[1]["state"], found[1]["end"]) == ("complete", 40)
    assert (found[2]["state"], found.code(2), found[2]["start"]) == ("ready", "container", None)
    assert (found[3]["state"], found.code(3), found[3]["end"]) == ("failed", "container", 40)


# -- order


def test_users_who_used_less_run_first() -> None:
    users = ["ann", "bob", "cat", "dan", "eve"]
    usage = dict(zip(users, (300, 100, 500, 0, 200), strict=True))
    found = run(P5, *(job("core=5,walltime=60s", user=user) for user in users), usage=usage)
    order = sorted(found, key=lambda id: found[id]["start"])
    assert [users[id - 1] for id in order] == ["dan", "bob", "eve", "ann", "cat"]


def test_a_queue_of_higher_priority_goes_first() -> None:
    found = run(
        P5,
        job("core=5,walltime=60s"),
        job("core=5,walltime=60s", submit=1),
        job("core=5,walltime=60s", submit=2, queue="admin"),
    )
    assert found.starts() == {1: 0, 2: 120, 3: 60}


def test_a_job_of_higher_priority_goes_first_in_its_queue() -> None:
    found = run(P5, *(job("core=5,walltime=60s", submit=n, priority=10 * n) for n in range(4)))
    assert found.starts() == {1: 0, 2: 180, 3: 120, 4: 60}


#: A head of three processors; behind it a job of four that a long job of one may delay, or may not.
_POLICIES = [
    job("core=3,walltime=10s"),
    job("core=3,walltime=10s"),
    job("core=4,walltime=10s"),
    job("core=1,walltime=30s"),
]


@pytest.mark.parametrize(
    ("policy", "starts"),
    [
        ("fcfs", [0, 10, 20, 30]),
        ("easy", [0, 10, 30, 0]),
        ("easy-sjbf", [0, 10, 30, 0]),
        ("conservative", [0, 10, 20, 30]),
    ],
)
def test_policies_differ_as_they_are_defined(policy: str, starts: list[float]) -> None:
    assert list(run([{"ids": "1-4", "host": "n"}], *_POLICIES, policy=policy).starts().values()) == starts


def test_replaying_a_trace_twice_gives_the_same_schedule() -> None:
    jobs = [
        job(
            f"core={1 + n * 7 % 5},walltime={10 + n * 13 % 50}s",
            submit=n * 3 % 40,
            run=5 + n * 11 % 40,
            user=f"u{n % 3}",
        )
        for n in range(60)
    ]
    for policy in ("fcfs", "easy", "easy-sjbf", "conservative"):
        assert run(P5, *jobs, policy=policy) == run(P5, *jobs, policy=policy)


# -- ends


def test_a_job_is_killed_at_its_walltime() -> None:
    found = run(P5, job("core=1,walltime=60s", run=100))
    assert (found[1]["end"], found[1]["state"], found.code(1)) == (60, "failed", "walltime")


@pytest.mark.parametrize("kind", ["noop", "cosystem", "deploy", "container"])
def test_the_walltime_is_the_normal_end_of_what_only_holds_resources(kind: str) -> None:
    after = job("core=1,walltime=10s", after=[1])
    found = run(P5, job("core=1,walltime=60s", run=100, type=[kind]), after)
    assert (found[1]["end"], found[1]["state"]) == (60, "complete")
    assert (found[2]["start"], found[2]["state"]) == (60, "complete")


def test_an_estimate_never_kills() -> None:
    found = run(P5, {"cpus": 2, "time": 60, "run": 600}, job("core=5,walltime=10s"))
    assert (found[1]["end"], found[1]["state"]) == (600, "complete")
    assert found[2]["start"] == 600


def test_resources_are_not_used_beyond_the_time_they_are_available() -> None:
    rows = [{"ids": "1-2", "host": "a", "available_until": 50}, {"ids": "3-4", "host": "b"}]
    found = plan(rows, job("core=2,walltime=60s"), job("core=2,walltime=50s"), job("core=3,walltime=60s"))
    assert found.place(1) == (0, "3-4")
    assert found.place(2) == (0, "1-2")
    assert found[3]["start"] is None
    assert found[3]["reason"] is not None


@pytest.mark.parametrize(
    "state", [{"state": "absent"}, {"state": "suspected"}, {"state": "dead"}, {"drain": True}]
)
def test_nothing_is_placed_where_nothing_may_start(state: dict[str, Any]) -> None:
    rows = [{"ids": "1-2", "host": "a"} | state, {"ids": "3-4", "host": "b"}]
    found = plan(rows, job("core=2,walltime=60s"), job("core=3,walltime=60s"))
    assert found.place(1) == (0, "3-4")
    assert found[2]["start"] is None


def test_memory_of_a_host_is_shared_by_its_jobs() -> None:
    rows = [{"ids": "1-4", "host": "a"}]
    each = {"cpus": 1, "mem": "3G", "time": 60}
    found = run(rows, each, each, each, hosts={"a": {"mem": "8G"}})
    assert found.starts() == {1: 0, 2: 0, 3: 60}


def test_units_of_a_limit_of_a_host_are_shared_by_its_jobs() -> None:
    rows = [{"ids": "1-4", "host": "a"}, {"ids": "5-8", "host": "b"}]
    each = job("core=1,walltime=60s", limits=["lic"])
    found = run(rows, each, each, each, hosts={"a": {"limits": {"lic": 1}}, "b": {"limits": {"lic": 1}}})
    assert found.starts() == {1: 0, 2: 0, 3: 60}
    assert found.place(2) == (0, "5")


def test_units_of_a_limit_of_the_site_are_shared_by_all() -> None:
    rows = [{"ids": "1-4", "host": "a"}, {"ids": "5-8", "host": "b"}]
    each = job("nodes=1,walltime=60s", limits={"lic": 2})
    small = job("core=1,walltime=60s", limits="lic")
    assert list(run(rows, each, each, small, limits={"lic": 3}).starts().values()) == [0, 60, 0]


def test_gpus_of_a_host_are_counted() -> None:
    rows = [{"ids": "1-4", "host": "a"}, {"ids": "5-8", "host": "b"}]
    each = {"cpus": 1, "gpus": 1, "walltime": 60}
    found = run(rows, each, each, each, hosts={"b": {"gpus": 2}})
    assert [found.place(id) for id in (1, 2, 3)] == [(0, "5"), (0, "6"), (60, "5")]


# -- calendars

MONDAY = "2026-01-05T00:00:00"


def test_a_calendar_limits_a_user_by_day_and_not_by_night() -> None:
    calendar = {
        "periodical": [["08:00-19:00 mon-fri", "day"]],
        "oneshot": [],
        "sets": {"day": {"*,*,*,/": [8, -1, -1]}},
    }
    big = job("nodes=2,walltime=1h", user="ann")
    found = run(
        P32,
        big,
        big | {"submit": 7.5 * 3600},
        big | {"submit": 12 * 3600},
        epoch=MONDAY,
        timezone="Europe/Paris",
        calendar=calendar,
    )
    assert found.starts() == {1: 0, 2: 19 * 3600, 3: 19 * 3600}


def test_a_one_off_period_wins_over_the_weekly_one() -> None:
    calendar = {
        "periodical": [["08:00-19:00 mon-fri", "day"]],
        "oneshot": [["2026-01-05T09:00:00", "2026-01-05T18:00:00", "holiday"]],
        "sets": {"day": {"*,*,*,/": [8, -1, -1]}, "holiday": {"*,*,*,/": [-1, -1, -1]}},
    }
    big = job("nodes=2,walltime=1h", user="ann", submit=8 * 3600)
    assert run(P32, big, epoch=MONDAY, calendar=calendar).starts() == {1: 9 * 3600}


def test_resource_hours_that_ended_jobs_used_count_for_the_rest_of_the_period() -> None:
    # Sixteen resource-hours between midnight and ten. The first uses eight of them in an hour instead of two.
    calendar = {"periodical": [["00:00-10:00", "early"]], "sets": {"early": {"*,*,*,/": [-1, -1, 16]}}}
    first = job("nodes=1,walltime=2h", run=3600, user="ann")
    second = job("nodes=2,walltime=1h", submit=3600, user="ann")
    other = job("nodes=2,walltime=1h", submit=3600, user="bob")
    found = run(P32, first, second, other, epoch=MONDAY, calendar=calendar)
    assert found.starts() == {1: 0, 2: 9.5 * 3600, 3: 3600}


def test_a_period_follows_the_clock_of_the_site_when_it_changes() -> None:
    # On 29 March 2026 clocks in Paris go from 02:00 to 03:00: noon is eleven hours after midnight.
    calendar = {"periodical": [["12:00-18:00", "day"]], "sets": {"day": {"*,*,*,/": [0, -1, -1]}}}
    half = job("nodes=1,walltime=30m", user="ann", submit=11 * 3600)
    found = run(P32, half, epoch="2026-03-29T00:00:00", timezone="Europe/Paris", calendar=calendar)
    assert found.starts() == {1: 17 * 3600}


def test_deadline_and_postpone_bound_when_a_job_runs() -> None:
    found = plan(
        P5,
        job("core=5,walltime=60s"),
        job("core=5,walltime=60s", type=["deadline=100"]),
        job("core=5,walltime=10s", type=["postpone=200"]),
    )
    assert found[2]["start"] is None
    assert found[2]["reason"] is not None
    assert found[3]["start"] == 200


def test_a_job_that_did_not_start_before_it_expires_gives_up() -> None:
    found = run(P5, job("core=5,walltime=60s"), job("core=5,walltime=60s", type=["expire=30"]))
    assert found[2]["start"] is None
    assert found[2]["state"] == "failed"
    assert found[2]["reason"]["code"] == "expired"


def test_a_job_that_missed_its_deadline_fails_and_says_so() -> None:
    found = run(P5, job("core=5,walltime=60s"), job("core=5,walltime=60s", type=["deadline=100"]))
    assert found[2]["start"] is None
    assert found[2]["state"] == "failed"
    assert found[2]["reason"] == {"code": "expired", "message": "it could not end before its deadline"}


def test_a_bad_request_is_an_error_that_names_the_field_and_the_column() -> None:
    with pytest.raises(BadInput, match=r"jobs\[1\]\.request\[0\]: .*'nodse' at column 10.*did you mean 'nodes'"):
        run(P32, job("nodes=1"), job(["/host=1 /nodse=2"]))


def test_fractions_of_a_core_share_one_core_in_hundredths() -> None:
    half, third = {"cpus": 0.5, "walltime": "60s"}, {"cpus": 0.3, "walltime": "60s"}
    found = plan(P5, half, third, third, {"cpus": 0.2, "walltime": "60s"}, job("core=3,walltime=60s"))
    assert [found.place(id) for id in (1, 2, 3, 4)] == [(0, "1"), (0, "1"), (0, "2"), (0, "1")]
    assert found.place(5) == (0, "3-5")


def test_a_core_that_is_shared_is_free_for_others_when_the_last_has_ended() -> None:
    rows = [{"ids": "1", "host": "a"}]
    long, short = {"cpus": 0.5, "walltime": "90s"}, {"cpus": 0.5, "walltime": "30s"}
    found = plan(rows, short, long, job("core=1,walltime=10s"), {"cpus": 0.6, "walltime": "10s"})
    assert found.starts() == {1: 0, 2: 0, 3: 90, 4: 100}
