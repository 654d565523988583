"""Many jobs over the manager's own host, a node and two delegated pools: limits, dependencies and learning."""

from __future__ import annotations

import random
from itertools import cycle
from pathlib import Path

import pytest

from tests.pools.site import Site, site

POOLS: dict[str, dict[str, object]] = {
    "near": {"max_runners": 3, "slots": 6},
    "wide": {"max_runners": 2, "slots": 4},
}


def add(made: Site, draw: random.Random, count: int) -> list[int]:
    """So many witnessed jobs of all kinds, each to be executed once."""
    jobs: list[int] = []
    for place in cycle(["near", "", "wide", "local", "nodes", ""]):
        number = min(count - len(jobs), max(5, count // 12))
        if not number:
            break
        fields: dict[str, object] = {"retries": 0} | ({"pool": place} if place else {})
        if draw.random() < 0.3:
            fields["limits"] = ["few"]
        if draw.random() < 0.3:
            fields["mem"] = draw.choice(["1M", "16M", "64M"])
        if draw.random() < 0.3:
            fields["learn"] = draw.choice(["a", "b"])
        if jobs and draw.random() < 0.4:
            fields["after"] = [str(draw.choice(jobs))]
        naps = [draw.choice(["0", "0", "0.05", "0.2"]) for _ in range(number)]
        jobs += made.add_all([f"sleep {nap}" for nap in naps], **fields)
    return jobs


def campaign(top: Path, *, seed: int, jobs: int, kills: int) -> None:
    draw = random.Random(seed)
    pools = {name: dict(its) for name, its in POOLS.items()}
    with site(top, pools, nodes=1, local="on", cores="2") as made:
        made.up()
        made.ok("limit", "few:2")
        added: list[int] = []
        for _ in range(kills + 1):
            added += add(made, draw, jobs // (kills + 1))
            if len(added) < jobs:
                enough = len(added) // 3
                made.wait(lambda: made.ended() >= enough, "some have ended", seconds=300)  # noqa: B023
                made.restart_manager()
        made.wait(made.all_ended, "all jobs have ended", seconds=600)
        states = made.states()
        assert set(states.values()) == {"complete"}, f"seed {seed}"
        made.judge()
        seen = made.witness.lines()
        assert sorted(line.job for line in seen if line.what == "start") == sorted(added), "each ran once"
        places = {line.host for line in seen}
        assert {host.name for host in made.hosts} | {"head"} == places, "every place had work"
        for name, pool in made.pools.items():
            assert pool.most_at_once() <= int(str(POOLS[name]["max_runners"])), f"seed {seed}: {name}"
        made.until_empty()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_jobs_over_all_kinds_of_pools_run_once_within_all_bounds(tmp_path: Path) -> None:
    campaign(tmp_path, seed=random.randrange(10**6), jobs=100, kills=1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_jobs_over_all_kinds_of_pools_run_once_within_all_bounds(tmp_path: Path, seed: int) -> None:
    campaign(tmp_path, seed=seed, jobs=1000, kills=4)
