"""Windows of accounting: whole days, weeks and months of a time zone, and windows of any length."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadInput
from rota.manager.accounts.windows import edges

PARIS = ZoneInfo("Europe/Paris")
NOW = datetime(2026, 11, 18, 12, 30, tzinfo=UTC).timestamp()


def at(text: str, zone: ZoneInfo = PARIS) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def found(window: str, since: str | None = None, until: str | None = None, zone: ZoneInfo = PARIS) -> list[str]:
    first, last = (None if text is None else at(text, zone) for text in (since, until))
    hours = edges(window, since=first, until=last, now=NOW, zone=zone)
    return [f"{datetime.fromtimestamp(hour * 3600, zone):%Y-%m-%d %H:%M}" for hour in hours]


def test_days_begin_at_local_midnight_also_when_clocks_are_put_forward_or_back() -> None:
    assert found("day", "2026-03-28T12:00", "2026-03-30T12:00") == [
        "2026-03-28 00:00", "2026-03-29 00:00", "2026-03-30 00:00", "2026-03-31 00:00",
    ]  # fmt: skip
    hours = edges("day", since=at("2026-03-28"), until=at("2026-03-31"), now=NOW, zone=PARIS)
    assert [until - begin for begin, until in pairwise(hours)] == [24, 23, 24]
    hours = edges("day", since=at("2026-10-24"), until=at("2026-10-27"), now=NOW, zone=PARIS)
    assert [until - begin for begin, until in pairwise(hours)] == [24, 25, 24]


def test_weeks_begin_on_mondays_and_months_on_their_first_day() -> None:
    assert found("week", "2026-10-21", "2026-11-03") == [
        "2026-10-19 00:00", "2026-10-26 00:00", "2026-11-02 00:00", "2026-11-09 00:00",
    ]  # fmt: skip
    assert found("month", "2026-01-31", "2026-03-01T00:30") == [
        "2026-01-01 00:00", "2026-02-01 00:00", "2026-03-01 00:00", "2026-04-01 00:00",
    ]  # fmt: skip


def test_windows_of_a_length_are_counted_from_the_beginning_or_back_from_the_end() -> None:
    assert found("36h", "2026-11-10T08:20", "2026-11-14T08:00") == [
        "2026-11-10 08:00", "2026-11-11 20:00", "2026-11-13 08:00", "2026-11-14 08:00",
    ]  # fmt: skip
    assert found("36h")[-1] == "2026-11-18 14:00"
    assert len(found("36h")) == 31
    assert found("all", "2026-11-10T08:20") == ["2026-11-10 08:00", "2026-11-18 14:00"]


def test_in_a_zone_of_half_hours_a_day_begins_with_the_hour_of_midnight() -> None:
    kolkata = ZoneInfo("Asia/Kolkata")
    assert found("day", "2026-11-10", "2026-11-11T12:00", kolkata) == [
        "2026-11-09 23:30", "2026-11-10 23:30", "2026-11-11 23:30",
    ]  # fmt: skip


@given(
    st.sampled_from(
        ["Europe/Paris", "America/Santiago", "Asia/Kolkata", "Australia/Lord_Howe", "UTC", "Pacific/Apia"]
    ),
    st.sampled_from(["hour", "day", "week", "month", "all", "36h", "5h", "1000h"]),
    st.floats(0, NOW - 1),
    st.floats(1, 90 * 86400),
)
def test_windows_cover_what_was_asked_for_without_gaps(
    zone: str, window: str, since: float, length: float
) -> None:
    until = min(NOW, since + length)
    if until <= since:
        return
    hours = edges(window, since=since, until=until, now=NOW, zone=ZoneInfo(zone))
    assert hours == sorted(set(hours))
    assert hours[0] * 3600 <= since
    assert hours[-1] * 3600 >= until
    assert hours[1] * 3600 > since, "none is before it"
    assert hours[-2] * 3600 < until, "none is behind it"


@pytest.mark.parametrize("window", ["hour", "day", "week", "month"])
def test_without_a_beginning_there_are_the_last_thirty(window: str) -> None:
    assert len(edges(window, since=None, until=None, now=NOW, zone=PARIS)) == 31


@pytest.mark.parametrize("window", ["minute", "90m", "0h", "", "-5h", "ünï", "36"])
def test_what_is_no_window_is_named(window: str) -> None:
    with pytest.raises(BadInput, match="window"):
        edges(window, since=None, until=None, now=NOW, zone=PARIS)


@pytest.mark.parametrize(
    ("since", "until"),
    [(2e9, 1e9), (float("nan"), None), (None, float("nan")), (-1e15, 1e15), (1e15, None), (-1e10, None)],
)
def test_times_that_make_no_sense_are_refused(since: float | None, until: float | None) -> None:
    with pytest.raises(BadInput):
        edges("hour", since=since, until=until, now=NOW, zone=PARIS)
