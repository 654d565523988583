"""Nodes: what they have, what of it is in use, and how they are."""

from __future__ import annotations

from rota.core import events
from rota.manager import nodes
from rota.wire.sums import NodeView
from tests.core.machine import GIB, Machine, spec


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
