"""Windows of limits: hours of a day as written, to the second, and when they open."""

from __future__ import annotations

import json
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.site.limits import openings, parse_limit
from rota.errors import BadInput
from rota.plan.policy.limits import Limit, Window, clock_at, minute_at

PARIS: tzinfo = ZoneInfo("Europe/Paris")


def window(text: str) -> Window:
    found = parse_limit(f"x@{text}")[3]
    assert found is not None
    return found


@pytest.mark.parametrize("text", ["22:00-06:00", "09:00:30-17:00", "23:59:59-00:00:01", "00:00-09:00:20"])
def test_a_window_reads_as_it_is_written(text: str) -> None:
    assert str(window(text)) == text
    kept = msgspec.json.encode(Limit("x", None, window(text)))
    assert msgspec.json.decode(kept, type=Limit).window == window(text)


def test_whole_minutes_are_kept_as_they_always_were() -> None:
    assert json.loads(msgspec.json.encode(window("22:00-06:00"))) == [1320, 360]


@pytest.mark.parametrize("text", ["9:00:60-10:00", "24:00:01-02:00", "10:00:05-10:00:05", "10:00:5-11:00", "1-2"])
def test_what_are_no_hours_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_limit(f"x@{text}")


@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_a_second_of_the_day_is_told_apart_from_the_next(hour: int, minute: int, second: int) -> None:
    at = minute_at(hour, minute, second)
    assert clock_at(at) == (hour, minute, second)
    assert Window(at, 24 * 60).open_at(minute_at(hour, minute, second))
    assert not Window(0, at).open_at(minute_at(hour, minute, second))


def test_a_window_opens_and_closes_to_the_second() -> None:
    hours = openings(PARIS, [window("09:00:30-17:00:10")])
    nine = datetime(2026, 1, 5, 9, 0, 0, tzinfo=PARIS).timestamp()
    shut = datetime(2026, 1, 5, 17, 0, 10, tzinfo=PARIS).timestamp()
    assert hours(nine) == (nine + 30, shut)
    assert hours(shut - 1) == (shut - 1, shut)
    assert datetime.fromtimestamp(hours(shut)[0], UTC) == datetime(2026, 1, 6, 8, 0, 30, tzinfo=UTC)
