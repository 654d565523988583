"""A host whose agent says that it can start nothing is suspected until the agent takes that back."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.core import events
from rota.core.states import State
from tests.core.machine import Machine
from tests.core.machines.test_nodes import FACTS, add, join, m, rejoin, site
from tests.core.runners import ModelRunner

__all__ = ["m"]


def says(m: Machine, model: ModelRunner, unfit: str | None) -> None:
    report = events.RunnerReported(
        runner=model.id, seq=0, started=[], ended=[], returned=[], closed=[], unfit=unfit
    )
    m.happened(report)
    m.pump()


def record(m: Machine, host: str) -> dict[str, Any]:
    return dict(m.world.site["host"].get(host, {}))


def test_nothing_begins_there_until_the_agent_takes_it_back(m: Machine) -> None:
    model = join(m, "n1")
    (before,) = add(m)
    says(m, model, "the disk is full")
    assert record(m, "n1") == {"state": "suspected", "by": "agent", "why": "the disk is full"}
    (job,) = add(m)
    assert (m.state(before), m.state(job)) == (State.RUNNING, State.READY)
    says(m, model, None)
    assert m.state(job) is State.READY
    says(m, model, "")
    assert record(m, "n1") == {}
    assert m.state(job) is State.RUNNING


def test_an_agent_takes_back_its_own_word_only(m: Machine) -> None:
    model = join(m, "n1")
    site(m, ("host", "n1", {"state": "suspected"}))
    says(m, model, "the disk is full")
    says(m, model, "")
    assert record(m, "n1")["state"] == "suspected"


def test_what_an_agent_says_when_it_joins_replaces_what_was_said_before(m: Machine) -> None:
    model = join(m, "n1")
    says(m, model, "the disk is full")
    rejoin(m, model)
    assert record(m, "n1") == {}
    m.happened(msgspec.structs.replace(model.join(), node=FACTS, boot_id="boot", unfit="the disk is full"))
    m.pump()
    assert record(m, "n1")["state"] == "suspected"
