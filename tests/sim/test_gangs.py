"""Gangs in a simulation: placed whole or not at all, provisioned together; what one member means for others."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.sim.labs import ABC, Lab, lab, machines, need
from tests.sim.sites import Fields, plan

AB = machines("AB")
POLICIES = ("conservative", "easy", "easy-sjbf", "fcfs")


def gang(name: str, *members: Fields, **fields: Any) -> list[Fields]:
    return [{"gang": name} | fields | member for member in members]


def both(name: str, **fields: Any) -> list[Fields]:
    """A gang of one member on A and one on B."""
    return gang(name, need("A"), need("B"), **fields)


def _never_half(found: Lab, *ids: int) -> None:
    """All members have machines from the same moment on, or none has any."""
    assert len({found[id]["start"] for id in ids}) == 1
    hosts = [host for id in ids if found.host(id) for host in found.host(id).split(",")]
    assert len(set(hosts)) == len(hosts)


# -- placed whole


@pytest.mark.parametrize("policy", POLICIES)
def test_a_gang_starts_whole_on_different_machines(policy: str) -> None:
    found = lab(AB, *gang("g", need(), need()), policy=policy)
    assert [(found.host(id), found.times(id)) for id in (1, 2)] == [("A", (0, 10)), ("B", (0, 10))]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_gang_waits_for_all_its_machines_and_holds_none_meanwhile(policy: str) -> None:
    short = {"request": "nodes=1,walltime=20s", "where": "host='B'", "run": 20}
    found = lab(AB, need("A", run=50) | {"request": "nodes=1,walltime=50s"}, *both("g"), short, policy=policy)
    _never_half(found, 2, 3)
    assert found.times(2)[0] == 50
    assert found.times(4)[0] == (60 if policy == "fcfs" else 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_two_gangs_for_the_same_two_machines_start_one_after_the_other(policy: str) -> None:
    held = need("A", run=50, id=9)
    first = both("g1")
    second = both("g2", submit=10, priority=100)
    jobs = [job | {"id": id} for id, job in enumerate((*first, *second), 1)]
    found = lab(AB, held, *jobs, policy=policy)
    for ids in ((1, 2), (3, 4)):
        _never_half(found, *ids)
    assert sorted((found.times(1)[0], found.times(3)[0])) == [50, 60]
    if policy != "fcfs":
        assert found.times(3)[0] == 50


@pytest.mark.parametrize(("policy", "priority"), [("conservative", 0), ("easy", 0), ("easy", 50)])
def test_small_jobs_that_keep_coming_do_not_starve_a_gang(policy: str, priority: int) -> None:
    small = [
        {
            "request": "nodes=1,walltime=40s",
            "where": f"host='{host}'",
            "run": 40,
            "submit": at,
            "priority": priority,
        }
        for at in range(0, 4000, 20)
        for host in ("A" if at % 40 else "B")
    ]
    jobs = [job | {"id": id} for id, job in enumerate(both("g", submit=5), 1)]
    jobs += [job | {"id": id} for id, job in enumerate(small, 3)]
    found = lab(AB, *jobs, policy=policy)
    _never_half(found, 1, 2)
    # With other policies it may wait for five minutes before its machines are kept for it.
    assert found.times(1)[0] <= 5 + 300 + 2 * 40


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "fcfs"])
def test_a_gang_that_can_begin_at_no_time_keeps_no_other_from_its_reservation(policy: str) -> None:
    small = {"request": "nodes=1,walltime=40s", "run": 40, "priority": 50, "user": "eve"}
    jobs = [*both("never", user="bob"), *both("g", submit=1, user="ann")]
    jobs += [small | {"where": f"host='{'AB'[n % 2]}'", "submit": n * 20} for n in range(40)]
    found = lab(AB, *jobs, policy=policy, quotas={"*,*,*,bob": [1, -1, -1]})
    assert found[1]["state"] == "ready"
    _never_half(found, 3, 4)
    assert found.times(3)[0] <= 1 + 300 + 2 * 40


def test_members_are_matched_so_that_all_fit() -> None:
    found = lab(ABC, *gang("g", need("A", "B", "C"), need("A", "B"), need("A")))
    assert [found.host(id) for id in (1, 2, 3)] == ["C", "B", "A"]


def test_members_may_ask_for_several_machines() -> None:
    two = {"request": "nodes=2,walltime=60s", "run": 10}
    found = lab(machines("ABCD"), *gang("g", two, need("B")))
    assert (found.host(1), found.host(2)) == ("A,C", "B")
    assert lab(AB, *gang("g", two, need())).code(1) == "gang_conflict"


def test_all_machines_of_a_gang_have_the_same_value_of_a_property() -> None:
    rows = machines("ABCD", lab="xyxy")
    found = lab(rows, need("A", run=30), *gang("g", need(), need(), gang_same="lab"))
    assert [found.host(id) for id in (2, 3)] == ["B", "D"]
    conflict = lab(rows, *gang("g", need("A"), need("B"), gang_same="lab"))
    assert [conflict.code(id) for id in (1, 2)] == ["gang_conflict"] * 2


def test_members_share_machines_only_if_they_say_so() -> None:
    rows = [{"ids": "1-2", "host": "A"}, {"ids": "3-4", "host": "B"}]
    one = {"request": "nodes=1/core=1,walltime=60s", "run": 10}
    apart = lab(rows, *gang("g", one, one))
    assert [apart.host(id) for id in (1, 2)] == ["A", "B"]
    together = lab(rows, *gang("g", one, one, gang_share=True))
    assert [together.host(id) for id in (1, 2)] == ["A", "A"]


def test_of_several_ways_the_one_with_most_preferences_met_is_taken() -> None:
    rows = machines("ABC", disk="hss")
    found = lab(rows, *gang("g", need(), need(prefer="disk='h'")))
    assert [found.host(id) for id in (1, 2)] == ["B", "A"]
    assert lab(rows, need(prefer="disk='s'")).host(1) == "B"


# -- gangs that cannot be placed


def test_a_gang_that_can_never_be_placed_is_refused_and_told_who_is_in_conflict() -> None:
    found = lab(ABC, *gang("g", need("A", name="web"), need("A", name="db"), need("B", name="rest")), need("A"))
    for id in (1, 2, 3):
        assert (found[id]["state"], found.code(id), found.times(id)) == ("failed", "gang_conflict", (None, None))
        message = found[id]["reason"]["message"]
        assert "web" in message
        assert "db" in message
        assert "rest" not in message
    assert found.times(4)[0] == 0


def test_members_with_alternatives_are_in_conflict_only_if_none_of_these_does() -> None:
    either = {"request": ["{host='A'}/nodes=1,walltime=60s", "{host='B'}/nodes=1,walltime=60s"], "run": 10}
    found = lab(ABC, *gang("g", either, either | {"name": "second"}, either, need("C", name="rest")))
    message = found[1]["reason"]["message"]
    assert "members 0, second and 2 need 3 machines" in message
    assert "there are 2: A,B" in message


def test_many_members_with_alternatives_take_different_ones() -> None:
    rows = machines("ABCDEFGHIJ", kind="xyyyyyyyyy")
    either = {"request": ["{kind='x'}/nodes=1,walltime=60s", "{kind='y'}/nodes=1,walltime=60s"], "run": 10}
    found = lab(rows, *gang("g", *[either] * 10))
    assert {found.times(id) for id in range(1, 11)} == {(0, 10)}


def test_members_that_ask_for_cores_are_not_said_to_need_as_many_machines() -> None:
    rows = [{"ids": "1-2", "host": "A"}, {"ids": "3-4", "host": "B"}]
    wide, one = ({"request": f"core={cores},walltime=60s", "run": 10} for cores in (3, 1))
    message = lab(rows, *gang("g", wide, one))[1]["reason"]["message"]
    assert "3 machines" not in message
    assert "no way was found" in message


def test_a_gang_that_may_wait_starts_when_machines_are_added() -> None:
    jobs = gang("g", need(), need(), allow_unsatisfiable=True)
    found = lab(machines("A"), *jobs, events=[{"at": 40, "add": {"ids": "7", "host": "D"}}])
    assert [(found.host(id), found.times(id)[0]) for id in (1, 2)] == [("A", 40), ("D", 40)]


def test_a_gang_waits_for_a_machine_that_is_repaired_or_returned() -> None:
    broken = lab(
        AB, *both("g"), machines={"B": {"condition": "broken"}},
        events=[{"at": 30, "machine": "B", "condition": "automated"}],
    )  # fmt: skip
    assert [broken.times(id)[0] for id in (1, 2)] == [30, 30]
    manual = lab(AB, *both("g", submit=10), events=[{"at": 5, "manual": "B", "user": "ann", "until": 45}])
    assert [manual.times(id)[0] for id in (1, 2)] == [45, 45]


def test_a_gang_whose_machine_is_removed_stays_queued() -> None:
    found = lab(AB, need("A", run=50), *both("g"), events=[{"at": 20, "machine": "B", "condition": "removed"}])
    assert [(found[id]["state"], found.code(id)) for id in (2, 3)] == [("ready", "unsatisfiable")] * 2


# -- forced machines


@pytest.mark.parametrize("condition", ["manual", "broken"])
def test_a_forced_machine_is_taken_whatever_its_condition(condition: str) -> None:
    found = lab(AB, need("B", force_host="A"), machines={"A": {"condition": condition}})
    assert (found.host(1), found.times(1)) == ("A", (0, 10))


def test_a_removed_machine_is_never_forced() -> None:
    assert lab(AB, need(force_host="A"), machines={"A": {"condition": "removed"}}).times(1) == (None, None)


def test_a_forced_job_waits_for_a_manual_user() -> None:
    found = lab(
        AB, need(force_host="A", submit=20), events=[{"at": 10, "manual": "A", "user": "ann", "until": 60}]
    )
    assert found.times(1) == (60, 70)


def test_only_those_who_may_use_a_machine_force_it() -> None:
    its = {"machines": {"A": {"owner": "ann", "groups": ["lab"]}}, "machine_groups": {"lab": {"users": ["bob"]}}}
    jobs = [need(force_host="A", user=user) for user in ("ann", "bob", "eve")]
    found = lab(AB, *jobs, **its)
    assert [found[id]["state"] for id in (1, 2, 3)] == ["complete", "complete", "failed"]
    assert found.code(3) == "denied"


# -- provisioning of gangs


def test_members_execute_when_the_last_machine_is_provisioned() -> None:
    found = lab(AB, *gang("g", need("A", provision=10), need("B", provision=60)))
    assert [found.times(id) for id in (1, 2)] == [(0, 70), (0, 70)]
    assert [found[id]["provision_s"] for id in (1, 2)] == [60, 60]
    assert found.used("A") == [
        ("automated", "installing", 0, 10),
        ("automated", "scheduled", 10, 60),
        ("automated", "running", 60, 70),
    ]


def test_a_member_that_fails_in_provisioning_releases_all_and_the_gang_is_tried_elsewhere() -> None:
    members = gang("g", need(provision=30, provision_fails=["A"]), need(), retries=1)
    found = lab(ABC, *members, need("A", submit=5, run=20))
    assert [found.host(id) for id in (1, 2)] == ["B", "C"]
    assert [found.times(id) for id in (1, 2)] == [(0, 70), (0, 70)]
    assert [found[id]["provision_s"] for id in (1, 2)] == [60, 60]
    assert found.times(3) == (30, 50)
    assert [found[id]["state"] for id in (1, 2, 3)] == ["complete"] * 3


def test_a_gang_without_retries_fails_with_the_provisioning_of_one_member() -> None:
    found = lab(AB, *gang("g", need(provision=30, provision_fails=["A"]), need()), need())
    assert [(found[id]["state"], found.code(id), found.times(id)[1]) for id in (1, 2)] == [
        ("failed", "provision", 30),
        ("failed", "gang", 30),
    ]
    assert found.times(3)[0] == 30


def test_a_machine_that_is_removed_while_it_is_provisioned_releases_the_gang() -> None:
    members = gang("g", need("A", "C", provision=30), need("B"), retries=1)
    found = lab(ABC, *members, events=[{"at": 10, "machine": "A", "condition": "removed"}])
    assert [(found.host(id), found.times(id), found[id]["provision_s"]) for id in (1, 2)] == [
        ("C", (0, 50), 40),
        ("B", (0, 50), 40),
    ]
    alone = lab(AB, *both("g", provision=30), events=[{"at": 10, "machine": "A", "condition": "removed"}])
    assert [(alone[id]["state"], alone.code(id)) for id in (1, 2)] == [("failed", "provision"), ("failed", "gang")]
    ready = lab(AB, need("A", provision=10, run=50), events=[{"at": 20, "machine": "A", "condition": "removed"}])
    assert ready.times(1) == (0, 60), "a running job goes on"


# -- what one member means for the others


def test_a_member_that_fails_ends_all() -> None:
    found = lab(AB, *gang("g", need("A", exit=1), need("B", run=90), retries=5), need("B"))
    assert [(found[id]["state"], found.code(id)) for id in (1, 2)] == [("failed", "exit"), ("failed", "gang")]
    assert [found.times(id) for id in (2, 3)] == [(0, 10), (10, 20)]


def test_the_others_go_on_if_they_are_to_be_kept() -> None:
    found = lab(AB, *gang("g", need("A", exit=1), need("B", run=90), on_member_failure="keep"))
    assert [(found[id]["state"], found.times(id)[1]) for id in (1, 2)] == [("failed", 10), ("complete", 90)]


def test_all_are_tried_again_together() -> None:
    terms = {"on_member_failure": "retry", "retries": 1, "backoff": 5}
    found = lab(AB, *gang("g", need("A", exit=[1, 0]), need("B", run=90), **terms))
    assert [(found[id]["state"], found.times(id)[0]) for id in (1, 2)] == [("complete", 15), ("complete", 15)]
    once = lab(
        AB, *gang("g", need("A", exit=1), need("B", run=90), on_member_failure="retry", retries=1, backoff=5)
    )
    assert [(once[id]["state"], once.code(id)) for id in (1, 2)] == [("failed", "exit"), ("failed", "gang")]


def test_members_that_fail_at_one_moment_are_tried_again_together() -> None:
    terms = {"on_member_failure": "retry", "retries": 1, "backoff": 5}
    found = lab(AB, *gang("g", need("A", exit=[1, 0]), need("B", exit=[1, 0]), **terms))
    assert [(found[id]["state"], found.times(id)) for id in (1, 2)] == [("complete", (15, 25))] * 2


@pytest.mark.parametrize("retries", [(1, 0), (0, 1)])
def test_if_one_of_them_has_no_retry_left_none_is_tried_again(retries: tuple[int, int]) -> None:
    members = [need(host, exit=1, retries=left) for host, left in zip("AB", retries, strict=True)]
    found = lab(AB, *gang("g", *members, on_member_failure="retry", backoff=5))
    assert [(found[id]["state"], found.times(id), found.code(id)) for id in (1, 2)] == [
        ("failed", (0, 10), "exit")
    ] * 2


def test_members_that_were_ended_keep_their_machines_if_they_asked_for_it() -> None:
    keeps = need("B", run=90, reserve="onabort", reserve_for=40)
    found = lab(AB, *gang("g", need("A", exit=1), keeps), need("B"))
    assert (found[2]["hold_s"], found.times(3)[0]) == (40, 50)


def test_a_waiting_member_that_is_cancelled_cancels_all() -> None:
    found = lab(AB, need("A", run=50), *both("g"), need("B", submit=20), events=[{"at": 20, "cancel": 3}])
    assert [(found[id]["state"], found.times(id)) for id in (2, 3)] == [("cancelled", (None, None))] * 2
    assert found.times(4)[0] == 20


def test_a_running_member_that_is_cancelled_ends_all() -> None:
    found = lab(AB, *gang("g", need("A", run=50), need("B", run=50)), events=[{"at": 20, "cancel": 2}])
    assert [(found[id]["state"], found.code(id), found.times(id)[1]) for id in (1, 2)] == [
        ("failed", "gang", 20),
        ("cancelled", "kill_requested", 20),
    ]


def test_a_gang_that_is_cancelled_at_the_moment_it_would_start_holds_nothing() -> None:
    found = lab(AB, need("A", run=50), *both("g"), events=[{"at": 50, "cancel": 2}])
    assert [(found[id]["state"], found.times(id)) for id in (2, 3)] == [("cancelled", (None, None))] * 2


# -- dependencies, quotas, plans


def test_a_gang_is_ready_when_the_dependencies_of_all_members_hold() -> None:
    found = lab(ABC, need("C", run=30), *gang("g", need("A", after=[1]), need("B")), need("C", after=[2]))
    assert [found.times(id)[0] for id in (2, 3, 4)] == [30, 30, 40]


def test_a_member_that_can_never_begin_blocks_all() -> None:
    found = lab(ABC, need("C", exit=1), *gang("g", need("A", after=[1]), need("B")), need("C", after=[3]))
    assert [(found[id]["state"], found.code(id)) for id in (2, 3)] == [("blocked", "dependency_never")] * 2
    assert found[4]["state"] == "blocked"


def test_quotas_count_the_sum_of_the_members() -> None:
    found = lab(ABC, need("C", run=30, user="ann"), *both("g", user="ann"), quotas={"*,*,*,ann": [2, -1, -1]})
    assert [found.times(id)[0] for id in (2, 3)] == [30, 30]


def test_a_gang_is_preempted_whole() -> None:
    found = lab(AB, *gang("g", need("A", run=90), need("B", run=90), type="besteffort"), need("A", submit=20))
    assert [(found[id]["state"], found.code(id), found.times(id)[1]) for id in (1, 2)] == [
        ("failed", "preempted", 20)
    ] * 2
    assert found.times(3)[0] == 20


def test_a_plan_shows_each_member_where_it_will_be() -> None:
    found = plan(AB, need("A") | {"request": "nodes=1,walltime=50s"}, *both("g"))
    assert [found.place(id) for id in (2, 3)] == [(50, "1"), (50, "2")]
    assert found[2]["host"] == "A"


@pytest.mark.parametrize("seed", range(15))
def test_with_strict_fcfs_only_a_gang_that_has_waited_for_five_minutes_begins_before_its_turn(seed: int) -> None:
    rng = Random(seed)
    jobs: list[Fields] = []
    moment = 0
    for number in range(12):
        moment += rng.randint(0, 100)
        members = rng.choice([1, 1, 2, 3])
        own = {"gang": f"g{number}"} if members > 1 else {}
        hosts = (
            [rng.sample("ABC", 3) for _ in range(members)] if members == 3 else [rng.sample("ABC", 2)] * members
        )
        jobs += [need(*some, run=rng.randint(1, 200), submit=moment) | own for some in hosts]
    found = lab(ABC, *jobs, policy="fcfs")
    latest = 0.0
    for id, job in enumerate(jobs, 1):
        start = found.times(id)[0]
        assert start >= latest or ("gang" in job and start >= job["submit"] + 300)
        latest = max(latest, start) if start < job["submit"] + 300 or "gang" not in job else latest
