"""What an administrator says about nodes, the hours that they announce, and a manager that stays away for long."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cluster.cluster import CORES, Cluster, cluster

_UNTIL = "while ! test -e {name}; do sleep 0.05; done"


@pytest.mark.parametrize("state", ["absent", "dead"])
def test_a_node_that_is_declared_absent_or_dead_has_its_jobs_ended(two: Cluster, state: str) -> None:
    host, other = two.hosts
    job = two.running("sleep 300", request=two.on(host), retries=0)
    going_on = two.running(_UNTIL.format(name=f"on-{state}"), request=two.on(other))
    two.ok("node", "set", host.name, "--state", state)
    try:
        two.until(job, "cancelled", "failed")
        assert "sleep 300" not in two.commands_on(host)
        waiting = two.add("true", request=two.on(host))
        time.sleep(0.5)
        assert two.state(waiting) == "ready"
        assert two.state(going_on) == "running"
        two.until_node(host, state)
    finally:
        two.ok("node", "set", host.name, "--state", "alive")
    two.until(waiting, "complete")
    (two.work / f"on-{state}").touch()
    two.until(going_on, "complete")


def test_outside_of_its_hours_a_node_gets_nothing(two: Cluster) -> None:
    host = two.hosts[0]
    first, last = (time.strftime("%H:%M", time.localtime(time.time() + hours * 3600)) for hours in (3, 4))
    two.ok("node", "set", host.name, "--hours", f"{first}-{last}")
    try:
        jobs = two.add_all(["sleep 0.1"] * (2 * CORES))
        waiting = two.add("true", request=two.on(host))
        for job in jobs:
            two.until(job, "complete")
        assert host.name not in two.witness.hosts(*jobs)
        assert two.state(waiting) == "ready"
    finally:
        two.ok("node", "set", host.name, "--hours", "always")
    two.until(waiting, "complete")


def test_an_agent_without_a_manager_for_long_ends_its_jobs_stays_and_tells_when_it_is_back(tmp_path: Path) -> None:
    with cluster(tmp_path, hosts=1, orphan_after="3s") as made:
        made.up()
        (host,) = made.hosts
        given_up = made.running("sleep 300", retries=0)
        done = made.running(_UNTIL.format(name="go"), retries=0)
        made.kill_manager()
        (made.work / "go").touch()
        made.wait(lambda: "sleep 300" not in made.commands_on(host), "the agent has ended its job")
        made.start()
        made.until(given_up, "failed")
        made.until(done, "complete")
        assert made.outcomes(given_up) == [("failed", "lost")]
        assert made.witness.seen(done) == ["start", "end"]
        after = made.add("true")
        made.until(after, "complete")
        made.judge()
