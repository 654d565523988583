"""Jobs over two nodes when something happens to one of them: nothing is free before both are clean.

The witness looks on: what runs on the other node of a job takes its cores like the job itself.
"""

from __future__ import annotations

import pytest

from tests.cluster.cluster import CORES, Cluster
from tests.cluster.hosts import Host

_UNTIL = "while ! test -e {name}; do sleep 0.05; done"
BOTH = [f"/host=2/core={CORES}"]
#: Stays behind, whatever it is asked.
_STUBBORN = "setsid sh -c \"trap '' TERM HUP INT; sleep 654 & sleep 654\" > /dev/null 2>&1 &"


def wide(cluster: Cluster, name: str) -> tuple[int, Host, Host]:
    """A job on both nodes, with its first node and the other."""
    job = cluster.running(_UNTIL.format(name=name), request=BOTH, retries=0)
    first = cluster.host_of(job)
    (other,) = (host for host in cluster.hosts if host is not first)
    return job, first, other


def finish(cluster: Cluster, job: int, name: str) -> None:
    """Let it end, and see that both nodes are free and clean then."""
    (cluster.work / name).touch()
    cluster.until(job, "complete")
    for host in cluster.hosts:
        assert "sleep 654" not in cluster.commands_on(host)
    after = cluster.add("true", request=BOTH, retries=0)
    cluster.until(after, "complete")


def leave_something(cluster: Cluster, job: int, host: Host) -> None:
    cluster.ok("exec", str(job), "--node", host.name, "-n", "--", "sh", "-c", _STUBBORN)
    cluster.wait(lambda: "sleep 654" in cluster.commands_on(host), "it is there")


def test_what_a_job_left_on_another_node_is_dead_before_anything_is_free(two: Cluster) -> None:
    job, _first, other = wide(two, "left")
    waiting = two.add("true", request=BOTH, retries=0)
    leave_something(two, job, other)
    assert two.state(waiting) == "ready"
    finish(two, job, "left")
    two.until(waiting, "complete")
    assert two.outcomes(job) == [("complete", None)]


def test_every_node_of_a_job_has_the_list_of_them(two: Cluster) -> None:
    job, first, other = wide(two, "listed")
    listed = two.ok("exec", str(job), "--node", other.name, "-n", "--", "sh", "-c", "uname -n; cat $ROTA_NODEFILE")
    assert listed.split() == [other.name, *[first.name] * CORES, *[other.name] * CORES]
    finish(two, job, "listed")


def test_what_a_job_left_on_its_other_node_goes_on_when_the_agent_there_is_killed(two: Cluster) -> None:
    job, _first, other = wide(two, "kept")
    leave_something(two, job, other)
    two.kill_agent(other)
    two.start_agent(other)
    two.wait(
        lambda: two.rota("exec", str(job), "--node", other.name, "-n", "--", "true").returncode == 0, "still open"
    )
    assert "sleep 654" in two.commands_on(other)
    finish(two, job, "kept")
    two.wait(lambda: "sleep 654" not in two.commands_on(other), "it ends with the job")
    assert two.witness.seen(job) == ["start", "end"]


def test_a_job_goes_on_when_agent_and_launcher_of_its_other_node_are_killed(two: Cluster) -> None:
    job, _first, other = wide(two, "agent")
    leave_something(two, job, other)
    two.kill_agent_and_launchers(other)
    two.start_agent(other)
    two.wait(lambda: "sleep 654" not in two.commands_on(other), "the next agent ended what was left")
    two.until_node(other, "alive")
    two.until(job, "running")
    two.wait(
        lambda: two.rota("exec", str(job), "--node", other.name, "-n", "--", "true").returncode == 0, "open again"
    )
    finish(two, job, "agent")
    assert two.witness.seen(job) == ["start", "end"]


def test_a_job_goes_on_when_its_other_node_is_started_anew(two: Cluster) -> None:
    job, _first, other = wide(two, "anew")
    leave_something(two, job, other)
    two.reboot(other)
    two.until_node(other, "alive")
    two.until(job, "running")
    finish(two, job, "anew")
    assert two.witness.seen(job) == ["start", "end"]


def test_a_manager_that_is_killed_while_a_node_is_cleaned_goes_on_with_that(two: Cluster) -> None:
    job, first, other = wide(two, "manager")
    leave_something(two, job, other)
    waiting = two.add("true", request=BOTH, retries=0)
    with two.stopped_agent(other):
        (two.work / "manager").touch()
        two.until(job, "finishing", "lost")
        two.kill_manager()
        two.start()
        two.until_node(first, "alive")
        two.until(job, "finishing", "lost")
        assert two.state(waiting) == "ready"
    finish(two, job, "manager")
    two.until(waiting, "complete")
    assert two.outcomes(job) == [("complete", None)]


@pytest.mark.parametrize("how", ["cut", "lose_what_it_says"])
def test_a_job_is_lost_while_its_other_node_is_away_and_is_back_with_it(two: Cluster, how: str) -> None:
    job, _first, other = wide(two, f"away-{how}")
    with other.away(how):
        two.until(job, "lost")
        assert two.witness.seen(job) == ["start"], "it goes on"
    two.until(job, "running")
    finish(two, job, f"away-{how}")


def test_a_job_that_is_killed_while_its_other_node_is_away_is_cancelled_when_that_is_clean(two: Cluster) -> None:
    job, first, other = wide(two, "never")
    leave_something(two, job, other)
    waiting = two.add("true", request=BOTH, retries=0)
    with other.away():
        two.until(job, "lost")
        two.kill(job)
        two.wait(
            lambda: not any("never" in line for line in two.commands_on(first)), "it is dead on its first node"
        )
        assert two.state(job) == "lost"
        assert "sleep 654" in two.commands_on(other)
        assert two.state(waiting) == "ready"
    two.until(job, "cancelled")
    assert "sleep 654" not in two.commands_on(other)
    two.until(waiting, "complete")


def test_an_agent_that_is_killed_before_a_job_begins_costs_no_retry(two: Cluster) -> None:
    other = two.hosts[1]
    with two.stopped_agent(other):
        job = two.add("true", request=BOTH, retries=0)
        two.until(job, "starting")
    two.until(job, "complete")
    assert two.outcomes(job)[-1] == ("complete", None)
