"""Nodes: what they have, what of it is in use, and how they are."""

from __future__ import annotations

from math import nan

import pytest

from rota.core import events
from rota.core.jobs.outcome import Outcome
from rota.core.machines.energy_rules import EnergyRules
from rota.core.states import State
from rota.errors import BadInput
from rota.manager.metrics.rates import Rates
from rota.manager.views import gantt, nodes
from rota.manager.views.forecast import measure
from rota.manager.views.status import runner_view
from rota.plan.size import Size
from rota.wire import messages as m
from rota.wire.sums import NodeView
from rota.wire.views import StatusView
from tests.core.attempts.test_parts import running, talk
from tests.core.machine import GIB, Machine, spec
from tests.core.machines.test_host_hours import hours_from
from tests.core.sleepers import Cluster


def shown(machine: Machine) -> dict[str, NodeView]:
    return {node.host: node for node in nodes.view(nodes.snapshot(machine.world))}


def record(machine: Machine, *changes: tuple[str, str, object]) -> None:
    machine.happened(events.SiteChanged(by=None, changes=list(changes), about="", base=None))
    machine.pump()


def test_a_node_without_a_runner_is_absent() -> None:
    (node,) = shown(Machine()).values()
    assert (node.host, node.state, node.connected, node.usable) == ("h1", "absent", False, False)
    assert (node.cores, node.mem_bytes, node.runner, node.pid) == (4, 8 * GIB, None, None)


def test_what_runs_takes_cores_and_memory_and_what_waits_does_not() -> None:
    machine = Machine()
    machine.with_runner()
    size = spec().size.__class__(cpus=250, mem=GIB)
    first, _second = machine.add("a", "b", size=size).added
    node = shown(machine)["h1"]
    assert (node.cores_in_use, node.mem_in_use, node.jobs) == (2.5, GIB, [first])
    assert (node.state, node.usable, node.runner) == ("alive", True, "r1")


def test_a_silent_runner_makes_its_host_suspected() -> None:
    machine = Machine()
    machine.with_runner()
    machine.add("a")
    machine.advance(61.0)
    machine.pump()
    assert (shown(machine)["h1"].state, shown(machine)["h1"].usable) == ("suspected", False)


def test_an_administrator_s_word_goes_first() -> None:
    machine = Machine()
    machine.with_runner()
    record(machine, ("host", "h1", {"drain": True, "mem": 5 * GIB, "available_until": 4000.0}))
    node = shown(machine)["h1"]
    assert (node.state, node.drain, node.usable, node.mem_bytes) == ("alive", True, False, 5 * GIB)
    assert node.available_until is not None
    assert node.available_until.timestamp() == 4000.0
    record(machine, ("host", "h1", {"state": "dead"}))
    assert shown(machine)["h1"].state == "dead"


def test_properties_are_those_that_all_resources_of_a_host_share() -> None:
    machine = Machine()
    record(
        machine,
        ("property", "rack", {"type": "text"}),
        ("property", "rank", {"type": "integer"}),
        ("resource", "1", {"host": "n1", "cpu": 1, "rack": "s1", "rank": 1}),
        ("resource", "2", {"host": "n1", "cpu": 1, "rack": "s1", "rank": 2}),
        ("resource", "3", {"host": "n2", "cpu": 3, "rack": "s2", "rank": 2}),
    )
    found = shown(machine)
    assert (found["n1"].properties, found["n1"].cores) == ({"rack": "s1"}, 2)
    assert (found["n2"].properties, found["n2"].cores) == ({"rack": "s2", "rank": 2}, 1)
    assert found["n2"].state == "absent"


# ------------------------------------------------------------------ what is in use


def counted(machine: Machine) -> tuple[float, float]:
    status = StatusView({}, {})
    measure(status, machine.world, Rates(), now=0.0)
    return status.cores_in_use, status.cores


def test_all_nodes_of_a_job_are_counted_wherever_somebody_looks() -> None:
    machine, runners, job = running(hosts=3)
    assert counted(machine) == (12.0, 12.0)
    assert {host: (node.cores_in_use, node.jobs) for host, node in shown(machine).items()} == {
        host: (4.0, [job]) for host in runners
    }
    assert [runner_view(machine.world, model.id).running for model in runners.values()] == [1, 1, 1]


def test_of_a_node_that_is_away_neither_what_it_has_nor_what_is_held_there_is_counted() -> None:
    machine, runners, _job = running(hosts=3)
    machine.disconnect(runners["h3"])
    assert counted(machine) == (8.0, 8.0)
    assert shown(machine)["h3"].cores_in_use == 4.0


