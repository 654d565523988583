"""Nodes are woken in time for what is planned there, and what becomes of those that do not come."""

from __future__ import annotations

import msgspec
import pytest

from rota.core import events
from rota.core.machines.node_energy import NodeEnergy
from rota.core.states import State
from tests.core.sleepers import RULES, Cluster

# ------------------------------------------------------------------ wake


def test_all_nodes_asleep_and_a_job_of_four_wakes_them_and_begins_when_they_are_there() -> None:
    c = Cluster(4)
    c.all_asleep()
    job = c.job("nodes=4")
    start = c.world.placement.planned(job)
    assert start is not None
    assert start.start == c.wall + RULES.wake_s
    c.tick()
    assert sorted(c.asked) == [("wake", f"h{n}") for n in range(1, 5)]
    assert [code for code, _message in c.reasons(job)] == ["waking"]
    assert "waking h1, h2, h3, h4; expected in" in c.reasons(job)[0][1]
    for host in ("h1", "h2", "h3"):
        c.wake(host)
        assert job not in c.running(), "nothing begins on a node that sleeps"
    c.tick(30)
    assert job not in c.running()
    c.wake("h4")
    assert job in c.running()
    assert c.energy() == dict.fromkeys(c.nodes, "")
    c.end(job)
    assert c.state(job) is State.COMPLETE


def test_plain_jobs_wake_nodes_as_well() -> None:
    c = Cluster(2)
    c.all_asleep()
    jobs = c.add("a", "b", "c", fresh=True).added
    c.tick()
    assert len(c.asked) == 2, "two cores each: three jobs need both"
    c.wake("h1")
    assert len(c.running()) == 2
    c.wake("h2")
    assert set(c.running()) == set(jobs)


def test_who_is_awake_is_preferred_and_a_job_begins_there_at_once() -> None:
    c = Cluster(2)
    first = c.job(walltime_s=10_000.0)
    assert c.runs_on(first) == "h1"
    c.tick(610)
    assert c.asked == [("sleep", "h2")]
    c.part("h2")
    c.end(first)
    second = c.job()
    assert c.runs_on(second) == "h1"
    c.tick(5)
    assert c.asked == [("sleep", "h2")]


def test_a_job_waits_for_an_end_that_comes_before_a_node_could_be_awake() -> None:
    c = Cluster(2)
    c.job(walltime_s=650.0)
    c.tick(610)
    c.part("h2")
    second = c.job()
    c.tick(2)
    assert c.asked == [("sleep", "h2")], "the job on h1 ends within 40 seconds, waking takes 120"
    assert c.reasons(second)[0][0] == "resources"


def test_a_job_that_waits_for_a_node_to_wake_takes_what_becomes_free_first() -> None:
    c = Cluster(2)
    first = c.job(walltime_s=10_000.0)
    c.tick(610)
    c.part("h2")
    second = c.job()
    c.tick(5)
    assert ("wake", "h2") in c.asked
    c.tick(150)
    c.end(first)
    assert c.runs_on(second) == "h1", "though its own start is past and h2 is still on its way"


def test_a_node_that_does_not_wake_in_time_is_suspected_and_its_jobs_are_planned_elsewhere() -> None:
    c = Cluster(2)
    first = c.job(walltime_s=1900.0)
    c.tick(610)
    c.part("h2")
    second = c.job()
    c.tick(410)
    assert c.energy()["h2"] == "suspected"
    assert "h2 did not wake within 6m40s" in c.story()
    assert second not in c.running()
    c.end(first)
    assert c.runs_on(second) == "h1"
    c.wake("h2")
    assert c.energy()["h2"] == "", "it heals when its agent comes after all"


def test_a_node_whose_wake_command_fails_is_suspected_at_once() -> None:
    c = Cluster(2)
    c.all_asleep()
    job = c.job()
    c.tick()
    ((_what, host),) = c.asked
    c.happened(events.PowerCommandEnded(host=host, wake=True, error="no route"))
    c.pump()
    c.tick()
    other = ({"h1", "h2"} - {host}).pop()
    assert c.asked == [("wake", host), ("wake", other)], "its job is planned on another node"
    c.wake(other)
    assert c.runs_on(job) == other
    assert f"{host} could not be woken: no route" in c.story()


def test_an_administrator_may_have_a_suspected_node_tried_again() -> None:
    c = Cluster(1)
    c.all_asleep()
    job = c.job()
    c.tick()
    c.happened(events.PowerCommandEnded(host="h1", wake=True, error="no route"))
    c.tick()
    assert c.reasons(job)[0][0] in ("no_resources", "unsatisfiable")
    c.happened(events.SiteChanged(changes=[("host", "h1", {"state": "alive"})]))
    c.pump()
    c.tick()
    assert c.asked == [("wake", "h1"), ("wake", "h1")]


def test_a_node_that_is_woken_by_somebody_else_is_awake() -> None:
    c = Cluster(1)
    c.all_asleep()
    c.wake("h1")
    assert c.energy() == {"h1": ""}
    assert c.runs_on(c.job()) == "h1"


def test_absent_sleepers_are_not_woken() -> None:
    c = Cluster(1)
    c.all_asleep()
    c.happened(events.SiteChanged(changes=[("host", "h1", {"state": "absent"})]))
    c.job(allow_unsatisfiable=True)
    c.tick(5)
    assert c.asked == []


def test_while_the_manager_is_paused_nobody_is_woken_or_put_to_sleep() -> None:
    c = Cluster(2)
    c.happened(events.ManagerPaused())
    c.tick(3000)
    assert c.asked == []
    c.happened(events.ManagerResumed())
    c.tick(5)
    assert len(c.asked) == 2


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_nodes_are_woken_whatever_the_backfill_of_a_queue(backfill: str) -> None:
    c = Cluster(2)
    c.happened(events.SiteChanged(changes=[("queue", "default", {"backfill": backfill})]))
    c.all_asleep()
    job = c.job("nodes=2")
    c.tick(2)
    assert len(c.asked) == 2
    c.tick(130)
    assert job not in c.running()
    c.wake("h1")
    c.wake("h2")
    c.tick()
    assert job in c.running()


def test_besteffort_jobs_wake_nodes_and_never_begin_on_a_sleeping_one() -> None:
    c = Cluster(1)
    c.all_asleep()
    job = c.job(types=("besteffort",), queue="besteffort")
    c.tick(200)
    assert c.asked == [("wake", "h1")]
    assert job not in c.running()
    c.wake("h1")
    c.tick()
    assert job in c.running()


def test_a_reservation_waits_for_nodes_that_wake_late() -> None:
    c = Cluster(2)
    c.all_asleep()
    begin = c.wall + 1000.0
    job = c.job("nodes=2", at=begin)
    c.tick(begin - c.wall - 100)
    assert len(c.asked) == 2
    c.wake("h1")
    c.tick(130)
    assert job not in c.running()
    c.wake("h2")
    c.tick()
    assert job in c.running()


def test_a_reservation_begins_with_fewer_nodes_when_one_does_not_wake() -> None:
    c = Cluster(2)
    c.all_asleep()
    begin = c.wall + 1000.0
    job = c.job("nodes=2", at=begin)
    c.tick(begin - c.wall - 100)
    c.wake("h1")
    c.tick(begin - c.wall + 200)
    assert c.energy() == {"h1": "", "h2": "waking"}
    assert job not in c.running()
    c.rules = c.world.use(NodeEnergy).rules = msgspec.structs.replace(RULES, wake_timeout_s=1e9)
    c.tick(begin - c.wall + 310)
    assert c.energy()["h2"] == "waking"
    assert c.runs_on(job) == "h1"
