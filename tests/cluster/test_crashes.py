"""Agents, managers and whole hosts that die: what they ran is accounted for, and retries decide."""

from __future__ import annotations

from typing import Any

from tests.cluster.cluster import Cluster
from tests.deployment import wait_until

_UNTIL = "while ! test -e {name}; do sleep 0.05; done"
_SECOND_TIME = "test $ROTA_ATTEMPT -gt 1 || sleep 300"
_AGAIN: dict[str, Any] = {"retries": 1, "backoff": "0s"}


def test_jobs_of_a_killed_agent_go_on_with_the_next_one(two: Cluster) -> None:
    job = two.running(f"echo one; {_UNTIL.format(name='go')}; echo two", retries=0)
    host = two.host_of(job)
    two.kill_agent(host)
    two.start_agent(host)
    two.until_node(host, "alive")
    (two.work / "go").touch()
    two.until(job, "complete")
    assert two.outcomes(job) == [("complete", None)]
    assert two.witness.seen(job) == ["start", "end"]
    with two.client() as client:
        assert client.output(job) == b"one\ntwo\n"


def test_a_job_ends_while_its_node_has_no_agent_and_is_told_by_the_next_one(two: Cluster) -> None:
    job = two.running(f"{_UNTIL.format(name='gone')}; exit 3", retries=0)
    host = two.host_of(job)
    two.kill_agent(host)
    (two.work / "gone").touch()
    wait_until(lambda: two.witness.seen(job) == ["start", "end"], "it has ended")
    two.start_agent(host)
    two.until(job, "failed")
    assert two.outcomes(job) == [("failed", "exit")]


def test_jobs_of_a_killed_agent_and_launcher_are_ended_by_the_next_one_and_retries_decide(two: Cluster) -> None:
    once = two.running("sleep 300", retries=0)
    host = two.host_of(once)
    again = two.running(_SECOND_TIME, **_AGAIN, request=two.on(host))
    two.kill_agent_and_launchers(host)
    assert two.commands_on(host).count("sleep 300") == 2, "nobody has ended them yet"
    two.start_agent(host)
    two.until(once, "failed")
    two.until(again, "complete")
    assert two.outcomes(once) == [("failed", "lost")]
    assert two.outcomes(again) == [("failed", "lost"), ("complete", None)]
    assert two.witness.seen(again) == ["start", "start", "end"]
    assert "sleep 300" not in two.commands_on(host)


def test_jobs_of_a_killed_agent_that_does_not_come_back_are_lost_and_keep_their_cores(two: Cluster) -> None:
    job = two.running("sleep 300", retries=0)
    host = two.host_of(job)
    two.kill_agent_and_launchers(host)
    two.until(job, "lost")
    two.until_node(host, "suspected")
    two.start_agent(host)
    two.until(job, "failed")
    two.until_node(host, "alive")


def test_jobs_of_a_rebooted_host_have_ended_and_retries_decide(two: Cluster) -> None:
    once = two.running("sleep 300", retries=0)
    host = two.host_of(once)
    again = two.running(_SECOND_TIME, **_AGAIN, request=two.on(host))
    two.reboot(host)
    two.until(once, "failed")
    two.until(again, "complete")
    assert two.outcomes(once) == [("failed", "lost")]
    assert two.outcomes(again) == [("failed", "lost"), ("complete", None)]
    assert two.witness.seen(once) == ["start"]


def test_a_host_that_stays_down_keeps_its_jobs_until_it_is_back(two: Cluster) -> None:
    job = two.running(_SECOND_TIME, **_AGAIN)
    host = two.host_of(job)
    two.crash(host)
    two.until(job, "lost")
    assert two.witness.seen(job) == ["start"], "it is run again on proof only"
    two.boot(host)
    two.until(job, "complete")
    assert two.outcomes(job) == [("failed", "lost"), ("complete", None)]


def test_jobs_live_through_a_manager_that_is_killed_and_are_told_once(two: Cluster) -> None:
    staying = [two.running(_UNTIL.format(name="killed")) for _ in range(4)]
    for _ in range(2):
        two.kill_manager()
        two.start()
    assert {two.state(job) for job in staying} <= {"running", "lost"}
    two.kill_manager()
    (two.work / "killed").touch()
    wait_until(lambda: two.witness.seen(staying[0]) == ["start", "end"], "it has ended")
    two.start()
    for job in staying:
        two.until(job, "complete")
        assert two.outcomes(job) == [("complete", None)]
        assert two.witness.seen(job) == ["start", "end"]


def test_agent_and_manager_that_are_killed_together_lose_no_job(two: Cluster) -> None:
    once = two.running("sleep 300", retries=0)
    host = two.host_of(once)
    again = two.running(_SECOND_TIME, **_AGAIN, request=two.on(host))
    two.kill_manager()
    two.kill_agent_and_launchers(host)
    two.start()
    two.start_agent(host)
    two.until(once, "failed")
    two.until(again, "complete")
    assert two.witness.seen(once) == ["start"]
    assert two.witness.seen(again) == ["start", "start", "end"]


def test_a_host_that_is_rebooted_while_the_manager_is_down_is_believed(two: Cluster) -> None:
    job = two.running(_SECOND_TIME, **_AGAIN)
    host = two.host_of(job)
    two.kill_manager()
    two.reboot(host)
    two.start()
    two.until(job, "complete")
    assert two.outcomes(job) == [("failed", "lost"), ("complete", None)]