def test_a_job_whose_parts_are_being_closed_holds_all_that_it_held() -> None:
    machine, runners, job = running(hosts=2)
    runners["h1"].end(machine.running()[job][1], Outcome(exit_code=0, ended_at=machine.wall), machine.wall)
    talk(machine, runners["h1"])
    assert machine.state(job) is State.FINISHING
    assert counted(machine) == (8.0, 8.0)


def test_a_suspended_job_has_memory_and_no_cores_unless_it_keeps_them() -> None:
    machine = Machine()
    machine.with_runner()
    (job,) = machine.add("a", size=Size(cpus=400, mem=GIB)).added
    machine.do("suspend", job)
    node = shown(machine)["h1"]
    assert (node.cores_in_use, node.mem_in_use, node.jobs) == (0.0, GIB, [job])
    assert counted(machine) == (0.0, 4.0)
    machine.do("resume", job)
    assert counted(machine) == (4.0, 4.0)
    machine.do("suspend", job, keep=True)
    assert (shown(machine)["h1"].cores_in_use, counted(machine)[0]) == (4.0, 4.0)


# ------------------------------------------------------------------ when it may be used


def test_outside_its_hours_a_node_is_closed_and_may_not_be_used() -> None:
    c = Cluster(2, rules=EnergyRules())
    c.wall = 1_800_000_000.0 - 1_800_000_000.0 % 60
    record(c, ("host", "h1", {"hours": hours_from(c, 600, 1800)}))
    c.tick()
    assert {host: (node.state, node.closed, node.usable) for host, node in shown(c).items()} == {
        "h1": ("alive", True, False),
        "h2": ("alive", False, True),
    }
    c.tick(600)
    assert (shown(c)["h1"].closed, shown(c)["h1"].usable) == (False, True)


@pytest.mark.parametrize("size", [Size(), Size(cpus=0)])
def test_after_the_time_until_which_it_is_available_a_node_is_closed(size: Size) -> None:
    c = Cluster(1, rules=EnergyRules())
    record(c, ("host", "h1", {"available_until": c.wall + 60.0}))
    c.tick()
    assert (shown(c)["h1"].closed, shown(c)["h1"].usable) == (False, True)
    c.tick(60)
    assert (shown(c)["h1"].closed, shown(c)["h1"].usable) == (True, False)
    (job,) = c.add("true", size=size, walltime_s=10.0).added
    c.tick()
    assert job not in c.running()
    record(c, ("host", "h1", {}))
    c.tick()
    assert job in c.running()
    assert shown(c)["h1"].usable


def test_a_picture_of_the_plan_tells_when_hosts_are_closed() -> None:
    c = Cluster(2, rules=EnergyRules())
    c.wall = 1_800_000_000.0 - 1_800_000_000.0 % 60
    hours = hours_from(c, 600, 1800)
    record(c, ("host", "h1", {"hours": hours}))
    asked = gantt.snapshot(c.world, m.Gantt(1, since=c.wall, until=c.wall + 3600), c.wall)
    found = gantt.view(asked, limit=10)
    assert [host.hours for host in found.hosts] == [hours, ""]
    assert {
        text: [(start.timestamp() - c.wall, end.timestamp() - c.wall) for start, end in spans]
        for text, spans in found.closed.items()
    } == {hours: [(0.0, 600.0), (1800.0, 3600.0)]}
    whole = gantt.view(gantt.snapshot(c.world, m.Gantt(1), c.wall), limit=10)
    assert 28 <= len(whole.closed[hours]) <= 32
    long_ago = gantt.view(gantt.snapshot(c.world, m.Gantt(1, since=-1e300), c.wall), limit=10)
    assert long_ago.closed == whole.closed, "hours are those of the time to come"
    far = gantt.view(gantt.snapshot(c.world, m.Gantt(1, since=1e300), c.wall), limit=10)
    assert far.closed == {}


@pytest.mark.parametrize(("since", "until"), [(None, nan), (nan, None), (20.0, 10.0), (10.0, 10.0)])
def test_a_picture_that_ends_before_it_begins_is_refused(since: float | None, until: float | None) -> None:
    c = Cluster(1)
    with pytest.raises(BadInput, match="'to' is not after 'from'"):
        gantt.snapshot(c.world, m.Gantt(1, since=since, until=until), c.wall)
