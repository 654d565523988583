"""`rota doctor`: what it says about nodes."""

from __future__ import annotations

from typing import Any

import pytest

from rota.cli.commands.manager.doctor import node_findings
from rota.wire.sums import NodeView


def node(host: str, state: str = "alive", **more: Any) -> NodeView:
    usable = state == "alive" and not more.get("closed") and not more.get("drain")
    fields: dict[str, Any] = {
        "connected": True, "drain": False, "usable": usable, "cores": 2, "cores_in_use": 0.0, "mem_bytes": 1,
        "mem_in_use": 0, "disk_bytes": 1, "gpus": 0, "jobs": [], "runner": None, "pid": None,
        "available_until": None, "limits": {}, "properties": {},
    }  # fmt: skip
    return NodeView(host=host, state=state, **{**fields, **more})


def site(**records: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return records


def test_nodes_that_sleep_are_ready_and_those_outside_their_hours_are_not() -> None:
    asleep = [node("n1", "asleep", connected=False), node("n2", "waking", connected=False)]
    assert list(node_findings(asleep, site())) == [
        ("good", "0 of 2 may be used now, with 0 cores; 2 asleep, to be woken when needed", "")
    ]
    closed = [node("n1", closed=True), node("n2", "asleep", connected=False, closed=True)]
    assert list(node_findings(closed, site())) == [
        ("note", "0 of 2 may be used now, with 0 cores", "see 'rota node list'")
    ]


@pytest.mark.parametrize("connected", [True, False])
@pytest.mark.parametrize("state", ["suspected", "dead"])
def test_a_silent_node_needs_its_agent_whether_or_not_it_is_connected(state: str, connected: bool) -> None:
    found = list(node_findings([node("n1", state, connected=connected), node("n2")], site()))[1:]
    assert found == [("note", "no agent answers on n1", "start it there, or: rota node add n1")]


@pytest.mark.parametrize("connected", [True, False])
def test_a_node_that_somebody_found_unfit_needs_mending(connected: bool) -> None:
    nodes = [node(f"n{number}", "suspected", connected=connected) for number in (1, 2)]
    records = site(host={"n1": {"state": "suspected"}}, energy={"n2": {"state": "failed", "since": 1.0}})
    ((level, what, hint),) = list(node_findings(nodes, records))[1:]
    assert (level, what) == ("note", "suspected: n[1-2]")
    assert "rota node set n[1-2] --state alive" in hint
