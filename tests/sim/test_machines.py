"""Machines in a simulation: conditions, use by hand, machines that are added, provisioning and holds."""

from __future__ import annotations

from typing import Any

import pytest

from rota.errors import BadInput
from tests.sim.labs import ABC, lab, machines, need

A = machines("A")
AB = machines("AB")


def _event(at: float, machine: str, condition: str) -> dict[str, Any]:
    return {"at": at, "machine": machine, "condition": condition}


# -- the cases of one machine and one job


def test_an_idle_machine_gets_a_new_job_without_waiting() -> None:
    found = lab(A, need("A", submit=7))
    assert (found.times(1), found.host(1)) == ((7, 17), "A")
    assert found.used("A") == [("automated", "idle", 0, 7), ("automated", "running", 7, 17)]


def test_a_machine_that_frees_goes_to_the_first_that_waits_and_is_never_idle_in_between() -> None:
    found = lab(A, need("A", run=50), need("A", submit=1), need("A", submit=2))
    assert [found.times(id) for id in (1, 2, 3)] == [(0, 50), (50, 60), (60, 70)]
    assert found.used("A") == [("automated", "running", 0, 70)]


@pytest.mark.parametrize("policy", ["conservative", "easy"])
def test_who_can_only_have_the_busy_machine_gets_it_before_later_ones_that_could_have_both(policy: str) -> None:
    held = {"id": 9, "start": 0, "resources": "1", "request": "nodes=1,walltime=100s", "run": 100}
    found = lab(AB, held, need("A", id=1), need("A", "B", id=2, run=500), need("A", "B", id=3), policy=policy)
    assert (found.host(2), found.times(2)[0]) == ("B", 0)
    assert (found.host(1), found.times(1)[0]) == ("A", 100)
    assert found.times(3)[0] == 110


def test_who_waits_goes_before_a_newcomer_of_equal_priority_at_the_moment_a_machine_is_released() -> None:
    found = lab(A, need("A", run=50), need("A", submit=10), need("A", submit=50))
    assert [found.times(id)[0] for id in (2, 3)] == [50, 60]


@pytest.mark.parametrize(
    "events",
    [
        [_event(30, "B", "automated")],
        [{"at": 30, "add": {"ids": "9", "host": "C", "lab": "x"}}],
    ],
    ids=["repaired", "added"],
)
def test_a_job_that_waits_starts_on_a_machine_that_is_repaired_or_added(events: list[dict[str, Any]]) -> None:
    rows = machines("AB", lab="yx")
    job = {"request": "nodes=1,walltime=60s", "where": "lab='x'", "run": 10}
    found = lab(rows, job, machines={"B": {"condition": "broken"}}, events=events)
    assert found.times(1) == (30, 40)
    assert found.host(1) in ("B", "C")


def test_a_machine_that_is_added_is_unknown_before() -> None:
    found = lab(A, need(), need(), events=[{"at": 4, "add": {"ids": "9", "host": "D"}}])
    assert (found.host(2), found.times(2)) == ("D", (4, 14))
    assert found.used("D") == [("unknown", "unknown", 0, 4), ("automated", "running", 4, 14)]


@pytest.mark.parametrize("condition", ["manual", "broken", "removed"])
def test_only_automated_machines_get_jobs(condition: str) -> None:
    found = lab(AB, need("A"), need(), machines={"A": {"condition": condition}})
    assert found.times(1) == (None, None)
    assert found[1]["state"] == "ready"
    assert found.host(2) == "B"
    assert found.used("A") == [(condition, "idle", 0, 10)]


def test_an_unknown_property_is_refused_and_never_matches_more() -> None:
    with pytest.raises(BadInput, match=r"jobs\[0\].where: .*colour"):
        lab(ABC, {"request": "nodes=1,walltime=9s", "where": "colour='red'"})


