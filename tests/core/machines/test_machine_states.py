"""The table of machines: which combinations there are, and which machines get jobs."""

from __future__ import annotations

from itertools import product

from rota.core.machines.machine_states import (
    FURTHEST,
    GONE,
    NEXT_USAGE,
    USAGES,
    WORDS,
    Condition,
    MachineState,
    NodeState,
    Usage,
    as_mermaid,
    machine_state,
    schedulable,
    word,
)


def test_only_an_automated_machine_that_is_alive_gets_jobs() -> None:
    found = {pair for pair in product(Condition, NodeState) if schedulable(*pair)}
    assert found == {(Condition.AUTOMATED, NodeState.ALIVE)}


def test_broken_and_removed_machines_are_always_idle() -> None:
    for condition in (Condition.BROKEN, Condition.REMOVED):
        assert {machine_state(condition, usage, NodeState.ALIVE).usage for usage in Usage} == {Usage.IDLE}


def test_a_manual_machine_is_never_pending() -> None:
    assert machine_state(Condition.MANUAL, Usage.PENDING, NodeState.ALIVE).usage == Usage.IDLE


def test_every_combination_of_the_table_is_kept_and_every_other_is_idle() -> None:
    for condition, usage, state in product(Condition, Usage, NodeState):
        kept = usage if usage in USAGES[condition] else Usage.IDLE
        assert machine_state(condition, usage, state) == MachineState(condition, kept, state)


def test_every_combination_has_a_word_that_is_listed() -> None:
    for condition, usage, state in product(Condition, Usage, NodeState):
        assert word(machine_state(condition, usage, state)) in WORDS
    assert word(GONE) == "gone"


def test_every_usage_can_be_reached_and_left() -> None:
    assert NEXT_USAGE.keys() == set(Usage)
    assert set().union(*NEXT_USAGE.values()) == set(Usage)
    assert FURTHEST[-1] is Usage.RUNNING


def test_the_diagram_shows_every_usage_of_every_condition() -> None:
    shown = as_mermaid()
    for condition, usages in USAGES.items():
        for usage in usages:
            assert f'state "{usage}" as {condition}_{usage}' in shown
