"""Random labs: whatever happens to machines and jobs, times add up and no resource is held twice."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from tests.sim.labs import Lab, lab
from tests.sim.sites import Fields

POLICIES = ("conservative", "easy", "easy-sjbf", "fcfs")
REQUESTS = ("nodes=1,walltime=50s", "nodes=2,walltime=30s", "nodes=1/core=1,walltime=20s")


def _job(rng: Random, hosts: str) -> Fields:
    job: Fields = {"request": rng.choice(REQUESTS), "run": rng.randint(1, 60), "user": rng.choice(["ann", "bob"])}
    some: dict[str, Any] = {
        "where": " or ".join(f"host='{host}'" for host in rng.sample(hosts, rng.randint(1, len(hosts)))),
        "provision": rng.randint(1, 20),
        "reserve": rng.choice(["always", "onfail", "onabort"]),
        "exit": rng.choice([1, [1, 0]]),
        "retries": rng.randint(1, 2),
        "prefer": "lab='x'",
    }
    job |= {name: value for name, value in some.items() if rng.random() < 0.3}
    if "reserve" in job:
        job["reserve_for"] = rng.randint(1, 30)
    if "provision" in job and rng.random() < 0.5:
        job["provision_fails"] = [rng.choice(hosts)]
    return job


def _jobs(rng: Random, hosts: str) -> list[Fields]:
    jobs: list[Fields] = []
    moment = 0
    for number in range(rng.randint(3, 10)):
        moment += rng.choice([0, 0, 5, 20])
        shared: Fields = {"submit": moment}
        members = 1
        if rng.random() < 0.4:
            members = rng.randint(1, 3)
            shared |= {"gang": f"g{number}", "on_member_failure": rng.choice(["kill", "keep", "retry"])}
            shared |= {"gang_same": "lab"} if rng.random() < 0.3 else {}
        shared |= {"type": "besteffort"} if rng.random() < 0.1 else {}
        shared |= {"after": [rng.choice(jobs)["id"]]} if jobs and rng.random() < 0.2 else {}
        first = len(jobs) + 1
        jobs += [_job(rng, hosts) | shared | {"id": first + member} for member in range(members)]
    return jobs


def _events(rng: Random, hosts: str, jobs: list[Fields]) -> list[Fields]:
    found: list[Fields] = []
    for number in range(rng.randint(0, 5)):
        at = rng.randint(0, 150)
        there = [job["id"] for job in jobs if job["submit"] <= at]
        kinds: list[Fields] = [
            {"machine": rng.choice(hosts), "condition": rng.choice(["automated", "manual", "broken", "removed"])},
            {"add": {"ids": str(900 + number), "host": f"Z{number}", "lab": "x"}},
            {"manual": rng.choice(hosts), "user": "ann", "until": at + rng.randint(1, 60)},
            *([{"cancel": rng.choice(there)}] if there else []),
        ]
        found.append({"at": at} | rng.choice(kinds))
    return found


def _held_once(found: Lab, jobs: list[Fields]) -> None:
    """No two jobs have a machine at a time. Provisioned ones are left out: only their last machines are known."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for job in jobs:
        became = found[job["id"]]
        if became["start"] is not None and became["end"] > became["start"] and became["provision_s"] == 0:
            for host in became["host"].split(","):
                spans.setdefault(host, []).append((became["start"], became["end"] + became["hold_s"]))
    for each in spans.values():
        assert all(one[1] <= other[0] for one, other in pairwise(sorted(each)))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_in_a_lab_its_times_add_up(seed: int, policy: str) -> None:
    rng = Random(seed)
    hosts = "ABCDE"[: rng.randint(2, 5)]
    rows: list[Fields] = [{"ids": n, "host": host, "lab": rng.choice("xy")} for n, host in enumerate(hosts, 1)]
    jobs = _jobs(rng, hosts)
    found = lab(rows, *jobs, events=_events(rng, hosts, jobs), policy=policy)
    _held_once(found, jobs)
    for job in found.values():
        assert job["state"] in ("complete", "failed", "cancelled", "blocked", "ready")
        assert (job["start"] is None) == (job["end"] is None)
