"""What becomes of a job after an attempt, by the rules that the engine and the simulator share."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core.jobs.dependency_rules import verdict_on
from rota.core.jobs.fate import Fate, fate
from rota.core.jobs.job import Condition
from rota.core.states import TERMINAL, State


def become(code: str = "", **facts: Any) -> Fate:
    usual = {"exit_code": 0, "ran_s": 100.0, "idempotent": False, "done_at_walltime": False}
    return fate(code=code, **(usual | facts))


@pytest.mark.parametrize(
    ("code", "facts", "expected"),
    [
        ("", {}, Fate.COMPLETE),
        ("exit", {"exit_code": 1}, Fate.FAILED),
        ("signal", {"exit_code": None}, Fate.FAILED),
        # exit 99
        ("exit", {"exit_code": 99, "idempotent": True}, Fate.AGAIN),
        ("exit", {"exit_code": 99, "idempotent": True, "ran_s": 60.0}, Fate.AGAIN),
        ("exit", {"exit_code": 99, "idempotent": True, "ran_s": 59.9}, Fate.FAILED),
        ("exit", {"exit_code": 99, "idempotent": True, "ran_s": None}, Fate.FAILED),
        ("exit", {"exit_code": 99}, Fate.FAILED),
        ("exit", {"exit_code": 98, "idempotent": True}, Fate.FAILED),
        ("exit", {"exit_code": 99, "idempotent": True, "killed": True}, Fate.CANCELLED),
        ("oom", {"exit_code": 99, "idempotent": True}, Fate.FAILED),
        # the walltime
        ("walltime", {"exit_code": None}, Fate.FAILED),
        ("walltime", {"exit_code": None, "done_at_walltime": True}, Fate.COMPLETE),
        ("walltime", {"exit_code": None, "done_at_walltime": True, "vacated": True}, Fate.COMPLETE),
        ("walltime", {"exit_code": None, "done_at_walltime": True, "killed": True}, Fate.CANCELLED),
        # told to make room, or to end with its container
        ("kill_requested", {"vacated": True}, Fate.VACATED),
        ("kill_requested", {"vacated": True, "idempotent": True}, Fate.AGAIN),
        ("exit", {"exit_code": 1, "vacated": True}, Fate.VACATED),
        ("", {"vacated": True, "idempotent": True}, Fate.COMPLETE),
        ("", {"vacated": True, "idempotent": True, "checkpoints": True}, Fate.AGAIN),
        ("", {"vacated": True, "checkpoints": True}, Fate.COMPLETE),
        # killed
        ("kill_requested", {}, Fate.CANCELLED),
        ("exit", {"exit_code": 1, "killed": True}, Fate.CANCELLED),
        ("kill_requested", {"vacated": True, "idempotent": True, "killed": True}, Fate.CANCELLED),
        ("", {"killed": True}, Fate.COMPLETE),
    ],
)
def test_an_end_decides_what_becomes_of_a_job(code: str, facts: dict[str, Any], expected: Fate) -> None:
    assert become(code, **facts) is expected


@pytest.mark.parametrize("state", State)
def test_the_state_of_a_parent_decides_about_its_dependents(state: State) -> None:
    found = {condition: verdict_on(condition, state) for condition in Condition}
    if state not in TERMINAL:
        assert set(found.values()) == {(False, state is State.BLOCKED)}
    else:
        good = state is State.COMPLETE
        assert found == {
            Condition.OK: (good, not good),
            Condition.ANY: (True, False),
            Condition.NOT_OK: (not good, good),
        }
