"""Machine groups with a cap: on their machines, jobs of outsiders have at most that priority."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.sim.labs import ABC, lab, machines, need
from tests.sim.sites import Fields

AB = machines("AB")
POLICIES = ("conservative", "easy", "easy-sjbf", "fcfs")
#: A belongs to a group whose members are not limited.
CAPPED: dict[str, Any] = {
    "machines": {"A": {"groups": ["lab"], "owner": "olga"}},
    "machine_groups": {"lab": {"cap": 10, "users": ["ann"]}},
}


def busy(*hosts: str, seconds: int = 20) -> list[Fields]:
    return [
        {"request": f"nodes=1,walltime={seconds}s", "run": seconds, "where": f"host='{host}'"} for host in hosts
    ]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("member", ["ann", "olga"])
def test_a_member_goes_before_an_outsider_of_higher_priority(policy: str, member: str) -> None:
    outsider, its = (need("A", priority=p, user=user, submit=1) for p, user in ((100, "eve"), (50, member)))
    found = lab(AB, *busy("A"), outsider, its, policy=policy, **CAPPED)
    assert [found.times(id)[0] for id in (3, 2)] == [20, 30]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_cap_counts_only_on_the_machines_of_its_group(policy: str) -> None:
    outsider, its = (need(priority=p, user=user, submit=1) for p, user in ((100, "eve"), (50, "ann")))
    found = lab(ABC, *busy("A", "B", "C"), outsider, its, policy=policy, **CAPPED)
    assert [(found.host(id), found.times(id)[0]) for id in (4, 5)] == [("B", 20), ("A", 20)]


@pytest.mark.parametrize("policy", POLICIES)
def test_an_outsider_gets_a_capped_machine_that_nobody_wants(policy: str) -> None:
    found = lab(AB, *busy("B", seconds=500), need(priority=100, user="eve", submit=1), policy=policy, **CAPPED)
    assert (found.host(2), found.times(2)[0]) == ("A", 1)


@pytest.mark.parametrize("policy", POLICIES)
def test_an_outsider_whose_other_machine_is_busy_waits_behind_a_member_for_the_capped_one(policy: str) -> None:
    jobs = [need(priority=100, user="eve", submit=1), need("A", priority=50, user="ann", submit=1)]
    found = lab(AB, *busy("A"), *busy("B", seconds=500), *jobs, policy=policy, **CAPPED)
    assert [(found.host(id), found.times(id)[0]) for id in (4, 3)] == [("A", 20), ("A", 30)]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_gang_that_takes_a_capped_machine_has_the_capped_priority(policy: str) -> None:
    gang = [need(host, priority=100, user="eve", gang="g", submit=1) for host in "AB"]
    found = lab(AB, *busy("A"), *gang, need("A", priority=50, user="ann", submit=2), policy=policy, **CAPPED)
    assert [found.times(id)[0] for id in (4, 2, 3)] == [20, 30, 30]


def test_a_machine_of_two_groups_has_the_lower_cap() -> None:
    its: dict[str, Any] = {
        "machines": {"A": {"groups": ["lab", "club"]}},
        "machine_groups": {"lab": {"cap": 40, "users": ["ann"]}, "club": {"cap": 10, "users": []}},
    }
    jobs = [need("A", priority=100, user=user, submit=1) for user in ("eve", "ann")]
    found = lab(AB, *busy("A"), *jobs, need("A", priority=20, user="zoe", submit=1), **its)
    assert [found.times(id)[0] for id in (2, 3, 4)] == [20, 30, 40], "all have priority 10"
    its["machine_groups"]["club"]["users"] = ["ann"]
    found = lab(AB, *busy("A"), *jobs, need("A", priority=20, user="zoe", submit=1), **its)
    assert [found.times(id)[0] for id in (3, 2, 4)] == [20, 30, 40], "only ann is in both"


def test_the_machine_that_is_not_capped_may_break_and_be_repaired() -> None:
    events = [
        {"at": 5, "machine": "B", "condition": "broken"},
        {"at": 25, "machine": "B", "condition": "automated"},
    ]
    jobs = [need(priority=100, user="eve", submit=1), need(priority=50, user="ann", submit=1, run=100)]
    jobs += [need(priority=50, user="bob", submit=1)]
    found = lab(AB, *busy("A", "B"), *jobs, events=events, **CAPPED)
    assert [(found.host(id), found.times(id)[0]) for id in (4, 3, 5)] == [("A", 20), ("B", 25), ("B", 35)]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", [*range(10), 13, 70, 86, 91])
def test_nobody_gets_a_machine_before_another_who_goes_first_there(seed: int, policy: str) -> None:
    rng = Random(seed)
    caps = {name: {"cap": rng.choice([5, 20]), "users": rng.sample(["ann", "bob"], 1)} for name in ("x", "y")}
    groups = {host: rng.sample(sorted(caps), rng.randint(0, 2)) for host in "ABC"}
    jobs = [
        need(
            *rng.sample("ABC", rng.randint(1, 3)), run=10, user=rng.choice(["ann", "bob", "eve"]),
            priority=rng.choice([0, 10, 30]), submit=rng.randint(0, 40), id=id,
        ) | {"time": 10}
        for id in range(1, 16)
    ]  # fmt: skip
    site: dict[str, Any] = {
        "machines": {host: {"groups": its} for host, its in groups.items()},
        "machine_groups": caps,
    }
    found = lab(ABC, *jobs, policy=policy, **site)

    def rank(job: Fields, host: str) -> tuple[int, int, int]:
        limits = [caps[name]["cap"] for name in groups[host] if job["user"] not in caps[name]["users"]]
        return -min([job["priority"], *limits]), job["submit"], job["id"]

    for job in jobs:
        host, start = found.host(job["id"]), found.times(job["id"])[0]
        for other in jobs:
            waited = other["submit"] < start < found.times(other["id"])[0]
            if waited and f"'{host}'" in other["where"]:
                assert rank(job, host) < rank(other, host), (job, other)
