"""Nodes that may be used in certain hours only."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from rota.core import events
from rota.core.machines.energy_rules import EnergyRules
from rota.plan.site.node_facts import NodeFacts
from rota.plan.size import Size
from tests.core.machine import GIB
from tests.core.sleepers import Cluster

# ------------------------------------------------------------------ hours


def hours_from(c: Cluster, begin_s: float, end_s: float) -> str:
    """Hours that begin and end so many seconds from now, which is a whole minute."""
    begin, end = (datetime.fromtimestamp(c.wall + each, UTC) for each in (begin_s, end_s))
    return f"{begin:%H:%M}-{end:%H:%M}"


@pytest.fixture
def desk() -> Cluster:
    """A node that may be used from in ten minutes on, for twenty."""
    c = Cluster(1, rules=EnergyRules())
    c.wall = 1_800_000_000.0 - 1_800_000_000.0 % 60
    c.happened(events.SiteChanged(changes=[("host", "h1", {"hours": hours_from(c, 600, 1800)})]))
    c.tick()
    return c


@pytest.mark.parametrize("size", [Size(), Size(cpus=0)])
def test_outside_its_hours_nothing_begins_on_a_node_whatever_it_takes(desk: Cluster, size: Size) -> None:
    (job,) = desk.add("true", fresh=True, size=size, walltime_s=300.0).added
    desk.tick(590)
    assert job not in desk.running()
    desk.tick(10)
    assert job in desk.running()


def test_what_does_not_end_before_the_hours_do_waits_for_the_next_day(desk: Cluster) -> None:
    desk.tick(600)
    job = desk.job(walltime_s=1260.0)
    assert job not in desk.running()
    planned = desk.world.placement.planned(job)
    assert planned is not None
    assert planned.start is None, "twenty minutes are never enough for twenty-one"
    short = desk.job(walltime_s=1140.0)
    assert short in desk.running()
    later = desk.job(walltime_s=300.0)
    desk.tick(1300)
    assert short in desk.running(), "who is still there when the hours end goes on"
    assert later not in desk.running()
    desk.end(short)
    assert later not in desk.running()
    planned = desk.world.placement.planned(later)
    assert planned is not None
    assert planned.start is not None
    assert planned.start > desk.wall + 20 * 3600


def test_hours_that_an_agent_announces_are_kept_unless_an_administrator_says_otherwise() -> None:
    c = Cluster(1, rules=EnergyRules())
    c.wall = 1_800_000_000.0 - 1_800_000_000.0 % 60
    facts = NodeFacts(cores=2, mem=8 * GIB, disk=GIB, hours=hours_from(c, 600, 1800))
    c.disconnect(c.nodes["h1"])
    c.happened(msgspec.structs.replace(c.nodes["h1"].join(), node=facts))
    c.tick()
    job = c.job(walltime_s=60.0)
    assert job not in c.running()
    c.happened(events.SiteChanged(changes=[("host", "h1", {"hours": "*"})]))
    c.tick()
    assert job in c.running()