def test_a_property_may_be_that_of_a_machine_that_is_added_later() -> None:
    job = {"request": "nodes=1,walltime=9s", "where": "colour='red'"}
    found = lab(A, job, events=[{"at": 5, "add": {"ids": "7", "host": "D", "colour": "red"}}])
    assert (found.host(1), found.times(1)) == ("D", (5, 14))


def test_the_days_of_a_machine_add_up() -> None:
    day = 86_400
    found = lab(
        A,
        need("A", submit=3.5 * day, run=day / 2, walltime=day) | {"request": "nodes=1,walltime=1d"},
        machines={"A": {"condition": "broken"}},
        events=[_event(day, "A", "automated"), {"at": 2 * day, "manual": "A", "user": "ann", "until": 2.5 * day}],
    )
    assert found.used("A") == [
        ("broken", "idle", 0, day),
        ("automated", "idle", day, 2 * day),
        ("manual", "running", 2 * day, 2.5 * day),
        ("automated", "idle", 2.5 * day, 3.5 * day),
        ("automated", "running", 3.5 * day, 4 * day),
    ]


# -- conditions and use by hand


@pytest.mark.parametrize("condition", ["broken", "manual"])
def test_a_job_or_gang_that_waits_for_a_machine_of_another_condition_says_so(condition: str) -> None:
    members = [need("A", gang="g"), need("B", gang="g")]
    found = lab(AB, need("A"), *members, machines={"A": {"condition": condition}})
    assert [(found[id]["state"], found.code(id)) for id in (1, 2, 3)] == [("ready", "condition")] * 3
    assert f"A is {condition}" in found[1]["reason"]["message"]


def test_a_condition_changes_at_once_and_a_running_job_goes_on() -> None:
    found = lab(A, need("A", run=50), need("A"), events=[_event(20, "A", "broken"), _event(80, "A", "automated")])
    assert [found.times(id) for id in (1, 2)] == [(0, 50), (80, 90)]
    assert found.used("A") == [
        ("automated", "running", 0, 20),
        ("broken", "idle", 20, 80),
        ("automated", "running", 80, 90),
    ]


def test_events_of_one_instant_happen_in_the_order_of_the_list_and_before_all_else() -> None:
    both = [_event(5, "A", "broken"), _event(5, "A", "automated")]
    assert lab(A, need("A", submit=5), events=both).times(1) == (5, 15)
    found = lab(A, need("A", submit=5), events=both[::-1])
    assert found.times(1) == (None, None)


def test_a_machine_in_use_by_hand_is_given_to_jobs_when_it_is_returned() -> None:
    found = lab(A, need("A", submit=20), events=[{"at": 10, "manual": "A", "user": "ann", "until": 40}])
    assert found.times(1) == (40, 50)
    assert found.used("A") == [
        ("automated", "idle", 0, 10),
        ("manual", "running", 10, 40),
        ("automated", "running", 40, 50),
    ]


def test_a_busy_machine_is_not_given_away_for_use_by_hand() -> None:
    found = lab(A, need("A", run=50), need("A"), events=[{"at": 10, "manual": "A", "user": "ann", "until": 90}])
    assert found.times(2) == (50, 60)
    assert found.refused == [{"at": 10, "manual": "A", "message": "A was not reserved: a job has it"}]


def test_a_condition_that_is_set_ends_use_by_hand() -> None:
    events = [{"at": 10, "manual": "A", "user": "ann", "until": 90}, _event(30, "A", "broken")]
    found = lab(AB, need("B", run=100), events=events)
    assert found.used("A")[1:] == [("manual", "running", 10, 30), ("broken", "idle", 30, 100)]


def test_a_removed_machine_leaves_its_job_alone_and_gets_no_other() -> None:
    found = lab(AB, need("A", run=30), need("A"), events=[_event(10, "A", "removed")])
    assert found.times(1) == (0, 30)
    assert (found[2]["state"], found.code(2)) == ("ready", "unsatisfiable")


# -- cancels


