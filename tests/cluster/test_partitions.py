"""A network that fails: what was running goes on, is lost after a while, and is back when the network is.

In all of it the witness looks on: no job is run twice, and none is forgotten.
"""

from __future__ import annotations

import pytest

from tests.cluster.cluster import Cluster

WAYS = ["cut", "lose_what_it_hears", "lose_what_it_says"]
#: Ends when the test says so.
_UNTIL = "while ! test -e {name}; do sleep 0.05; done"


@pytest.mark.parametrize("how", WAYS)
def test_jobs_of_a_node_that_is_cut_off_are_lost_and_are_back_with_it_or_have_ended_once(
    two: Cluster, how: str
) -> None:
    staying = two.running(_UNTIL.format(name=f"staying-{how}"))
    host = two.host_of(staying)
    ending = two.running(_UNTIL.format(name=f"ending-{how}"), request=two.on(host), retries=3)
    with host.away(how):
        (two.work / f"ending-{how}").touch()
        two.until(staying, "lost")
        two.until_node(host, "suspected")
        assert two.witness.seen(staying) == ["start"], "it goes on"
        assert two.witness.seen(ending) == ["start", "end"]
        # Where only answers get lost, the manager has heard of it.
        assert two.state(ending) in ("lost", "complete" if how == "lose_what_it_hears" else "lost")
    two.until(staying, "running")
    two.until_node(host, "alive")
    two.until(ending, "complete")
    (two.work / f"staying-{how}").touch()
    two.until(staying, "complete")
    for job in (staying, ending):
        assert two.outcomes(job) == [("complete", None)]
        assert two.witness.seen(job) == ["start", "end"]


def test_a_network_that_fails_for_an_instant_loses_nothing(two: Cluster) -> None:
    job = two.running("sleep 2")
    host = two.host_of(job)
    for _ in range(3):
        with host.away():
            pass
    two.until(job, "complete")
    assert "lost" not in two.story(job)


def test_nothing_is_sent_to_a_suspected_node_and_a_lost_job_keeps_its_cores(two: Cluster) -> None:
    job = two.running(_UNTIL.format(name="keeps"), cpus=2)
    host = two.host_of(job)
    with host.away():
        two.until(job, "lost")
        others = [two.add("true") for _ in range(4)]
        for other in others:
            two.until(other, "complete")
        assert host.name not in two.witness.hosts(*others)
        assert two.state(job) == "lost"
    (two.work / "keeps").touch()
    two.until(job, "complete")


def test_a_kill_that_cannot_be_delivered_is_when_the_node_is_back(two: Cluster) -> None:
    job = two.running("sleep 300", retries=3)
    host = two.host_of(job)
    with host.away():
        two.until(job, "lost")
        two.kill(job)
        assert two.state(job) == "lost"
        assert two.shown(job).reason.code == "kill_requested"
    two.until(job, "cancelled")
    assert two.witness.seen(job) == ["start"]
    assert "sleep 300" not in two.commands_on(host)


def test_an_agent_that_stands_still_is_suspected_and_goes_on_later(two: Cluster) -> None:
    job = two.running(_UNTIL.format(name="still"))
    host = two.host_of(job)
    with two.stopped_agent(host):
        two.until(job, "lost")
        two.until_node(host, "suspected")
    two.until(job, "running")
    two.until_node(host, "alive")
    (two.work / "still").touch()
    two.until(job, "complete")
    assert two.witness.seen(job) == ["start", "end"]
