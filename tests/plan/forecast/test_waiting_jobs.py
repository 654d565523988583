"""Waiting jobs begin in the order of their turn, as soon as there is room: by lines, as if each were looked at."""

from __future__ import annotations

from heapq import heapify, heapreplace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.plan.forecast.free_capacity import CapacityPiece, FreeCapacity
from rota.plan.forecast.pace import Pace
from rota.plan.forecast.waiting_jobs import Commitment, EqualJobs, Forecast

NOW = 1000.0

moments = st.lists(st.integers(0, 60).map(float), min_size=1, max_size=12).map(sorted)
lengths = st.sampled_from([1.0, 3.0, 7.5, 20.0])


def one_by_one(free: list[float], length: float, number: int) -> tuple[list[float], list[float]]:
    """Starts, and when the places are free afterwards."""
    heap, starts = free[:], []
    heapify(heap)
    for _ in range(number):
        starts.append(heap[0])
        heapreplace(heap, heap[0] + length)
    return starts, sorted(heap)


def starts(found: Forecast, *lines: EqualJobs, firm: tuple[Commitment, ...] = ()) -> list[list[float]]:
    return [
        [stretch.pace.start(place) for stretch in stretches for place in range(stretch.pace.number)]
        for stretches in found.run(firm, lines)
    ]


def line(
    number: int = 1, *, first: int = 1, width: int = 1, length: float | None = 10.0, **more: object
) -> EqualJobs:
    jobs = range(first, first + number)
    return EqualJobs(jobs, (0, first), width, length, **more)  # type: ignore[arg-type]


def room(*free: float, width: int = 1) -> FreeCapacity:
    return FreeCapacity([CapacityPiece(NOW + each, width) for each in free])


@given(moments, lengths, st.integers(1, 60))
def test_a_pace_is_what_one_job_after_the_other_would_do(free: list[float], length: float, number: int) -> None:
    pace = Pace(free, length, number)
    expected, later = one_by_one(free, length, number)
    assert [pace.start(place) for place in range(number)] == pytest.approx(expected)
    assert pace.free_after(free, number) == pytest.approx(later)


@given(moments, lengths, st.integers(1, 60), st.integers(0, 100).map(float))
def test_a_pace_tells_how_many_begin_before_a_moment(
    free: list[float], length: float, number: int, moment: float
) -> None:
    expected, _later = one_by_one(free, length, number)
    assert Pace(free, length, number).begun_before(moment) == sum(start < moment for start in expected)


def test_a_million_jobs_are_as_easy_as_ten() -> None:
    assert Pace([0.0, 0.0], 1.0, 1_000_000).start(999_999) == pytest.approx(499_999.0)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 8)), min_size=1, max_size=8), st.integers(1, 6))
def test_room_is_neither_made_nor_lost(parts: list[tuple[int, int]], width: int) -> None:
    pieces = [CapacityPiece(float(free), amount) for free, amount in parts]
    found = FreeCapacity(pieces)
    taken = found.take(width, 3)
    assert all(place.amount == width for place in taken)
    found.give(taken)
    assert sum(place.amount for place in found.take(1, 1000)) == sum(amount for _free, amount in parts)


def test_a_line_takes_the_places_that_are_free_first() -> None:
    assert starts(Forecast(NOW, room(0.0, 5.0), {}), line(4)) == [[NOW, NOW + 5, NOW + 10, NOW + 15]]


def test_whoever_is_first_in_rank_begins_first_and_short_jobs_fill_the_gaps() -> None:
    found = Forecast(NOW, room(0.0, 30.0), {})
    wide, short, long = line(width=2), line(first=2, length=20.0), line(first=3, length=40.0)
    assert starts(found, long, wide, short) == [[NOW + 40], [NOW + 30], [NOW]]


def test_a_line_that_may_not_begin_yet_takes_nothing_from_those_that_may() -> None:
    found = Forecast(NOW, room(0.0), {})
    night = line(hours=lambda moment: (max(moment, NOW + 100), inf))
    before, after = [NOW + 10.0 * n for n in range(10)], [NOW + 110 + 10.0 * n for n in range(40)]
    assert starts(found, night, line(50, first=2)) == [[NOW + 100], [*before, *after]]


def test_hours_that_end_before_the_line_does_go_on_the_next_day() -> None:
    def hours(moment: float) -> tuple[float, float]:
        day = (moment - NOW) // 100
        opens, closes = NOW + 100 * day, NOW + 100 * day + 25
        return (max(moment, opens), closes) if moment < closes else (opens + 100, closes + 100)

    assert starts(Forecast(NOW, room(0.0), {}), line(5, hours=hours)) == [
        [NOW, NOW + 10, NOW + 20, NOW + 100, NOW + 110]
    ]


