"""What the story of a waiting job says when its planned start moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rota.core.rows import EventRow
from rota.core.site.promised_starts import MOVED, PromisedStarts, moves_text, parse_moves
from rota.manager.views.rows import together
from rota.wire.views import StoryLine
from tests.core.machine import Machine
from tests.core.test_planned import add, planned_start


@pytest.fixture
def m() -> Machine:
    """One core that is taken for ten minutes, and time that passes only when a test says so."""
    machine = Machine(cpus=100)
    machine.with_runner()
    add(machine, request="core=1,walltime=10m")
    return machine


def overtake(m: Machine) -> None:
    """Somebody of better rank comes, for whom all others step back. No two of them ask for the same: of equal
    jobs only the first has a place in the plan."""
    add(m, request=f"core=1,walltime={300 + m.world.next_job}s", priority=10)


def lines(m: Machine, job: int) -> list[EventRow]:
    return [event for event in m.store.events(job) if event.kind == MOVED]


def test_the_first_move_of_a_promise_is_told_at_once(m: Machine) -> None:
    waits = add(m, request="core=1,walltime=10m")
    overtake(m)
    assert [event.at for event in lines(m, waits)] == [m.wall]


def test_many_moves_within_a_second_are_told_in_two_lines(m: Machine) -> None:
    waits = add(m, request="core=1,walltime=10m")
    began, first = m.wall, planned_start(m, waits)
    for _ in range(15):
        overtake(m)
        m.advance(0.01)
        m.pump()
    assert len(lines(m, waits)) == 1
    m.advance(1.0)
    m.pump()
    told, last = lines(m, waits)
    assert told.at == began
    assert last.at == pytest.approx(began + 0.14)
    newest = m.world.next_job - 1
    assert last.text == f"14 times, last: job {newest} goes first"
    assert first is not None
    after = planned_start(m, waits)
    assert after is not None
    assert after > first + 15 * 300


def test_there_is_at_most_one_line_a_second_for_each_job_however_long_it_goes_on(m: Machine) -> None:
    waiting = m.add(*"abc", request=("core=1,walltime=10m",)).added
    began = m.wall
    for _ in range(100):
        overtake(m)
        m.advance(0.05)
        m.pump()
    m.advance(1.0)
    m.pump()
    told = lines(m, waiting[0])
    assert len(told) <= m.wall - began + 1
    assert sum(parse_moves(event.text)[0] for event in told) == 100


def test_nothing_is_remembered_of_a_promise_that_is_moved_no_more(m: Machine) -> None:
    add(m, request="core=1,walltime=10m")
    overtake(m)
    overtake(m)
    assert m.world.use(PromisedStarts).noted
    assert m.world.use(PromisedStarts).pending
    for _ in range(2):
        m.advance(1.0)
    assert not m.world.use(PromisedStarts).noted
    assert not m.world.use(PromisedStarts).pending


def test_a_job_that_has_left_the_queue_is_told_nothing_more_of_its_promise(m: Machine) -> None:
    waits, other = m.add("a", "b", request=("core=1,walltime=10m",)).added
    overtake(m)
    overtake(m)
    m.do("hold", waits)
    m.do("remove", other, waiting=True)
    m.advance(1.0)
    m.pump()
    assert len(lines(m, waits)) == 1
    assert lines(m, other) == []
    assert not m.world.use(PromisedStarts).pending


def test_a_clock_that_is_set_back_keeps_nobody_from_being_told(m: Machine) -> None:
    waits = add(m, request="core=1,walltime=10m")
    overtake(m)
    overtake(m)
    m.wall -= 500.0
    m.advance(0.0)
    m.pump()
    assert len(lines(m, waits)) == 2


def test_after_a_crash_the_promise_is_right_and_the_next_move_is_told(m: Machine) -> None:
    waits = add(m, request="core=1,walltime=10m")
    overtake(m)
    overtake(m)
    before = planned_start(m, waits)
    m.crash()
    m.heal()
    assert planned_start(m, waits) == before
    told = len(lines(m, waits))
    overtake(m)
    assert len(lines(m, waits)) == told + 1


def test_moves_that_follow_each_other_are_one_line_of_the_story() -> None:
    began = datetime(2026, 1, 5, tzinfo=UTC)
    told = [
        (0, "added", "by ann"),
        (0, MOVED, "job 1 runs longer"),
        (0, MOVED, moves_text(12, "job 2 runs longer")),
        (0, MOVED, "job 3\nruns longer"),
        (0, "held", "by ann"),
        (0, MOVED, "job 4 runs longer"),
        (1, MOVED, "job 5 runs longer"),
    ]
    lines = [StoryLine(began + timedelta(seconds=n), *line) for n, line in enumerate(told)]
    assert together(lines) == [
        lines[0],
        StoryLine(lines[3].at, 0, MOVED, "14 times, last: job 3\nruns longer"),
        *lines[4:],
    ]