def test_a_waiting_job_that_is_cancelled_holds_nothing() -> None:
    found = lab(A, need("A", run=50), need("A"), need("A"), events=[{"at": 20, "cancel": 2}])
    assert (found[2]["state"], found.code(2), found.times(2)) == ("cancelled", "kill_requested", (None, None))
    assert found.times(3) == (50, 60)


def test_a_job_that_is_cancelled_at_the_moment_it_would_start_never_starts() -> None:
    found = lab(A, need("A", run=50), need("A"), need("A"), events=[{"at": 50, "cancel": 2}])
    assert (found[2]["state"], found.times(2)) == ("cancelled", (None, None))
    assert found.times(3) == (50, 60)


def test_a_running_job_that_is_cancelled_releases_its_machine_at_once() -> None:
    found = lab(
        A, need("A", run=50, reserve="always", reserve_for=30), need("A"), events=[{"at": 20, "cancel": 1}]
    )
    assert (found[1]["state"], found.times(1), found[1]["hold_s"]) == ("cancelled", (0, 20), 0)
    assert found.times(2) == (20, 30)


def test_a_job_that_waits_for_a_cancelled_one_is_blocked() -> None:
    found = lab(A, need("A", run=50), need("A"), need("A", after=[2]), events=[{"at": 20, "cancel": 2}])
    assert (found[3]["state"], found.code(3)) == ("blocked", "dependency_never")


# -- provisioning


def test_execution_begins_after_provisioning() -> None:
    found = lab(A, need("A", provision=30, submit=5))
    assert found.times(1) == (5, 45)
    assert (found[1]["wait_s"], found[1]["provision_s"], found[1]["hold_s"]) == (0, 30, 0)
    assert found.used("A")[1:] == [("automated", "installing", 5, 35), ("automated", "running", 35, 45)]


def test_the_walltime_begins_with_the_execution() -> None:
    found = lab(A, need("A", provision=30, run=99) | {"request": "nodes=1,walltime=60s"}, need("A"))
    assert (found.times(1), found.code(1)) == ((0, 90), "walltime")
    assert found.times(2) == (90, 100)


def test_provisioning_is_part_of_the_planned_length() -> None:
    first = need("A", run=100) | {"request": "nodes=1,walltime=100s"}
    both = {"request": "nodes=2,walltime=10s"}
    short = need("B", provision=60) | {"request": "nodes=1,walltime=50s"}
    found = lab(AB, first, both, short)
    assert (found.times(2)[0], found.times(3)[0]) == (100, 110)
    assert lab(AB, first, both, short | {"provision": 50}).times(3)[0] == 0


def test_provisioning_takes_the_whole_host() -> None:
    rows = [{"ids": "1-4", "host": "A"}]
    found = lab(
        rows, {"request": "nodes=1/core=1,walltime=60s", "provision": 5, "run": 10}, {"cpus": 1, "time": 5}
    )
    assert (found[1]["resources"], found.times(2)[0]) == ("1-4", 15)


def test_a_failed_provisioning_is_tried_again_elsewhere() -> None:
    found = lab(AB, need(provision=30, provision_fails=["A"], retries=1))
    assert (found.host(1), found.times(1), found[1]["state"]) == ("B", (0, 70), "complete")
    assert (found[1]["wait_s"], found[1]["provision_s"]) == (0, 60)
    assert found.used("A") == [("automated", "installing", 0, 30), ("automated", "idle", 30, 70)]
    assert found.used("B")[1:] == [("automated", "installing", 30, 60), ("automated", "running", 60, 70)]


def test_a_machine_that_failed_is_not_tried_again() -> None:
    busy = need("B", run=100)
    found = lab(AB, busy, need(provision=30, provision_fails=["A"], retries=1))
    assert (found.host(2), found.times(2)) == ("B", (100, 140))
    assert (found[2]["wait_s"], found[2]["provision_s"]) == (70, 60)