def test_a_limit_is_kept_and_shared() -> None:
    limits = {"blast": room(0.0)}
    found = Forecast(NOW, room(0.0, 0.0, 0.0), limits)
    one, other, free = (line(first=n, **more) for n, more in ((1, _blast), (2, _blast), (3, {})))
    assert starts(found, one, other, free) == [[NOW], [NOW + 10], [NOW]]


_blast: dict[str, object] = {"uses": (("blast", 1),)}


def test_behind_a_job_of_unknown_length_nothing_is_known_unless_there_is_other_room() -> None:
    assert starts(Forecast(NOW, room(inf), {}), line(2)) == [[inf, inf]]
    assert starts(Forecast(NOW, room(0.0, inf), {}), line(2)) == [[NOW, NOW + 10]]
    assert starts(Forecast(NOW, room(0.0), {}), line(2, length=None)) == [[NOW, inf]]


def planned(job: int, start: float, mask: int, **more: object) -> Commitment:
    fields = {"span": 100.0, "length": 10.0, "key": (0, job), **more}
    return Commitment(job, NOW + start, mask=mask, **fields)  # type: ignore[arg-type]


def masked(*free: float) -> FreeCapacity:
    return FreeCapacity([CapacityPiece(NOW + each, 1, 1 << bit) for bit, each in enumerate(free)])


def test_planned_jobs_begin_as_soon_as_those_before_them_on_their_resources_are_expected_to_end() -> None:
    found = Forecast(NOW, masked(5.0, 0.0), {})
    found.run([planned(1, 100, 0b01), planned(2, 200, 0b11), planned(3, 300, 0b10)], [])
    assert found.commitments == {1: (NOW + 5, 10.0), 2: (NOW + 15, 10.0), 3: (NOW + 25, 10.0)}


def test_a_reservation_and_what_a_rule_decided_stay_where_they_are_planned() -> None:
    found = Forecast(NOW, masked(5.0), {})
    found.run([planned(1, 100, 0b1, bound=True), planned(2, 200, 0b1, fixed=True)], [])
    assert found.commitments == {1: (NOW + 100, 10.0), 2: (NOW + 200, 10.0)}


def test_jobs_behind_the_first_of_their_kind_go_before_those_of_worse_rank() -> None:
    found = Forecast(NOW, masked(0.0), {})
    behind = line(3, first=1, since=NOW)
    assert starts(found, behind, firm=(planned(0, 0, 0b1), planned(9, 100, 0b1))) == [
        [NOW + 10, NOW + 20, NOW + 30]
    ]
    assert found.commitments[9] == (NOW + 40, 10.0)


def test_a_gap_that_is_found_late_brings_no_job_before_the_one_that_is_ahead_of_it() -> None:
    found = Forecast(NOW, FreeCapacity([CapacityPiece(NOW, 3), CapacityPiece(NOW + 4, 3)]), {})
    later = line(1, first=1, length=1.0, after=NOW + 4)
    wide = line(2, first=2, width=2, length=1.0)
    behind = line(5, first=4, length=1.0, after=NOW + 2)
    assert starts(found, later, wide, behind)[2] == [NOW + at for at in (2, 2, 3, 3, 3)]


_some = st.lists(
    st.tuples(st.integers(1, 9), st.integers(1, 3), lengths, st.integers(0, 40)), min_size=1, max_size=6
)


def _lines(parts: list[tuple[int, int, float, int]], delays: list[int]) -> list[EqualJobs]:
    found, first = [], 1
    for (number, width, length, _delay), delay in zip(parts, delays, strict=True):
        found.append(line(number, first=first, width=width, length=length, after=NOW + delay))
        first += number
    return found


@given(_some, moments)
def test_nobody_begins_in_the_past_or_before_its_turn_and_everybody_has_a_place(
    parts: list[tuple[int, int, float, int]], free: list[float]
) -> None:
    found = Forecast(NOW, FreeCapacity([CapacityPiece(NOW + each, 3) for each in free]), {})
    lines = _lines(parts, [delay for *_rest, delay in parts])
    for each, begun in zip(lines, starts(found, *lines), strict=True):
        assert len(begun) == len(each.jobs)
        assert begun == sorted(begun)
        assert begun[0] >= max(NOW, each.after, NOW + free[0])


@given(st.integers(1, 30), st.integers(1, 3), lengths, moments, st.integers(0, 90), st.integers(0, 90))
def test_a_longer_delay_or_a_later_hour_brings_no_job_of_a_line_forward(
    number: int, width: int, length: float, free: list[float], delay: int, more: int
) -> None:
    def begun(after: int, opens: int) -> list[float]:
        found = Forecast(NOW, FreeCapacity([CapacityPiece(NOW + each, 3) for each in free]), {})
        hours = None if not opens else lambda moment: (max(moment, NOW + opens), inf)
        return starts(found, line(number, width=width, length=length, after=NOW + after, hours=hours))[0]

    early = begun(delay, 0)
    for late in (begun(delay + more, 0), begun(delay, delay + more)):
        assert all(then >= before for before, then in zip(early, late, strict=True))
