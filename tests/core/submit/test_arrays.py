"""Arrays: one line that is many jobs, each with an index of its own."""

from __future__ import annotations

import pytest

from rota.core.jobs.element import Element
from rota.core.states import State
from tests.core.machine import Entry, Machine, spec


@pytest.fixture
def m() -> Machine:
    machine = Machine(cpus=800)
    machine.with_runner()
    return machine


def array(cmd: str, indexes: range, number: int = 0) -> list[Entry]:
    return [Entry(cmd, spec(), element=(number, index)) for index in indexes]


def elements(m: Machine, ids: list[int]) -> list[Element | None]:
    rows = m.load(ids)
    return [(m.world.jobs.get(id) or rows[id]).element for id in ids]


def test_an_array_is_named_by_its_first_job_and_keeps_its_indexes(m: Machine) -> None:
    m.add("before")
    added = m.answer(m.send_chunk(array("cmd", range(3, 6)))).added
    assert elements(m, added) == [Element(added[0], index) for index in (3, 4, 5)]
    m.crash()
    assert elements(m, added) == [Element(added[0], index) for index in (3, 4, 5)]


def test_two_arrays_of_one_submission_have_names_of_their_own(m: Machine) -> None:
    added = m.answer(m.send_chunk([*array("a", range(2)), *array("b", range(2), 1)])).added
    assert [each.array for each in elements(m, added) if each] == [added[0]] * 2 + [added[2]] * 2


def test_the_same_array_again_is_the_same_jobs_and_a_longer_one_adds_the_rest(m: Machine) -> None:
    first = m.answer(m.send_chunk(array("cmd", range(3)))).added
    again = m.answer(m.send_chunk(array("cmd", range(3))))
    assert (again.added, again.existing) == ([], first)
    m.end(first[0])
    m.end(first[1], exit_code=1)
    longer = m.answer(m.send_chunk(array("cmd", range(1, 5))))
    assert (longer.retried, longer.existing, len(longer.added)) == ([first[1]], [first[2]], 2)
    assert elements(m, longer.added) == [Element(longer.added[0], index) for index in (3, 4)]


def test_two_equal_arrays_of_one_input_are_different_jobs_and_the_same_ones_again(m: Machine) -> None:
    entries = [*array("cmd", range(2)), *array("cmd", range(2), 1)]
    first = m.answer(m.send_chunk(entries))
    assert len(first.added) == 4
    again = m.answer(m.send_chunk(entries))
    assert (again.added, again.existing) == ([], first.added)


def test_an_element_is_not_the_job_of_the_same_command(m: Machine) -> None:
    plain = m.add("cmd").added
    added = m.answer(m.send_chunk(array("cmd", range(1)))).added
    assert added != plain
    assert m.states(*plain, *added) == [State.RUNNING] * 2


def test_an_array_over_two_chunks_is_one_array(m: Machine) -> None:
    entries = array("cmd", range(4))
    m.send_chunk(entries[:2], submission="u", last=False)
    added = m.answer(m.send_chunk(entries[2:], submission="u")).added
    assert elements(m, added) == [Element(added[0], index) for index in range(4)]
