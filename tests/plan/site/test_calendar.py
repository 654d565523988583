"""Periods of the calendar: hours and days as written, one-off periods, and days of 23 and 25 hours."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadInput
from rota.plan.language.weekly_hours import parse_weekly, tidy
from rota.plan.policy.calendar_document import parse_calendar
from rota.plan.site.calendar import Calendar
from rota.plan.site.clock import SECOND, Clock, find_zone, moment
from tests.dose import dose

HOUR = 3600.0
DAY = 24 * HOUR
PARIS = find_zone("Europe/Paris")


def monday(zone: str = "Europe/Paris") -> Clock:
    """0 is the beginning of Monday, 5 January 2026."""
    return Clock(find_zone(zone), datetime(2026, 1, 5))


def calendar(
    *periodical: list[str], oneshot: list[list[str]] | None = None, clock: Clock | None = None
) -> Calendar:
    names = {row[1] for row in periodical} | {row[2] for row in oneshot or []}
    found = {"periodical": list(periodical), "oneshot": oneshot or [], "sets": {name: {} for name in names}}
    return parse_calendar(found, clock or monday())


def applied(made: Calendar, start: float, end: float) -> list[tuple[float, float, tuple[str, ...]]]:
    """Periods in which some set applies."""
    return [(period.start, period.end, period.sets) for period in made.periods(start, end) if period.sets]


# -- text


@pytest.mark.parametrize(
    ("text", "days", "start", "end"),
    [
        ("08:00-19:00 mon-fri", {0, 1, 2, 3, 4}, 480, 1140),
        ("8:00-19:30", set(range(7)), 480, 1170),
        ("sat,sun", {5, 6}, 0, 1440),
        ("fri-mon", {4, 5, 6, 0}, 0, 1440),
        ("sat-sat", {5}, 0, 1440),
        ("mon-tue,fri", {0, 1, 4}, 0, 1440),
        ("Monday , WED", {0, 2}, 0, 1440),
        ("*", set(range(7)), 0, 1440),
        ("* sat - sun", {5, 6}, 0, 1440),
        ("22:00-06:00 fri", {4}, 1320, 1800),
        ("19:00-00:00 *", set(range(7)), 1140, 1440),
        ("00:00-24:00 tue", {1}, 0, 1440),
        ("08:00-08:00 tue", {1}, 480, 1920),
        ("08:00-19:00 mon-fri * *", {0, 1, 2, 3, 4}, 480, 1140),
        ("* sat-sun * *", {5, 6}, 0, 1440),
        ("* * * *", set(range(7)), 0, 1440),
    ],
)
def test_a_period_reads_as_it_is_written(text: str, days: set[int], start: int, end: int) -> None:
    weekly = parse_weekly(text)
    assert (set(weekly.days), weekly.start, weekly.end) == (days, start, end)


@pytest.mark.parametrize(
    ("text", "dates", "months"),
    [
        ("* * 1-3,15 *", {1, 2, 3, 15}, set(range(1, 13))),
        ("* * 30-2 *", {30, 31, 1, 2}, set(range(1, 13))),
        ("* * * jul-aug", set(range(1, 32)), {7, 8}),
        ("* * * nov-Feb,4", set(range(1, 32)), {11, 12, 1, 2, 4}),
        ("08:00-12:00 mon 29 2", {29}, {2}),
    ],
)
def test_the_third_and_fourth_part_are_days_of_the_month_and_months(
    text: str, dates: set[int], months: set[int]
) -> None:
    weekly = parse_weekly(text)
    assert (set(weekly.dates), set(weekly.months)) == (dates, months)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("08:00-19:00  Mon-Fri * *", "08:00-19:00 mon-fri"),
        ("* sat - sun * *", "* sat-sun"),
        ("* * 24-31 DEC", "* * 24-31 dec"),
        ("08:00 - 19:00 mon", "08:00 - 19:00 mon"),
        ("* *", "* *"),
        ("SAT", "sat"),
    ],
)
def test_a_period_is_kept_in_one_spelling_and_as_it_was_before_there_were_four_parts(text: str, kept: str) -> None:
    assert tidy(text) == kept
    assert parse_weekly(kept) == parse_weekly(text)


@pytest.mark.parametrize(
    "text",
    ["* * *", "* * 0 *", "* * 32 *", "* * * 13", "* * * foo", "* * 30 feb", "* * 31 apr,jun", "* * 1-2-3 *",
     "* * 1 * *", "* * ١ *", "* * , *",
     "", " ", "08:00", "8-19", "08:00-19", "25:00-26:00", "08:60-09:00", "24:00-01:00", "08:00-24:01", "mon-",
     "mun", "mon-wed-fri", "mon 08:00-19:00", "08:00-19:00 mon fri", "08:00-19:00 *,mon", "٠٨:00-19:00", ",", "-"],
)  # fmt: skip
def test_what_is_no_period_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_weekly(text)
    assert text in refused.value.message or not text.strip()
    assert "mon-fri" in refused.value.hint


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([], "not an object"),
        ({"weekly": []}, "weekly"),
        ({"sets": []}, "sets"),
        ({"sets": {"day": [1]}}, "sets"),
        ({"periodical": {}}, "periodical"),
        ({"periodical": [["mon"]]}, "mon"),
        ({"periodical": [["mon", 3]], "sets": {}}, "3"),
        ({"periodical": ["mon"]}, "mon"),
        ({"periodical": [["mon", "day"]], "sets": {"night": {}}}, "day"),
        ({"oneshot": [["2026-01-06", "day"]], "sets": {"day": {}}}, "2026-01-06"),
        ({"oneshot": [["soon", "2026-01-06", "day"]], "sets": {"day": {}}}, "soon"),
        ({"oneshot": [["2026-01-06", "2026-01-06", "day"]], "sets": {"day": {}}}, "2026-01-06"),
        ({"oneshot": [["2026-01-01", "9999-13-31", "day"]], "sets": {"day": {}}}, "9999-13-31"),
        ({"oneshot": [["2026-01-06", "2026-01-07", "dya"]], "sets": {"day": {}}}, "dya"),
        ({"oneshot": [["2026-01-06", "2026-01-07", "day", "x", "y"]], "sets": {"day": {}}}, "oneshot"),
        ({"periodical": [["mon", "day", 5]], "sets": {"day": {}}}, "periodical"),
        ({"day": {}, "sets": {"day": {}}}, "twice"),
    ],
)
def test_what_is_no_calendar_is_refused_by_name(found: object, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        parse_calendar(found, monday())


@pytest.mark.parametrize("name", ["Europe/Pari", "", "Europe", "../etc/passwd", "/etc/passwd"])
def test_an_unknown_zone_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="time zone"):
        find_zone(name)


# -- periods


def test_hours_apply_on_their_days_and_nothing_in_between() -> None:
    made = calendar(["08:00-19:00 mon-fri", "day"])
    assert made.periods(0.0, DAY) == [
        (0.0, 8 * HOUR, ()),
        (8 * HOUR, 19 * HOUR, ("day",)),
        (19 * HOUR, DAY, ()),
    ]
    assert applied(made, 5 * DAY, 7 * DAY) == []
    assert applied(made, 7 * DAY, 8 * DAY) == [(7 * DAY + 8 * HOUR, 7 * DAY + 19 * HOUR, ("day",))]
    assert applied(made, 9 * HOUR, 10 * HOUR) == [(9 * HOUR, 10 * HOUR, ("day",))]
    assert made.periods(19 * HOUR, 19 * HOUR) == []


def test_hours_across_midnight_belong_to_the_day_they_begin_on() -> None:
    made = calendar(["22:00-06:00 fri", "night"])
    assert applied(made, 0.0, 7 * DAY) == [(4 * DAY + 22 * HOUR, 5 * DAY + 6 * HOUR, ("night",))]
    assert applied(made, 5 * DAY + HOUR, 5 * DAY + 2 * HOUR) == [(5 * DAY + HOUR, 5 * DAY + 2 * HOUR, ("night",))]


def test_each_day_without_hours_is_a_period() -> None:
    made = calendar(["sat,sun", "weekend"])
    assert applied(made, 0.0, 8 * DAY) == [(5 * DAY, 6 * DAY, ("weekend",)), (6 * DAY, 7 * DAY, ("weekend",))]


def test_periods_that_overlap_apply_together() -> None:
    made = calendar(["08:00-12:00 mon", "a"], ["10:00-14:00 mon", "b"])
    assert applied(made, 0.0, DAY) == [
        (8 * HOUR, 10 * HOUR, ("a",)),
        (10 * HOUR, 12 * HOUR, ("a", "b")),
        (12 * HOUR, 14 * HOUR, ("b",)),
    ]


def test_days_of_the_month_and_months_apply_with_the_days_of_the_week() -> None:
    made = calendar(["10:00-11:00 mon 5-12 jan", "a"])
    first, second = 10 * HOUR, 7 * DAY + 10 * HOUR
    assert applied(made, -30 * DAY, 40 * DAY) == [(first, first + HOUR, ("a",)), (second, second + HOUR, ("a",))]


def test_a_file_of_oar_is_a_calendar() -> None:
    made = parse_calendar(
        {
            "periodical": [
                ["08:00-19:00 mon-fri * *", "quotas_workday", "workdays"],
                ["* sat-sun * *", "quotas_weekend", "weekend"],
            ],
            "oneshot": [["2026-01-06 8:30", "2026-01-06 19:30", "quotas_holiday", "one day off"]],
            "quotas_workday": {"*,*,*,john": [100, -1, -1]},
            "quotas_weekend": {},
            "quotas_holiday": {},
        },
        monday(),
    )
    assert applied(made, 0.0, 2 * DAY) == [
        (8 * HOUR, 19 * HOUR, ("quotas_workday",)),
        (DAY + 8 * HOUR, DAY + 8.5 * HOUR, ("quotas_workday",)),
        (DAY + 8.5 * HOUR, DAY + 19.5 * HOUR, ("quotas_holiday",)),
    ]
    assert made.sets["quotas_workday"] == {"*,*,*,john": [100, -1, -1]}


def test_a_one_off_period_wins_over_weekly_ones() -> None:
    made = calendar(["08:00-19:00", "day"], oneshot=[["2026-01-05T12:00:00", "2026-01-06T09:00:00", "holiday"]])
    assert applied(made, 0.0, 2 * DAY) == [
        (8 * HOUR, 12 * HOUR, ("day",)),
        (12 * HOUR, 33 * HOUR, ("holiday",)),
        (33 * HOUR, 43 * HOUR, ("day",)),
    ]


def test_one_off_periods_within_each_other_leave_no_gap_to_weekly_ones() -> None:
    made = calendar(
        ["08:00-19:00 mon", "day"],
        oneshot=[["2026-01-05T09:00", "2026-01-05T15:00", "a"], ["2026-01-05T10:00", "2026-01-05T11:00", "b"]],
    )
    assert applied(made, 0.0, DAY) == [
        (8 * HOUR, 9 * HOUR, ("day",)),
        (9 * HOUR, 10 * HOUR, ("a",)),
        (10 * HOUR, 11 * HOUR, ("a", "b")),
        (11 * HOUR, 15 * HOUR, ("a",)),
        (15 * HOUR, 19 * HOUR, ("day",)),
    ]


def test_a_one_off_time_with_an_offset_means_that_offset() -> None:
    made = calendar(oneshot=[["2026-01-05T12:00:00Z", "2026-01-05T15:00:00+02:00", "a"]])
    assert applied(made, 0.0, DAY) == [(13 * HOUR, 14 * HOUR, ("a",))]


def test_far_away_questions_are_answered_as_near_ones() -> None:
    made = calendar(["08:00-19:00 mon", "day"], clock=monday("UTC"))
    for week in (0, 2000, -2000, 1, 90, 40):
        start = week * 7 * DAY
        assert applied(made, start, start + 2 * DAY) == [(start + 8 * HOUR, start + 19 * HOUR, ("day",))]


# -- daylight saving: Europe/Paris loses an hour on 29 March 2026 and gains one on 25 October


def unix(*parts: int) -> float:
    year, month, day, hour = parts
    return datetime(year, month, day, hour, tzinfo=PARIS).timestamp()


PRODUCTION = Clock(PARIS)


@pytest.mark.parametrize(("month", "day"), [(3, 28), (3, 29), (3, 30), (10, 24), (10, 25), (10, 26)])
def test_working_hours_are_local_on_every_day(month: int, day: int) -> None:
    made = calendar(["08:00-19:00", "day"], clock=PRODUCTION)
    start, end = unix(2026, month, day, 8), unix(2026, month, day, 19)
    assert applied(made, start - 3 * HOUR, end + 3 * HOUR) == [(start, end, ("day",))]
    assert end - start == 11 * HOUR


@pytest.mark.parametrize(("month", "day", "hours"), [(3, 28, 7), (3, 29, 8), (10, 24, 9), (10, 25, 8)])
def test_a_night_has_seven_or_nine_hours_when_the_clock_changes(month: int, day: int, hours: int) -> None:
    made = calendar(["22:00-06:00", "night"], clock=PRODUCTION)
    start = unix(2026, month, day, 22)
    assert applied(made, start - 2 * HOUR, start + 12 * HOUR) == [(start, start + hours * HOUR, ("night",))]


def test_days_without_hours_are_as_long_as_they_are() -> None:
    made = calendar(["sun", "sunday"], clock=PRODUCTION)
    for month, day, hours in ((3, 29, 23), (10, 25, 25), (4, 5, 24)):
        start = unix(2026, month, day, 0)
        assert applied(made, start - DAY, start + 2 * DAY) == [(start, start + hours * HOUR, ("sunday",))]


def test_hours_that_are_skipped_begin_at_the_change() -> None:
    change = unix(2026, 3, 29, 3)
    made = calendar(["02:30-05:00", "a"], clock=PRODUCTION)
    assert applied(made, change - HOUR, change + 3 * HOUR) == [(change, change + 2 * HOUR, ("a",))]
    made = calendar(["02:10-02:50", "a"], clock=PRODUCTION)
    assert applied(made, change - HOUR, change + 3 * HOUR) == []


def test_hours_that_come_twice_follow_each_other_without_a_gap() -> None:
    first = datetime(2026, 10, 25, 2, 30, tzinfo=PARIS).timestamp()
    made = calendar(["00:00-02:30 sun", "a"], ["02:30-05:00 sun", "b"], clock=PRODUCTION)
    assert applied(made, first - 5 * HOUR, first + 5 * HOUR) == [
        (first - 2.5 * HOUR, first, ("a",)),
        (first, first + 3.5 * HOUR, ("b",)),
    ]


def test_seconds_of_a_trace_count_from_a_local_epoch() -> None:
    clock = Clock(PARIS, datetime(2026, 3, 29))
    assert clock.wall(moment(3 * HOUR)).replace(tzinfo=None) == datetime(2026, 3, 29, 4)
    assert clock.moment(datetime(2026, 3, 29, 4)) == moment(3 * HOUR)
    assert clock.moment(datetime.fromisoformat("2026-03-29T00:00+01:00")) == 0
    with pytest.raises(BadInput, match="years"):
        clock.wall(moment(1e15))


# -- against a model


@dose(60)
@given(st.data())
def test_periods_cover_everything_and_say_what_the_clock_on_the_wall_says(data: st.DataObject) -> None:
    """Minute by minute around a change of the clock; hours in which the clock changes are left out."""
    change = data.draw(st.sampled_from([datetime(2026, 3, 28), datetime(2026, 10, 24), datetime(2026, 6, 6)]))
    clock = Clock(PARIS, change)
    hours = st.sampled_from([0, 60, 210, 361, 480, 779, 1140, 1320, 1439])
    weekly = data.draw(st.lists(st.tuples(hours, hours, st.sets(st.integers(0, 6), min_size=1)), max_size=4))
    shots = data.draw(st.lists(st.tuples(st.integers(4 * 60, 70 * 60), st.integers(1, 2000)), max_size=2))
    names = "mon tue wed thu fri sat sun".split()
    periodical = [
        [f"{a // 60:02}:{a % 60:02}-{b // 60:02}:{b % 60:02} {','.join(names[d] for d in days)}", f"w{n}"]
        for n, (a, b, days) in enumerate(weekly)
    ]
    oneshot = [
        [
            (change + timedelta(minutes=a)).isoformat() + "Z",
            (change + timedelta(minutes=a + b)).isoformat() + "Z",
            f"o{n}",
        ]
        for n, (a, b) in enumerate(shots)
    ]
    made = calendar(*periodical, oneshot=oneshot, clock=clock)
    start = data.draw(st.integers(0, 30)) * HOUR
    end = start + data.draw(st.integers(1, 40)) * HOUR
    periods = made.periods(start, end)
    assert [period.start for period in periods] == [start, *(period.end for period in periods[:-1])]
    assert periods[-1].end == end
    for period in periods:
        assert period.start < period.end
        for at in (period.start, (period.start + period.end) // 2, period.end - 60):
            if not period.start <= at < period.end:
                continue
            wall = clock.wall(moment(at))
            universal = (wall.replace(tzinfo=None) - (wall.utcoffset() or timedelta()) - change) / timedelta(
                minutes=1
            )
            minute, today = 60 * wall.hour + wall.minute, wall.weekday()
            expected = {f"o{n}" for n, (a, b) in enumerate(shots) if a <= universal < a + b}
            if not expected:
                for n, (a, b, days) in enumerate(weekly):
                    inside = a <= minute < b and today in days
                    if b <= a:
                        inside = (minute >= a and today in days) or (minute < b and (today - 1) % 7 in days)
                    if inside:
                        expected.add(f"w{n}")
            assert set(period.sets) == expected, (wall, period)
    assert moment(end) // SECOND == end