def test_without_retries_a_failed_provisioning_fails_the_job() -> None:
    found = lab(AB, need(provision=30, provision_fails=["A"], reserve="onfail", reserve_for=10))
    assert (found[1]["state"], found.code(1), found.times(1)) == ("failed", "provision", (0, 30))
    assert (found[1]["provision_s"], found[1]["hold_s"]) == (30, 0)


# -- holds


@pytest.mark.parametrize(
    ("reserve", "fields", "held"),
    [
        ("always", {}, 50),
        ("always", {"exit": 1}, 50),
        ("onfail", {}, 0),
        ("onfail", {"exit": 1}, 50),
        ("onfail", {"run": 2000}, 50),
        ("onabort", {"exit": 1}, 0),
        ("onabort", {"run": 2000}, 50),
    ],
)
def test_a_machine_is_kept_after_the_run(reserve: str, fields: dict[str, Any], held: int) -> None:
    found = lab(A, need("A", reserve=reserve, reserve_for=50) | fields, need("A"))
    assert found[1]["hold_s"] == held
    assert found.times(2)[0] == found.times(1)[1] + held
    assert found.used("A") == [("automated", "running", 0, found.times(2)[1])]


@pytest.mark.parametrize("reserve", ["always", "onfail"])
def test_a_preempted_job_keeps_no_machine(reserve: str) -> None:
    guest = need("A", type="besteffort", run=90, reserve=reserve, reserve_for=50)
    found = lab(A, guest, need("A", submit=20))
    assert (found.code(1), found[1]["hold_s"], found.times(2)[0]) == ("preempted", 0, 20)


def test_dependents_start_at_the_end_of_the_run_and_not_of_the_hold() -> None:
    found = lab(AB, need("A", reserve="always", reserve_for=50), need("B", after=[1]), need("A"))
    assert (found.times(2), found.times(3)) == ((10, 20), (60, 70))


def test_a_hold_that_is_surely_coming_is_planned() -> None:
    first = need("A", run=100) | {"request": "nodes=1,walltime=100s"}
    both = {"request": "nodes=2,walltime=10s"}
    holds = need("B", reserve="always", reserve_for=60) | {"request": "nodes=1,walltime=50s"}
    assert lab(AB, first, both, holds).times(3)[0] == 110
    assert lab(AB, first, both, holds | {"reserve": "onfail"}).times(3)[0] == 0


@pytest.mark.parametrize("policy", ["conservative", "easy", "easy-sjbf", "fcfs"])
def test_holds_keep_others_away_under_every_policy(policy: str) -> None:
    jobs = [need("A", "B", reserve="always", reserve_for=5, submit=n // 2) for n in range(6)]
    found = lab(AB, *jobs, policy=policy)
    assert sorted(found.times(id)[0] for id in range(1, 7)) == [0, 0, 15, 15, 30, 30]


# -- broken detection


def test_a_machine_that_fails_two_jobs_in_a_row_is_broken_until_somebody_repairs_it() -> None:
    fails = need("A", provision=5, provision_fails=["A"])
    found = lab(AB, fails, fails, need("A"), events=[_event(40, "A", "automated")])
    assert [found.code(id) for id in (1, 2)] == ["provision", "provision"]
    assert found.times(3) == (40, 50)
    assert found.used("A") == [
        ("automated", "installing", 0, 10),
        ("broken", "idle", 10, 40),
        ("automated", "running", 40, 50),
    ]


def test_a_good_run_between_two_faults_shows_that_a_machine_is_fit() -> None:
    fails = need("A", provision=5, provision_fails=["A"])
    found = lab(AB, fails, need("A"), fails, need("A"))
    assert found.times(4)[0] == 20


def test_runs_that_are_aborted_count_on_machines_that_belong_to_somebody() -> None:
    long = need("A", run=60) | {"request": "nodes=1,walltime=20s"}
    assert lab(AB, long, long, need("A")).times(3)[0] == 40
    assert lab(AB, long, long, need("A"), machines={"A": {"owner": "ann"}}).times(3)[0] is None
