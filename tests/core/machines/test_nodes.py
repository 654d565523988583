"""Nodes register, are known after a restart, are closed and opened, are started anew, and go."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rota.core import events
from rota.core.machines.nodes import check_facts
from rota.core.states import State
from rota.errors import BadInput
from rota.plan.site.node_facts import NodeFacts
from rota.plan.size import Capacity, Size
from tests.core.machine import GIB, Machine
from tests.core.runners import ModelRunner

FACTS = NodeFacts(cores=2, mem=4 * GIB, disk=GIB, machine="m")


@pytest.fixture
def m() -> Machine:
    """Nothing but a manager."""
    machine = Machine(hosts=0)
    machine.witness._capacity = {f"n{n}": Capacity(cpus=200, mem=4 * GIB, disk=GIB) for n in range(9)}
    return machine


def join(m: Machine, host: str, facts: NodeFacts = FACTS, *, boot: str = "boot") -> ModelRunner:
    """A new agent of this host."""
    model = m.start_runner(host)
    rejoin(m, model, facts, boot=boot)
    return model


def rejoin(m: Machine, model: ModelRunner, facts: NodeFacts = FACTS, *, boot: str = "boot") -> None:
    m.happened(msgspec.structs.replace(model.join(), node=facts, boot_id=boot))
    m.pump()


def add(m: Machine, number: int = 1, **fields: Any) -> list[int]:
    return m.add(*["true"] * number, fresh=True, **fields).added


def site(m: Machine, *changes: tuple[str, str, Any]) -> None:
    by = m.asker()
    m.happened(events.SiteChanged(by=by, changes=list(changes)))
    m.answer(by.n)


def ids(m: Machine) -> dict[str, list[int]]:
    return {host: record["ids"] for host, record in m.world.site["node"].items()}


def test_a_job_waits_until_the_first_node_joins(m: Machine) -> None:
    (job,) = add(m)
    assert m.state(job) is State.READY
    join(m, "n1")
    assert set(m.running()) == {job}


def test_jobs_are_packed_onto_all_nodes_without_a_plan(m: Machine) -> None:
    for host in ("n1", "n2", "n3"):
        join(m, host)
    jobs = add(m, 7)
    assert len(m.running()) == 6
    assert {len(model.busy) for model in m.runners.values()} == {2}
    assert m.world.placement.planner is None
    assert m.state(jobs[6]) is State.READY


def test_nodes_keep_their_resources_after_a_restart_in_whatever_order_they_come(m: Machine) -> None:
    first, second = join(m, "n1"), join(m, "n2", NodeFacts(cores=4, mem=GIB, disk=GIB))
    known = ids(m)
    assert known == {"n1": [1, 2], "n2": [3, 4, 5, 6]}
    m.crash()
    assert ids(m) == known
    rejoin(m, second, NodeFacts(cores=4, mem=GIB, disk=GIB))
    rejoin(m, first)
    assert ids(m) == known
    assert m.world.own_resources == known


def test_what_is_asked_of_nodes_that_are_away_is_not_refused_after_a_restart(m: Machine) -> None:
    join(m, "n1")
    m.crash()
    (job,) = add(m, request=("nodes=1/core=2",))
    assert m.state(job) is State.READY


def test_a_node_that_grew_has_more_room(m: Machine) -> None:
    model = join(m, "n1", NodeFacts(cores=1, mem=GIB, disk=GIB))
    add(m, 2)
    assert len(m.running()) == 1
    m.disconnect(model)
    rejoin(m, model, NodeFacts(cores=2, mem=GIB * 2, disk=GIB))
    assert len(m.running()) == 2
    assert len(ids(m)["n1"]) == 2


def test_a_little_more_or_less_free_disk_is_not_written_down(m: Machine) -> None:
    model = join(m, "n1")
    version = m.world.site_version
    rejoin(m, model, NodeFacts(cores=2, mem=4 * GIB, disk=GIB - 1000, machine="m"))
    assert m.world.site_version == version


def test_agents_cannot_announce_properties_without_end(m: Machine) -> None:
    for n in range(20):
        join(m, f"n{n}", NodeFacts(cores=1, mem=GIB, disk=GIB, properties={f"p{n}x{k}": 1 for k in range(49)}))
    facts = NodeFacts(cores=1, mem=GIB, disk=GIB, properties={f"last{k}": 1 for k in range(49)})
    with pytest.raises(BadInput, match="properties already"):
        check_facts(m.world, "last", facts)
    check_facts(m.world, "last", msgspec.structs.replace(facts, properties={"p3x4": 7}))


def test_announced_properties_can_be_asked_for(m: Machine) -> None:
    join(m, "n1")
    join(m, "n2", NodeFacts(cores=2, mem=4 * GIB, disk=GIB, properties={"fast": True, "rack": 7}))
    (job,) = add(m, where="fast = yes and rack = 7")
    assert m.world.runners[m.world.jobs[job].lease.runner].host == "n2"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"properties": {"host": "x"}}, "built in"),
        ({"properties": {"gpu": 3}}, "'gpu'"),
        ({"properties": {"2much": 1}}, "cannot be the name"),
        ({"machine": "another"}, "another machine was known"),
        ({"cores": 0}, "cores"),
        ({"mem": -1}, "mem"),
        ({"properties": {f"p{n}": 1 for n in range(100)}}, "more than 64"),
    ],
)
def test_what_an_agent_must_not_say_is_refused_by_name(m: Machine, facts: dict[str, Any], said: str) -> None:
    join(m, "n1", NodeFacts(cores=2, mem=4 * GIB, disk=GIB, machine="m", properties={"gpu": True}))
    with pytest.raises(BadInput, match=said):
        check_facts(m.world, "n1", msgspec.structs.replace(FACTS, **facts))


def test_a_drained_node_starts_nothing_more_and_others_go_on_without_a_plan(m: Machine) -> None:
    join(m, "n1")
    join(m, "n2")
    site(m, ("host", "n1", {"drain": True}))
    add(m, 3)
    assert {model.host: len(model.busy) for model in m.runners.values()} == {"n1": 0, "n2": 2}
    assert m.world.placement.planner is None
    site(m, ("host", "n1", {"drain": False}))
    m.pump()
    assert len(m.running()) == 3


def test_an_administrators_figures_go_before_what_an_agent_found(m: Machine) -> None:
    model = join(m, "n1")
    site(m, ("host", "n1", {"mem": GIB}))
    jobs = add(m, 2, size=Size(mem=GIB))
    assert set(m.running()) == {jobs[0]}
    rejoin(m, model)
    assert set(m.running()) == {jobs[0]}


def test_a_node_that_is_said_to_be_dead_runs_nothing_any_more(m: Machine) -> None:
    join(m, "n1")
    (job,) = add(m)
    site(m, ("host", "n1", {"state": "dead"}))
    m.pump()
    assert m.state(job) in (State.FINISHING, State.CANCELLED)
    (later,) = add(m)
    assert m.state(later) is State.READY


def test_what_ran_before_a_restart_of_the_machine_is_dead_and_retries_decide(m: Machine) -> None:
    old = join(m, "n1")
    (once, again) = (*add(m), *add(m, retries=1))
    m.die(old, noticed=False)
    for job in (once, again):
        m.witness.end(job, 1, ok=False)
    old.busy.clear()
    join(m, "n1", boot="another")
    assert m.state(once) is State.FAILED
    assert m.state(again) is State.DELAYED
    reason = m.world.jobs[again].reason
    assert reason is not None
    assert "restarted" in reason.message


def test_a_second_agent_on_the_same_boot_proves_nothing(m: Machine) -> None:
    old = join(m, "n1")
    (job,) = add(m)
    m.die(old)
    join(m, "n1")
    assert m.world.jobs[job].lease is not None


def test_a_silent_node_is_not_used_and_is_used_again_when_it_answers(m: Machine) -> None:
    model = join(m, "n1")
    (job,) = add(m)
    m.advance(100)
    assert m.state(job) is State.LOST
    (other,) = add(m)
    assert m.state(other) is State.READY
    m.happened(events.RunnerReported(runner=model.id, seq=0, started=[], ended=[], returned=[], closed=[]))
    m.pump()
    assert set(m.running()) == {job, other}


def test_a_node_is_removed_only_when_nothing_runs_there(m: Machine) -> None:
    join(m, "n1")
    (job,) = add(m)
    with pytest.raises(BadInput, match=f"job {job} is on node 'n1'"):
        site(m, ("node", "n1", None))
    m.act("kill", job)
    m.pump()
    site(m, ("node", "n1", None))
    assert "n1" not in m.world.capacity
    assert not m.world.runners
    (later,) = add(m)
    assert m.state(later) is State.READY
    m.crash()
    assert "n1" not in m.world.capacity


def test_a_node_that_is_leaving_gets_nothing_more(m: Machine) -> None:
    model = join(m, "n1")
    (job,) = add(m)
    m.happened(
        events.RunnerReported(runner=model.id, seq=0, started=[], ended=[], returned=[], closed=[], leaving=True)
    )
    (other,) = add(m)
    (planned,) = add(m, request=("nodes=1/core=1",))
    assert set(m.running()) == {job}
    join(m, "n2")
    assert set(m.running()) == {job, other, planned}


def test_a_lease_that_came_after_a_runner_took_its_leave_was_never_executed(m: Machine) -> None:
    model = join(m, "n1")
    (job,) = m.add("true", fresh=True).added
    model.waiting.clear()
    model.busy.clear()
    m.witness.running.clear()
    m.happened(events.RunnerSettled(runner=model.id, by_runner=model.id, ended=[], whole=True))
    m.pump()
    assert m.state(job) in (State.READY, State.FAILED)
    assert model.id not in m.world.runners
