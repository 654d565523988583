"""The table of states: complete, and the only way from one to another."""

from __future__ import annotations

import inspect
import re
from itertools import product

import pytest

from rota.core import states
from rota.core.states import (
    BY_LABEL,
    HOLDABLE,
    INITIAL,
    LEASED,
    LIVE,
    RETRYABLE,
    SETTLED,
    TERMINAL,
    TRANSITIONS,
    WAITING,
    State,
    as_mermaid,
    check_transition,
)
from rota.core.world import move
from rota.errors import Bug, IllegalTransition
from tests.core.machine import Machine

S = State

#: Every state that the design names.
DESIGNED = {
    "dependent", "blocked", "held", "ready", "scheduled", "starting", "running", "suspended", "finishing",
    "lost", "delayed", "complete", "failed", "cancelled",
}  # fmt: skip


def test_every_state_of_the_design_is_there_and_no_other() -> None:
    assert set(BY_LABEL) == DESIGNED
    assert set(TRANSITIONS) == set(State)


def test_the_stored_numbers_and_their_labels_never_change() -> None:
    assert {state.label: int(state) for state in State} == {
        "dependent": 1, "blocked": 2, "held": 3, "ready": 4, "scheduled": 5, "starting": 6, "running": 7,
        "suspended": 8, "finishing": 9, "lost": 10, "delayed": 11, "complete": 12, "failed": 13,
        "cancelled": 14,
    }  # fmt: skip


def test_the_named_subsets_divide_the_states() -> None:
    assert set(State) == TERMINAL | LIVE
    assert not TERMINAL & LIVE
    assert LEASED | WAITING == LIVE
    assert not LEASED & WAITING
    assert RETRYABLE < TERMINAL < SETTLED


def test_what_can_be_held_killed_and_retried_is_in_the_table() -> None:
    assert {S.DEPENDENT, S.BLOCKED, S.READY, S.DELAYED} == HOLDABLE
    assert all(S.HELD in TRANSITIONS[state] for state in HOLDABLE)
    assert all(S.CANCELLED in TRANSITIONS[state] for state in LIVE)
    assert all(S.READY in TRANSITIONS[state] for state in RETRYABLE)
    assert {S.FAILED, S.CANCELLED} == RETRYABLE


def test_silence_can_come_in_every_leased_state_and_end_in_every_way() -> None:
    silent = LEASED - {S.LOST}
    assert all(S.LOST in TRANSITIONS[state] for state in silent)
    assert silent <= TRANSITIONS[S.LOST]
    assert TRANSITIONS[S.LOST] >= TERMINAL


def test_a_job_runs_only_by_way_of_a_lease() -> None:
    into_lease = {old for old in State for new in TRANSITIONS[old] & LEASED if old not in LEASED}
    assert into_lease == {S.READY}
    assert TRANSITIONS[S.READY] & LEASED == {S.SCHEDULED}


def test_nothing_stays_where_it_is_and_everything_can_be_reached() -> None:
    assert all(state not in TRANSITIONS[state] for state in State)
    reached = set(INITIAL)
    while more := {new for old in reached for new in TRANSITIONS[old]} - reached:
        reached |= more
    assert reached == set(State)


@pytest.mark.parametrize(("old", "new"), list(product(State, State)))
def test_the_table_is_what_check_transition_enforces(old: State, new: State) -> None:
    if new in TRANSITIONS[old]:
        check_transition(old, new)
    else:
        with pytest.raises(IllegalTransition, match=f"{old.label} → {new.label}"):
            check_transition(old, new)


def test_an_illegal_transition_is_our_bug_and_carries_the_story() -> None:
    m = Machine()
    (id,) = m.add("a").added
    job = m.world.jobs[id]
    with pytest.raises(IllegalTransition, match="ready → running is not allowed; story: job 1 attempt 0") as error:
        move(m.world, job, S.RUNNING)
    assert isinstance(error.value, Bug)
    assert job.state is S.READY
    m.check()


def test_every_state_the_engine_moves_to_is_a_target_in_the_table() -> None:
    from rota.core import engine, world
    from rota.core.attempts import attempt, grants
    from rota.core.jobs import actions, dependencies
    from rota.core.machines import runners
    from rota.core.site import plan_news

    targets = {new for news in TRANSITIONS.values() for new in news}
    movers = (actions, attempt, dependencies, engine, grants, plan_news, runners, world)
    source = "".join(inspect.getsource(module) for module in movers)
    named = {State[name] for name in re.findall(r"move\([^)]*State\.(\w+)\)", source)}
    assert named
    assert named <= targets


def test_the_diagram_shows_every_transition() -> None:
    shown = set(re.findall(r"^    (\w+) --> (\w+)$", as_mermaid(), re.MULTILINE))
    assert shown == {(old.label, new.label) for old in State for new in TRANSITIONS[old]}
    assert inspect.getdoc(states)
