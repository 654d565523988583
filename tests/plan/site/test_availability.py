"""Hours in which hosts may be used: how they are written, what the clock makes of them, plans that keep them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import inf
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadInput
from rota.plan.ask import Ask
from rota.plan.explain.why_waiting import why
from rota.plan.language.request import Alternative, Level, ResourceGroup
from rota.plan.language.weekly_hours import Weekly
from rota.plan.planner.planner import Planner
from rota.plan.policy.policy import Policy
from rota.plan.site.availability import HORIZON_S, closed_spans, closures, is_open, parse_hours
from rota.plan.site.clock import Clock
from rota.plan.site.resources import Resource, Site

H = 3600.0
#: A Monday, midnight.
MONDAY = datetime(2026, 11, 16, tzinfo=UTC).timestamp()
PARIS = ZoneInfo("Europe/Paris")
NIGHTS = "20:00-07:00 mon-fri"


def at(text: str, zone: ZoneInfo | None = None) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone or UTC).timestamp()


# ------------------------------------------------------------------ as they are written


def test_one_period_is_written_as_in_a_calendar() -> None:
    assert parse_hours(NIGHTS) == (Weekly(frozenset(range(5)), 20 * 60, 31 * 60),)


def test_a_comma_before_hours_begins_another_period_and_goes_on_naming_days_otherwise() -> None:
    nights, weekend = parse_hours("20:00-07:00 mon,tue, wed, * sat,sun")
    assert nights.days == {0, 1, 2}
    assert weekend == Weekly(frozenset({5, 6}))


@pytest.mark.parametrize("text", ["*", "00:00-24:00", "mon-sun", "00:00-12:00, 12:00-24:00"])
def test_hours_that_leave_nothing_out_close_nothing(text: str) -> None:
    assert closed_spans(text, Clock(UTC), MONDAY, MONDAY + HORIZON_S) == []


@pytest.mark.parametrize(
    "text", ["", " ", "nights", "20:00", "25:00-26:00", "20:00-07:00 mon-fri fri", "mon-,", "\n"]
)
def test_what_are_no_hours_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_hours(text)
    assert "hours" in refused.value.message
    assert "20:00-07:00 mon-fri" in refused.value.hint
    assert "calendar" not in refused.value.message


def test_too_many_periods_are_refused() -> None:
    with pytest.raises(BadInput):
        parse_hours(", ".join(["08:00-09:00 mon"] * 51))


# ------------------------------------------------------------------ by the clock


def test_nights_run_into_the_next_day_and_belong_to_the_day_they_begin_on() -> None:
    spans = closed_spans(NIGHTS, Clock(UTC), MONDAY, MONDAY + 7 * 24 * H)
    assert [(start - MONDAY, end - MONDAY) for start, end in spans] == [
        (0.0, 20 * H), *((day * 24 * H + 7 * H, day * 24 * H + 20 * H) for day in range(1, 5)),
        (5 * 24 * H + 7 * H, 7 * 24 * H),
    ]  # fmt: skip


def test_the_night_in_which_clocks_are_set_back_is_an_hour_longer() -> None:
    begin, end = at("2026-10-24 20:00", PARIS), at("2026-10-25 07:00", PARIS)
    assert end - begin == 12 * H
    assert closed_spans("20:00-07:00", Clock(PARIS), begin, end) == []
    assert closed_spans("20:00-07:00", Clock(PARIS), begin - 1, end + 1) == [(begin - 1, begin), (end, end + 1)]


def test_the_night_in_which_clocks_are_set_forward_is_an_hour_shorter() -> None:
    begin, end = at("2026-03-28 20:00", PARIS), at("2026-03-29 07:00", PARIS)
    assert end - begin == 10 * H
    assert closed_spans("20:00-07:00", Clock(PARIS), begin - 1, end + 1) == [(begin - 1, begin), (end, end + 1)]


def test_a_host_is_open_in_its_hours_and_always_if_it_has_none() -> None:
    assert is_open("", Clock(UTC), MONDAY)
    assert is_open(NIGHTS, Clock(UTC), MONDAY + 20 * H)
    assert not is_open(NIGHTS, Clock(UTC), MONDAY + 19.9 * H)


# ------------------------------------------------------------------ in a plan


def site_with(hours: dict[str, str], *, hosts: str = "ab", cores: int = 1, zone: ZoneInfo | None = None) -> Site:
    resources = [
        Resource(number, {"host": host})
        for number, host in enumerate((host for host in hosts for _ in range(cores)), 1)
    ]
    return Site(resources, hours=hours, clock=Clock(zone or UTC))


def ask(cores: int, walltime_s: float | None, *, time_s: float = 60.0) -> Ask:
    return Ask(alternatives=(Alternative((ResourceGroup((Level("core", cores),)),), walltime_s),), time_s=time_s)


def planned(planner: Planner, id: int, what: Ask, now: float) -> tuple[float | None, list[int]]:
    entry = planner.submit(id, what, now)
    return entry.start, planner.plan.site.ids(entry.resources)


def test_a_job_that_ends_before_the_hours_do_begins_now_and_a_longer_one_with_the_next_hours() -> None:
    planner = Planner(site_with({"a": NIGHTS}, hosts="a"), Policy(), now=MONDAY + 21 * H)
    assert planned(planner, 1, ask(1, 10 * H), MONDAY + 21 * H) == (MONDAY + 21 * H, [1])
    assert planned(planner, 2, ask(1, 1 * H), MONDAY + 21 * H) == (MONDAY + 24 * H + 20 * H, [1])


def test_a_job_that_fits_no_hours_has_no_start_and_says_so() -> None:
    planner = Planner(site_with({"a": NIGHTS}, hosts="a"), Policy(), now=MONDAY)
    entry = planner.submit(1, ask(1, 12 * H), MONDAY)
    assert entry.start is None
    (reason,) = why(planner.plan, entry)
    assert reason.code == "window"
    assert "hours" in reason.message


def test_a_job_without_a_walltime_is_told_that_it_needs_one_where_there_are_hours_only() -> None:
    planner = Planner(site_with({"a": NIGHTS}, hosts="a"), Policy(), now=MONDAY)
    (reason,) = why(planner.plan, planner.submit(7, ask(1, None), MONDAY))
    assert (reason.code, reason.hint) == ("window", "rota modify 7 --walltime 10h55m")


def test_a_job_that_waits_for_hours_to_begin_says_whose() -> None:
    planner = Planner(site_with({"a": NIGHTS}, hosts="a"), Policy(), now=MONDAY + 12 * H)
    (reason,) = why(planner.plan, planner.submit(1, ask(1, 1 * H), MONDAY + 12 * H))
    assert reason.code == "window"
    assert reason.message.startswith("outside the hours of a; planned to begin in 8h")


def test_a_job_without_a_walltime_is_not_placed_where_hours_end() -> None:
    planner = Planner(site_with({"a": NIGHTS}), Policy(), now=MONDAY + 21 * H)
    assert planned(planner, 1, ask(1, None), MONDAY + 21 * H) == (MONDAY + 21 * H, [2])


def test_outside_its_hours_nothing_begins_on_a_host_and_the_other_is_taken() -> None:
    planner = Planner(site_with({"a": NIGHTS}), Policy(), now=MONDAY + 12 * H)
    assert planned(planner, 1, ask(1, 1 * H), MONDAY + 12 * H) == (MONDAY + 12 * H, [2])
    assert planned(planner, 2, ask(2, 1 * H), MONDAY + 12 * H) == (MONDAY + 20 * H, [1, 2])


def test_a_job_that_outlives_the_hours_goes_on_and_nothing_else_is_placed_there() -> None:
    now = MONDAY + 21 * H
    planner = Planner(site_with({"a": NIGHTS}, hosts="a"), Policy(), now=now)
    planner.submit(1, ask(1, 10 * H), now)
    planner.begin(now)
    late = MONDAY + 24 * H + 8 * H
    planner.tick(late)
    assert 1 in planner.plan.running
    planner.ended(1, late)
    assert planned(planner, 2, ask(1, 1 * H), late) == (MONDAY + 24 * H + 20 * H, [1])


def test_the_plan_is_looked_at_again_before_the_hours_that_it_knows_are_over() -> None:
    planner = Planner(site_with({"a": NIGHTS}), Policy(), now=MONDAY)
    assert planner.plan.renew_at <= MONDAY + HORIZON_S - 7 * 24 * H
    assert Planner(site_with({}), Policy(), now=MONDAY).plan.renew_at == inf
    assert closures(site_with({"a": NIGHTS}), MONDAY)[-1] == (MONDAY + HORIZON_S, inf, 1)


def test_a_reservation_outside_the_hours_is_rejected() -> None:
    planner = Planner(site_with({"a": NIGHTS}, hosts="a"), Policy(), now=MONDAY)
    refused = Ask(alternatives=(Alternative((ResourceGroup((Level("core", 1),)),), 1 * H),), at=MONDAY + 10 * H)
    granted = Ask(alternatives=(Alternative((ResourceGroup((Level("core", 1),)),), 1 * H),), at=MONDAY + 22 * H)
    planner.submit(1, refused, MONDAY)
    planner.submit(2, granted, MONDAY)
    assert planner.plan.entries.keys() == {2}


# ------------------------------------------------------------------ against trying everything

HOURS = ("", NIGHTS, "08:00-18:00 mon-fri", "06:00-12:00, 13:00-17:00 mon-sat", "* sat,sun", "22:00-21:00")

jobs = st.tuples(
    st.integers(1, 4),
    st.sampled_from((0.5 * H, 1 * H, 3 * H, 8 * H, 11 * H, 40 * H)),
    st.sampled_from((True, True, True, False)),
)


def tried(
    site: Site, hours: dict[str, str], now: float, asked: list[tuple[int, float, bool]]
) -> list[tuple[float | None, list[int]]]:
    """Each in turn at the first moment at which enough cores are free and open for all of its time."""
    assert site.clock is not None
    spans = {
        host: [*closed, (now + HORIZON_S, inf)] if closed else []
        for host, text in hours.items()
        for closed in [closed_spans(text, site.clock, now, now + HORIZON_S) if text else []]
    }
    held: list[tuple[float, float, set[int]]] = []
    found: list[tuple[float | None, list[int]]] = []
    for cores, length, hard in asked:
        moments = {now, *(end for _start, end, _ids in held)}
        moments |= {end for closed in spans.values() for _start, end in closed if end < inf}
        place: tuple[float | None, list[int]] = (None, [])
        for start in sorted(moments):
            end = start + length if hard else inf
            free = [
                resource.id
                for resource in site.resources
                if all(b <= start or a >= end for a, b in spans.get(str(resource.values["host"]), []))
                and all(b <= start or a >= start + length or resource.id not in ids for a, b, ids in held)
            ]
            if len(free) >= cores:
                place = (start, sorted(free)[:cores])
                held.append((start, start + length, set(place[1])))
                break
        found.append(place)
    return found


@given(
    st.lists(st.sampled_from(HOURS), min_size=1, max_size=3),
    st.lists(jobs, min_size=1, max_size=8),
    st.integers(0, 7 * 24 * 4),
    st.sampled_from((ZoneInfo("UTC"), PARIS)),
)
def test_every_job_begins_at_the_first_moment_at_which_it_fits_beside_the_others_within_all_hours(
    texts: list[str], asked: list[tuple[int, float, bool]], quarter: int, zone: ZoneInfo
) -> None:
    begin = datetime(2026, 10, 19, tzinfo=zone) + timedelta(minutes=15 * quarter)
    now = begin.timestamp()
    hours = {host: text for host, text in zip("abc", texts, strict=False) if text}
    site = site_with(hours, hosts="abc"[: len(texts)], cores=2, zone=zone)
    planner = Planner(site, Policy(), now=now)
    found = [
        planned(planner, id, ask(cores, length if hard else None, time_s=length), now)
        for id, (cores, length, hard) in enumerate(asked, 1)
    ]
    assert found == tried(site, hours, now, asked)
