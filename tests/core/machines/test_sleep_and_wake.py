"""Nodes sleep when nobody needs them: every decision, with time that a test lets pass."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rota.core import events
from rota.core.machines.energy_rules import EnergyRules, KeepAlive, parse_keep_alive
from rota.core.machines.node_energy import NodeEnergy
from rota.errors import BadInput
from rota.plan.size import Size
from tests.core.machine import Machine
from tests.core.sleepers import RULES, Cluster

# ------------------------------------------------------------------ sleep


def test_a_node_that_is_idle_for_long_enough_is_put_to_sleep() -> None:
    c = Cluster()
    c.tick(590)
    assert c.asked == []
    c.tick(20)
    assert sorted(c.asked) == [("sleep", "h1"), ("sleep", "h2")]
    assert c.energy() == {"h1": "falling asleep", "h2": "falling asleep"}
    c.part("h1")
    assert c.energy() == {"h1": "asleep", "h2": "falling asleep"}


def test_a_node_with_a_job_does_not_sleep_and_is_idle_anew_when_it_ends() -> None:
    c = Cluster(1)
    job = c.job(walltime_s=10_000.0)
    c.tick(3000)
    assert c.asked == []
    c.end(job)
    c.tick(590)
    assert c.asked == []
    c.tick(20)
    assert c.asked == [("sleep", "h1")]


def test_nodes_that_a_job_only_holds_do_not_sleep() -> None:
    c = Cluster(2)
    c.job("nodes=2", types=("noop",), walltime_s=10_000.0)
    c.tick(3000)
    assert c.asked == []


def test_a_node_on_which_a_job_is_planned_soon_stays_awake() -> None:
    c = Cluster(1)
    c.job(at=c.wall + 1700.0)
    c.tick(1650)
    assert c.asked == [], "at first it was not idle for long enough, then it was needed within the gap"


def test_a_node_on_which_nothing_is_planned_for_long_sleeps_and_is_woken_for_it_in_time() -> None:
    c = Cluster(1)
    begin = c.wall + 5000.0
    job = c.job(at=begin)
    c.tick(610)
    assert c.asked == [("sleep", "h1")]
    c.part("h1")
    c.tick(begin - 120.0 - c.wall - 10)
    assert c.asked == [("sleep", "h1")]
    c.tick(12)
    assert c.asked == [("sleep", "h1"), ("wake", "h1")]
    c.wake("h1")
    c.tick(begin - c.wall)
    assert c.runs_on(job) == "h1"


def test_the_host_of_the_manager_never_sleeps() -> None:
    m = Machine(hosts=1)
    m.world.use(NodeEnergy).rules = RULES
    m.with_runner()
    for _ in range(100):
        m.advance(30.0)
        m.pump()
    assert not m.world.site["energy"]


def test_a_node_that_is_drained_is_left_alone() -> None:
    c = Cluster(1)
    c.happened(events.SiteChanged(changes=[("host", "h1", {"drain": True})]))
    c.tick(3000)
    assert c.asked == []


def test_nothing_sleeps_where_no_command_is_set() -> None:
    c = Cluster(1, rules=EnergyRules())
    c.tick(9000)
    assert c.asked == []


def test_a_node_that_did_not_fall_asleep_is_used_again() -> None:
    c = Cluster(1)
    c.tick(610)
    job = c.job()
    assert job not in c.running(), "nothing begins on a node that falls asleep"
    c.tick(410)
    assert c.runs_on(job) == "h1"
    assert "h1 did not fall asleep" in c.story()


def test_a_node_that_could_not_be_put_to_sleep_is_used_again() -> None:
    c = Cluster(1)
    c.tick(610)
    c.happened(events.PowerCommandEnded(host="h1", wake=False, error="exit 1"))
    assert c.energy() == {"h1": ""}
    job = c.job()
    assert c.runs_on(job) == "h1"


def test_a_suspended_machine_that_only_falls_silent_is_asleep() -> None:
    c = Cluster(1)
    c.tick(610)
    for _ in range(70):
        c.wall, c.mono = c.wall + 1, c.mono + 1
        c.happened(events.TimerFired())
    c.pump()
    assert c.energy() == {"h1": "asleep"}
    assert c.nodes["h1"].connected, "its connection was never closed"
    c.nodes["h1"].report()
    c.pump()
    c.tick()
    assert c.energy() == {"h1": ""}, "and it is awake when it is heard"


# ------------------------------------------------------------------ keep-alive


def test_so_many_idle_nodes_stay_awake() -> None:
    c = Cluster(4, rules=msgspec.structs.replace(RULES, keep_alive=(KeepAlive(1),)))
    c.tick(700)
    assert len(c.asked) == 3


def test_so_many_idle_nodes_that_match_stay_awake() -> None:
    rules = msgspec.structs.replace(RULES, keep_alive=parse_keep_alive("2 where gpu='YES', 1"))
    gpu: dict[str, Any] = {"gpu": "YES"}
    c = Cluster(5, rules=rules, h1={"gpu": "NO"}, h2={"gpu": "NO"}, h3=gpu, h4=gpu, h5=gpu)
    c.tick(700)
    slept = {host for _what, host in c.asked}
    assert len(slept & {"h3", "h4", "h5"}) == 1
    assert {"h1", "h2"} <= slept, "the two that match are two of any kind as well"


def test_when_an_idle_node_is_taken_another_is_woken_in_its_place() -> None:
    c = Cluster(2, rules=msgspec.structs.replace(RULES, keep_alive=(KeepAlive(1),)))
    c.tick(610)
    ((_what, asleep),) = c.asked
    c.part(asleep)
    c.job()
    c.tick(2)
    assert c.asked[1:] == [("wake", asleep)]


def test_an_expression_that_does_not_fit_the_site_keeps_that_many_of_any_kind_awake() -> None:
    c = Cluster(3, rules=msgspec.structs.replace(RULES, keep_alive=parse_keep_alive("2 where nonsense='YES'")))
    c.tick(700)
    assert len(c.asked) == 1
    assert len([text for text in c.story() if text.startswith("keep_alive")]) == 1


@pytest.mark.parametrize("text", ["", "two", "1 where", "1, ", "-1", "1 where gpu=", "1 when gpu='YES'"])
def test_what_is_no_keep_alive_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_keep_alive(text)
    assert refused.value.message.startswith("keep_alive")
    assert refused.value.hint


def test_commas_inside_expressions_separate_nothing() -> None:
    text = "2 where gpu in ('YES', 'maybe') and name = 'a,b', 1"
    assert parse_keep_alive(text) == (KeepAlive(2, "gpu in ('YES', 'maybe') and name = 'a,b'"), KeepAlive(1))


# ------------------------------------------------------------------ restarts


def test_a_restart_forgets_no_sleeper() -> None:
    c = Cluster(2)
    c.all_asleep()
    c.restart()
    c.tick(5)
    assert c.energy() == {"h1": "asleep", "h2": "asleep"}
    assert c.asked == []
    job = c.job()
    c.tick()
    ((what, host),) = c.asked
    assert what == "wake"
    c.wake(host)
    assert c.runs_on(job) == host


def test_a_wake_that_a_restart_interrupted_is_said_again() -> None:
    c = Cluster(1)
    c.all_asleep()
    job = c.job()
    c.tick()
    c.restart()
    c.tick()
    assert c.asked == [("wake", "h1"), ("wake", "h1")]
    assert c.energy() == {"h1": "waking"}
    c.tick(410)
    assert c.energy() == {"h1": "suspected"}
    c.wake("h1")
    assert c.runs_on(job) == "h1"


def test_a_node_that_fell_asleep_during_a_restart_is_asleep() -> None:
    c = Cluster(1)
    c.tick(610)
    c.nodes["h1"].disconnect()
    c.restart()
    c.tick()
    assert c.energy() == {"h1": "asleep"}


def test_a_node_that_is_still_there_after_a_restart_is_used_again() -> None:
    c = Cluster(1)
    c.tick(610)
    c.restart()
    job = c.job()
    c.tick(450)
    assert c.runs_on(job) == "h1"


def test_a_removed_node_is_no_sleeper_any_more() -> None:
    c = Cluster(2)
    c.all_asleep()
    c.happened(events.SiteChanged(changes=[("node", "h2", None)]))
    c.nodes.pop("h2")
    c.tick()
    assert c.world.site["energy"].keys() == {"h1"}


# ------------------------------------------------------------------ history


def test_the_time_that_a_node_sleeps_is_told_apart_from_that_of_one_that_is_away() -> None:
    c = Cluster(1)
    c.all_asleep()
    c.tick(5)
    states = [row.state for row in c.store.machine_rows(host="h1", since=0, until=1 << 62)]
    assert states[-1] == "asleep"


# ------------------------------------------------------------------ what takes no core


def test_a_job_that_takes_no_core_wakes_one_node() -> None:
    c = Cluster(3)
    c.all_asleep()
    (job,) = c.add("true", fresh=True, size=Size(cpus=0)).added
    c.tick(5)
    ((what, host),) = c.asked
    assert what == "wake"
    c.wake(host)
    assert c.runs_on(job) == host


def test_a_job_that_takes_no_core_does_not_begin_on_a_node_that_falls_asleep() -> None:
    c = Cluster(1)
    c.tick(610)
    (job,) = c.add("true", fresh=True, size=Size(cpus=0)).added
    c.tick(5)
    assert job not in c.running()
