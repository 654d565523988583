"""An input that was edited and is added again: what came to nothing gives way, and dependents wait anew."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core.answers import Added
from rota.core.jobs.job import Condition
from rota.core.states import State
from rota.errors import BadInput
from rota.plan.size import Size
from tests.core.machine import Entry, Machine, spec

OK, ANY = Condition.OK, Condition.ANY
PLAIN = spec()
PART = spec(dep_groups=("parts",))


@pytest.fixture
def m() -> Machine:
    machine = Machine(cpus=800)
    machine.with_runner()
    return machine


def line(cmd: str, *lines: int, **fields: Any) -> Entry:
    """A command that waits for these lines, counted from 0."""
    return Entry(cmd, spec(**fields), tuple((n, OK, True) for n in lines))


def submit(m: Machine, *entries: Entry, source: str = "/f", **flags: Any) -> Added:
    answer = m.answer(m.send_chunk(list(entries), input=source, **flags))
    assert isinstance(answer, Added)
    return answer


def replaced_by(m: Machine, job: int) -> int | None:
    (row,) = m.store.jobs([job])
    return row.replaced_by


def fail(m: Machine, *jobs: int) -> None:
    for job in jobs:
        m.end(job, exit_code=1)


@pytest.mark.parametrize("crash", [False, True])
def test_a_line_with_a_typo_is_corrected_and_its_dependent_runs(m: Machine, crash: bool) -> None:
    submit(m, line("typo"), line("b"), line("c", 0, 1), line("d", 2))
    m.end(2)
    fail(m, 1)
    assert m.states(3, 4) == [State.BLOCKED] * 2
    if crash:
        m.crash()
        m.heal()
    answer = submit(m, line("right"), line("b"), line("c", 0, 1), line("d", 2))
    assert (answer.added, answer.existing, answer.retried) == ([5], [2, 3, 4], [])
    assert (answer.replaced, answer.changed, answer.kept) == ([1], [3], [])
    assert m.states(3, 4) == [State.DEPENDENT] * 2
    assert replaced_by(m, 1) == 5
    if crash:
        m.crash()
        m.heal()
    assert [each.parent for each in m.world.jobs[3].after] == [5, 2]
    m.run_out()
    assert m.states(1, 2, 3, 4, 5) == [State.FAILED, *[State.COMPLETE] * 4]


def test_a_corrected_member_of_a_group_frees_those_who_wait_for_the_group(m: Machine) -> None:
    merge = Entry("merge", PLAIN, (("parts", OK, False),))
    submit(m, Entry("typo", PART), Entry("two", PART), merge)
    m.end(2)
    fail(m, 1)
    answer = submit(m, Entry("one", PART), Entry("two", PART), merge)
    assert (answer.added, answer.replaced, answer.changed) == ([4], [1], [])
    assert m.state(3) is State.DEPENDENT
    m.crash()
    m.heal()
    m.run_out()
    assert m.states(1, 3) == [State.FAILED, State.COMPLETE]


def test_only_what_came_to_nothing_is_replaced_and_the_rest_is_listed(m: Machine) -> None:
    lines = [line(f"cmd {n}") for n in range(5)]
    submit(m, *lines, line("blocked", 0), line("behind", 5), line("waits", 3))
    fail(m, 1)
    m.do("kill", 2)
    m.end(3)
    assert m.states(1, 2, 3) == [State.FAILED, State.CANCELLED, State.COMPLETE]
    answer = submit(m, line("other"))
    assert answer.replaced == [1, 2, 6, 7]
    assert answer.kept == [3, 4, 5, 8]
    assert m.states(6, 7) == [State.CANCELLED] * 2
    assert [replaced_by(m, id) for id in (1, 6)] == [0, 0]
    again = submit(m, *lines[:2])
    assert again.added == [10, 11], "who was replaced is not opened again"


@pytest.mark.parametrize("source", ["", "/other"])
def test_nothing_is_replaced_without_the_same_input(m: Machine, source: str) -> None:
    submit(m, line("typo"), line("c", 0))
    fail(m, 1)
    answer = submit(m, line("right"), line("c", 0), source=source)
    assert (answer.replaced, answer.kept, answer.changed) == ([], [], [2])
    assert m.do("retry", 1).changed == [1]


def test_what_stayed_because_it_ran_gives_way_once_it_has_failed(m: Machine) -> None:
    merge = Entry("merge", PLAIN, (("parts", OK, False),))
    submit(m, Entry("typo", PART), Entry("done", PART), merge)
    m.end(2)
    edited = [Entry("right", PART), merge]
    assert submit(m, *edited).kept == [1, 2]
    assert submit(m, *edited).kept == [1], "what is complete is told once, what goes on each time"
    fail(m, 1)
    m.end(4)
    assert m.state(3) is State.BLOCKED
    m.crash()
    m.heal()
    answer = submit(m, *edited)
    assert (answer.replaced, answer.kept) == ([1], [])
    m.run_out()
    assert m.states(1, 2, 3) == [State.FAILED, State.COMPLETE, State.COMPLETE]


def test_a_dependent_that_is_added_again_cannot_wait_for_itself_through_a_group() -> None:
    m = Machine(cpus=800)
    submit(m, line("first"), line("member", 0, dep_groups=("parts",)))
    behind = Entry("behind", PLAIN, (("parts", OK, False),))
    with pytest.raises(BadInput, match="line 1 → @parts → job 2 → line 2 → line 1"):
        submit(m, behind, line("first", 0), source="/other")
    assert m.world.jobs[1].after == ()


def test_only_what_the_input_still_had_or_kept_is_replaced(m: Machine) -> None:
    submit(m, line("a"), line("b"))
    fail(m, 2)
    assert submit(m, line("a"), line("c")).replaced == [2]
    fail(m, 1, 3)
    assert m.do("retry", 2).changed == []
    assert submit(m, line("a")).replaced == [3]


def test_a_dependent_takes_new_settings_unless_it_runs_or_is_complete(m: Machine) -> None:
    big = Size(cpus=200, mem=2 << 30, disk=0, time_s=3600.0)
    submit(m, line("a"), line("waits", 0), line("runs"), line("fails"), line("done"))
    after = (((0, ANY, True)),)
    m.end(5)
    fail(m, 4)
    entries = [line("a"), *(Entry(cmd, spec(size=big), after) for cmd in ("waits", "runs", "fails", "done"))]
    answer = submit(m, *entries)
    assert (answer.changed, answer.retried, answer.existing) == ([2, 4], [4], [1, 2, 3, 5])
    runs, done = answer.warnings
    assert "line 3: job 3 is running and keeps its own after, size" in runs
    assert "line 5: job 5 is complete and is skipped with its own after, size" in done
    assert [m.world.jobs[id].spec.size == big for id in (2, 3, 4)] == [True, False, True]
    assert m.states(2, 4) == [State.DEPENDENT] * 2
    m.crash()
    m.heal()
    assert [m.world.jobs[id].spec.size == big for id in (2, 3, 4)] == [True, False, True]
    fail(m, 1)
    m.run_out()
    assert m.states(2, 3, 4) == [State.COMPLETE] * 3
    assert submit(m, *entries).changed == []


def test_the_same_input_again_changes_nothing(m: Machine) -> None:
    entries = [
        Entry("a", PART), Entry("b", spec(live=False), (("parts", OK, False),)), line("c", 0, 1),
        Entry("d", PLAIN, (("parts", ANY, False), (0, OK, True))),
    ]  # fmt: skip
    submit(m, *entries)
    submit(m, Entry("e", PART), source="/other")
    for _each in range(2):
        answer = submit(m, *entries)
        assert (answer.replaced, answer.changed, answer.kept, answer.warnings) == ([], [], [], [])
        m.crash()
        m.heal()


def test_whom_somebody_outside_waits_for_by_its_id_stays(m: Machine) -> None:
    submit(m, line("a"), line("b", 0))
    outside = m.add("report", after=((2, OK, False),)).added[0]
    fail(m, 1)
    answer = submit(m, line("c"))
    assert (answer.replaced, answer.kept) == ([], [1, 2])
    m.do("retry", 1)
    m.run_out()
    assert m.state(outside) is State.COMPLETE


def test_a_dependent_may_change_its_groups(m: Machine) -> None:
    watcher = m.add("watch", after=(("late", OK, False),), allow_empty_group=True).added[0]
    submit(m, line("a"), Entry("b", spec(dep_groups=("early",)), ((0, OK, True),)))
    assert m.state(watcher) is State.DEPENDENT
    answer = submit(m, line("a"), Entry("b", spec(dep_groups=("late",)), ((0, OK, True),)))
    assert answer.changed == [3]
    assert not m.world.groups["early"].open
    m.crash()
    m.heal()
    m.end(2)
    assert m.state(watcher) is State.DEPENDENT
    m.run_out()
    assert m.state(watcher) is State.COMPLETE


def test_a_question_lists_what_would_be_replaced_and_changed(m: Machine) -> None:
    submit(m, line("typo"), line("c", 0))
    fail(m, 1)
    asked = submit(m, line("right"), line("c", 0), check=True)
    assert (asked.added, asked.replaced, asked.changed) == ([3], [1], [2])
    assert m.state(2) is State.BLOCKED
    assert submit(m, line("right"), line("c", 0)).replaced == [1]


def test_an_input_in_chunks_is_one_input(m: Machine) -> None:
    submit(m, line("typo"), line("b"), line("c", 0, 1))
    m.end(2)
    fail(m, 1)
    m.send_chunk([line("right")], submission="u", last=False)
    answer = submit(m, line("b"), line("c", 0, 1), submission="u")
    assert (answer.added, answer.replaced, answer.changed) == ([4], [1], [3])
    m.run_out()
    assert m.state(3) is State.COMPLETE


def test_one_of_equal_lines_is_removed(m: Machine) -> None:
    submit(m, *[line("a")] * 3)
    fail(m, 1, 2, 3)
    answer = submit(m, *[line("a")] * 2)
    assert (answer.retried, answer.replaced) == ([1, 2], [3])


def test_new_lines_take_the_places_between_those_that_stayed(m: Machine) -> None:
    submit(m, *map(line, ("a", "x", "y", "b", "z", "c")))
    fail(m, 2, 3, 5)
    answer = submit(m, *map(line, ("first", "a", "X", "Y", "b", "c")))
    assert answer.replaced == [2, 3, 5]
    _first, x, y = answer.added
    assert [replaced_by(m, id) for id in (2, 3, 5)] == [x, y, 0]


def test_a_dependency_may_be_turned_round_in_the_input(m: Machine) -> None:
    submit(m, line("a"), line("b", 0), line("c", 1))
    m.do("hold", 2, 3)
    fail(m, 1)
    answer = submit(m, line("c"), line("b", 0), line("a", 1))
    assert (answer.changed, answer.retried) == ([1, 2, 3], [1])
    m.do("release", 2, 3)
    m.run_out()
    assert m.states(1, 2, 3) == [State.COMPLETE] * 3
