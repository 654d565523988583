"""`--rerun`: a new job takes the place of the one that its key named, and nothing runs beside itself."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core.answers import Added
from rota.core.jobs.job import Condition
from rota.core.states import State
from rota.errors import BadInput
from tests.core.machine import Entry, Machine, spec

OK, ANY = Condition.OK, Condition.ANY
PART = spec(dep_groups=("parts",))
PLAIN = spec()
WAITS = (("parts", OK, False),)


@pytest.fixture
def m() -> Machine:
    machine = Machine(cpus=800)
    machine.with_runner()
    return machine


def pipeline() -> list[Entry]:
    """Two parts and what merges them."""
    return [Entry("part 1", PART), Entry("part 2", PART), Entry("merge", PLAIN, WAITS)]


def submit(m: Machine, entries: list[Entry], **flags: Any) -> Added:
    answer = m.answer(m.send_chunk(entries, **flags))
    assert isinstance(answer, Added)
    return answer


def attempts(m: Machine) -> dict[str, int]:
    """How often each command has run."""
    found: dict[str, int] = {}
    for id in range(1, m.world.next_job):
        for row in m.store.jobs([id]):
            found[str(row.cmd)] = found.get(str(row.cmd), 0) + row.attempt
    return found


def replaced_by(m: Machine, job: int) -> int | None:
    (row,) = m.store.jobs([job])
    return row.replaced_by


@pytest.mark.parametrize("crash", [False, True])
def test_each_job_of_a_rerun_runs_exactly_once_per_rerun(m: Machine, crash: bool) -> None:
    for times in range(1, 5):
        submit(m, pipeline(), rerun=True)
        m.run_out()
        assert attempts(m) == {"part 1": times, "part 2": times, "merge": times}
        if crash:
            m.crash()
            m.heal()
    assert [replaced_by(m, id) for id in (1, 2, 3, 10, 11, 12)] == [4, 5, 6, None, None, None]
    assert m.world.groups["parts"].complete == 2


def test_a_job_that_has_not_ended_is_existing_and_never_runs_beside_itself(m: Machine) -> None:
    first = submit(m, pipeline(), rerun=True)
    assert sorted(m.running()) == [1, 2]
    again = submit(m, pipeline(), rerun=True)
    assert (again.added, again.existing, again.replaced) == ([], first.added, [])
    m.end(1)
    again = submit(m, pipeline(), rerun=True)
    assert (again.added, again.existing, again.replaced) == ([4], [2, 3], [1])
    m.end(2)
    assert m.state(3) is State.DEPENDENT, "its group has a new member that runs"
    m.run_out()
    assert attempts(m) == {"part 1": 2, "part 2": 1, "merge": 1}


def test_who_is_outside_the_input_re_opens_once(m: Machine) -> None:
    report = m.add("report", after=WAITS, allow_empty_group=True).added[0]
    submit(m, pipeline())
    m.run_out()
    submit(m, pipeline(), rerun=True)
    m.run_out()
    assert attempts(m) == {"part 1": 2, "part 2": 2, "merge": 2, "report": 2}
    assert m.store.jobs([report])[0].attempt == 2


def test_dependents_in_the_same_input_are_replaced_with_the_one_line_that_reruns(m: Machine) -> None:
    submit(m, [*pipeline(), Entry("publish", PLAIN, ((2, OK, True),)), Entry("other", PLAIN)])
    m.run_out()
    again = submit(
        m, [*pipeline(), Entry("publish", PLAIN, ((2, OK, True),)), Entry("other", PLAIN)], rerun=frozenset({0})
    )
    assert (again.added, again.existing, again.replaced) == ([6, 7, 8], [2, 5], [1, 3, 4])
    m.run_out()
    assert attempts(m) == {"part 1": 2, "part 2": 1, "merge": 2, "publish": 2, "other": 1}


def test_a_failed_member_that_is_replaced_blocks_nobody(m: Machine) -> None:
    report = m.add("report", after=WAITS, allow_empty_group=True).added[0]
    submit(m, [Entry("part 1", PART)])
    m.end(2, exit_code=1)
    assert m.state(report) is State.BLOCKED
    assert submit(m, [Entry("part 1", PART)], rerun=True).replaced == [2]
    assert m.state(report) is State.DEPENDENT
    m.crash()
    m.heal()
    assert m.state(report) is State.DEPENDENT
    m.run_out()
    assert m.states(2, report) == [State.FAILED, State.COMPLETE]


def test_who_waits_for_a_job_by_its_id_waits_for_the_one_that_took_its_place(m: Machine) -> None:
    submit(m, [Entry("a", PLAIN)])
    behind = m.add("b", after=((1, OK, False),)).added[0]
    killed = m.add("c", after=((1, OK, False),)).added[0]
    m.end(1, exit_code=1)
    m.do("kill", killed)
    assert m.state(behind) is State.BLOCKED
    (new,) = submit(m, [Entry("a", PLAIN)], rerun=True).added
    assert m.state(behind) is State.DEPENDENT
    assert [each.parent for each in m.world.jobs[behind].after] == [new]
    m.do("retry", killed)
    assert m.state(killed) is State.DEPENDENT
    m.crash()
    m.heal()
    assert m.states(behind, killed) == [State.DEPENDENT] * 2
    m.run_out()
    assert m.states(1, new, behind, killed) == [State.FAILED, *[State.COMPLETE] * 3]


def test_a_replaced_job_is_neither_retried_nor_changed_and_can_be_removed(m: Machine) -> None:
    submit(m, pipeline())
    m.end(1, exit_code=1)
    m.end(2)
    submit(m, pipeline(), rerun=True)
    assert m.do("retry", 1).unchanged == [1]
    m.run_out()
    assert m.world.groups["parts"].complete == 2
    assert m.do("remove", 1, 2).changed == [1, 2]
    assert m.world.groups["parts"].complete == 2
    m.crash()
    m.heal()
    assert m.world.groups["parts"].complete == 2


def test_replacement_forms_chains_and_a_removed_successor_frees_the_key(m: Machine) -> None:
    for _each in range(3):
        submit(m, [Entry("a", PLAIN)], rerun=True)
        m.run_out()
    assert [replaced_by(m, id) for id in (1, 2, 3)] == [2, 3, None]
    assert submit(m, [Entry("a", PLAIN)]).existing == [3]
    m.do("remove", 3)
    assert submit(m, [Entry("a", PLAIN)]).added == [4]


def test_copies_of_an_older_version_are_all_replaced(m: Machine) -> None:
    for _each in range(3):
        submit(m, pipeline(), fresh=True)
        m.run_out()
    before = attempts(m)["merge"]
    assert submit(m, pipeline(), rerun=True).replaced == list(range(1, 10))
    m.run_out()
    assert attempts(m)["merge"] == before + 1


@pytest.mark.parametrize("settled", [False, True])
def test_two_uploads_of_the_same_rerun_on_their_way_at_once(m: Machine, settled: bool) -> None:
    submit(m, pipeline())
    m.run_out()
    m.send_chunk(pipeline()[:1], submission="slow", last=False, rerun=True)
    quick = submit(m, pipeline(), rerun=True)
    if settled:
        m.run_out()
    slow = submit(m, pipeline()[1:], submission="slow", rerun=True)
    assert quick.replaced == [1, 2, 3]
    assert quick.added[0] in slow.existing
    m.run_out()
    assert attempts(m)["part 1"] == 2


def test_equal_lines_are_replaced_each_by_its_own(m: Machine) -> None:
    submit(m, [Entry("a", PLAIN)] * 3)
    m.run_out()
    again = submit(m, [Entry("a", PLAIN)] * 2, rerun=True)
    assert (again.added, again.replaced) == ([4, 5], [1, 2])
    assert replaced_by(m, 3) is None


def test_the_direction_of_a_dependency_may_be_turned_round(m: Machine) -> None:
    """What is replaced takes part in no cycle."""
    one, other = spec(dep_groups=("one",)), spec(dep_groups=("other",))
    submit(m, [Entry("a", one), Entry("b", other, (("one", OK, False),))])
    m.run_out()
    again = submit(m, [Entry("b", other), Entry("a", one, (("other", OK, False),))], rerun=True)
    assert again.replaced == [1, 2]
    m.run_out()
    assert attempts(m) == {"a": 2, "b": 2}
    with pytest.raises(BadInput, match="cycle"):
        submit(m, [Entry("c", other, (("one", OK, False),))])


def test_a_question_says_what_would_be_replaced_and_does_nothing(m: Machine) -> None:
    submit(m, pipeline())
    m.run_out()
    asked = submit(m, pipeline(), rerun=True, check=True)
    assert (asked.added, asked.replaced) == ([4, 5, 6], [1, 2, 3])
    assert submit(m, pipeline()).existing == [1, 2, 3]


def test_a_refused_add_uses_up_no_ids(m: Machine) -> None:
    """Neither at once nor after chunks that were written already."""
    nobody = ((99, OK, False),)
    for settled in (False, True):
        m.send_chunk([Entry("a", PLAIN)], submission="u", last=False)
        if settled:
            m.pump()
        m.send_chunk([Entry("b", PLAIN, nobody)], submission="u")
        m.pump()
        assert m.world.next_job == 1
    m.send_chunk([Entry("c", PLAIN, nobody)])
    assert submit(m, [Entry("a", PLAIN), Entry("d", PLAIN)]).added == [1, 2]
    m.crash()
    m.heal()
    assert [row.cmd for row in m.store.jobs([1, 2])] == ["a", "d"]
    assert submit(m, [Entry("e", PLAIN)]).added == [3]
