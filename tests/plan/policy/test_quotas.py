"""Quotas: whom a rule counts, what it refuses, who is in the way, and when to try again."""

from __future__ import annotations

from datetime import datetime
from math import inf

import pytest

from rota.errors import BadInput, Bug
from rota.plan.ask import Ask
from rota.plan.language.types import Types
from rota.plan.policy.calendar_document import parse_calendar
from rota.plan.policy.quota_rules import QuotaSubject, parse_rules, quota_subject, type_names
from rota.plan.policy.quota_use import RuleHolder
from rota.plan.policy.quotas import QuotaCounters, Quotas, Refusal
from rota.plan.site.calendar import Calendar
from rota.plan.site.clock import SECOND, Clock, find_zone

HOUR = 3600.0
DAY = 24 * HOUR

ALICE = QuotaSubject(user="alice", project="p")
BOB = QuotaSubject(user="bob", project="p")

Rules = dict[str, list[float | str]]


def made(rules: Rules | None = None, *, calendar: Calendar | None = None, total: int = 32) -> Quotas:
    return Quotas(rules or {}, total=total, calendar=calendar)


def week(periodical: list[list[str]], sets: dict[str, Rules], oneshot: list[list[str]] | None = None) -> Calendar:
    """0 is the beginning of Monday, 5 January 2026."""
    found = {"periodical": periodical, "oneshot": oneshot or [], "sets": sets}
    return parse_calendar(found, Clock(find_zone("Europe/Paris"), datetime(2026, 1, 5)))


def handle(quotas: Quotas, who: QuotaSubject) -> QuotaCounters:
    found = quotas.counted(who)
    assert found is not None
    return found


def refused(quotas: Quotas, who: QuotaSubject, resources: int, start: float, end: float) -> Refusal:
    found = quotas.refusal(handle(quotas, who), resources, start, end)
    assert found is not None
    assert found.again > start
    return found


def allowed(quotas: Quotas, who: QuotaSubject, resources: int, start: float, end: float) -> bool:
    return quotas.refusal(handle(quotas, who), resources, start, end) is None


def take(quotas: Quotas, who: QuotaSubject, job: int, resources: int, start: float, end: float) -> None:
    quotas.take(handle(quotas, who), job, resources, start, end)


# -- rules as written


def test_values_are_numbers_or_parts_of_the_site() -> None:
    rule = parse_rules({" * , p,besteffort, / ": ["0.29*ALL", "ALL", 1.5]}, total=100)[0]
    assert rule.pattern == ("*", "p", "besteffort", "/")
    assert (rule.resources, rule.jobs, rule.hours) == (29, 100, 1.5)
    assert parse_rules({"*,*,*,*": ["0.5 * all", -1, -1]}, total=5)[0].resources == 2


def test_values_left_out_are_no_limit() -> None:
    rule = parse_rules({"*,*,*,/": [16]}, total=100)[0]
    assert (rule.resources, rule.jobs, rule.area) == (16, -1, -1)


@pytest.mark.parametrize(
    ("key", "values", "said"),
    [
        ("*,*,*", [1], "3 parts"),
        ("", [1], "1 parts"),
        ("*,*,*,*,*", [1], "5 parts"),
        ("*,,*,*", [1], "project is empty"),
        ("*,*,besteffrot,*", [1], "besteffrot"),
        ("*,*,*,*", [], "resources, jobs, resource-hours"),
        ("*,*,*,*", [1, 2, 3, 4], "resources, jobs, resource-hours"),
        ("*,*,*,*", "ALL", "resources, jobs, resource-hours"),
        ("*,*,*,*", 16, "resources, jobs, resource-hours"),
        ("*,*,*,*", [-2], "resources: -2"),
        ("*,*,*,*", [1, 0.5], "jobs: 0.5"),
        ("*,*,*,*", [1, 1, "half"], "resource-hours: 'half'"),
        ("*,*,*,*", [True], "resources: True"),
        ("*,*,*,*", [None], "resources: None"),
        ("*,*,*,*", [1, 1, inf], "resource-hours: inf"),
        ("*,*,*,*", ["-0.5*ALL"], "-0.5"),
        ("*,*,*,*", ["ALL*0.5"], "ALL.0.5"),
    ],
)
def test_a_bad_rule_is_refused_by_key_and_position(key: str, values: object, said: str) -> None:
    with pytest.raises(BadInput, match=said) as refusal:
        Quotas({key: values}, total=32)
    assert f"'{key}'" in refusal.value.message
    assert refusal.value.hint


def test_a_bad_rule_of_the_calendar_names_its_set() -> None:
    with pytest.raises(BadInput, match="'day'"):
        made(calendar=week([["mon", "day"]], {"day": {"*,*": [1]}}))


# -- whom a rule counts


def test_who_is_read_from_the_ask() -> None:
    types = Types(idempotent=True, inner="3", timesharing=("*", "*"), postpone=0.0)
    ask = Ask(alternatives=(), user="u", project="p", queue="q", types=types)
    assert quota_subject(ask) == QuotaSubject(
        "q", "p", frozenset({"idempotent", "inner", "timesharing", "postpone"}), "u"
    )
    assert type_names(Types()) == frozenset()


def test_types_of_the_site_are_counted_by_their_names() -> None:
    assert type_names(Types(free=("type:cost=5", "type:yop"))) == {"type:cost", "type:yop"}
    quotas = made({"*,*,type:yop,*": [4], "*,*,/,*": [8]})
    yop, nop = QuotaSubject(types=frozenset({"type:yop"})), QuotaSubject(types=frozenset({"type:nop"}))
    take(quotas, yop, 1, 4, 0.0, 10.0)
    assert refused(quotas, yop, 1, 0.0, 5.0).rule == "*,*,type:yop,*"
    counted = quotas.counted(nop)
    assert counted is not None
    assert quotas.refusal(counted, 8, 0.0, 5.0) is None
    assert refused(quotas, nop, 9, 0.0, 5.0).rule == "*,*,/,*"


def test_who_is_exempt_is_counted_nowhere() -> None:
    quotas = made({"*,*,*,*": [4], "*,*,deploy,/": [1], "/,*,*,*": [0]})
    assert quotas.counted(QuotaSubject(types=frozenset({"no_quotas", "deploy"}))) is None


@pytest.mark.parametrize(
    ("kind", "said"), [("no_quotas", "in no quota"), ("yop", "type:NAME"), ("type:", "no type")]
)
def test_a_quota_names_types_that_there_can_be(kind: str, said: str) -> None:
    with pytest.raises(BadInput) as refusal:
        made({f"*,*,{kind},*": [4]})
    assert said in str(refusal.value)


def test_whom_no_rule_concerns_is_not_counted() -> None:
    quotas = made({"admin,*,*,*": [1], "*,q,*,*": [1], "*,*,deploy,*": [1], "*,*,*,carol": [1], "*,*,*,*": [-1]})
    assert quotas.counted(ALICE) is None


def test_together_is_one_counter_and_each_is_one_for_everybody() -> None:
    together = made({"*,*,*,*": [16]})
    take(together, ALICE, 1, 16, 0.0, 10.0)
    assert refused(together, BOB, 1, 0.0, 5.0).holders == [1]
    each = made({"*,*,*,/": [16]})
    take(each, ALICE, 1, 16, 0.0, 10.0)
    assert allowed(each, BOB, 16, 0.0, 5.0)
    assert not allowed(each, ALICE, 1, 0.0, 5.0)


def test_a_user_who_is_called_like_a_sign_is_one_user() -> None:
    quotas = made({"*,*,*,/": [4], "*,*,*,*": [100]})
    take(quotas, QuotaSubject(user="*"), 1, 4, 0.0, 10.0)
    assert allowed(quotas, ALICE, 4, 0.0, 10.0)


def test_all_matching_rules_hold() -> None:
    quotas = made({"*,*,*,/": [16], "*,p,*,*": [20], "default,*,*,*": [-1, 2]})
    take(quotas, ALICE, 1, 12, 0.0, 10.0)
    take(quotas, BOB, 2, 8, 0.0, 5.0)
    found = refused(quotas, ALICE, 1, 0.0, 5.0)
    assert found.again == 5.0
    assert found.rule in ("*,p,*,*", "default,*,*,*")
    assert refused(quotas, ALICE, 5, 0.0, 1.0).rule == "*,*,*,/"


def test_types_are_counted_by_name_together_or_each() -> None:
    quotas = made({"*,*,deploy,*": [2], "*,*,/,*": [-1, 2]})
    deploy = QuotaSubject(types=frozenset({"deploy"}))
    both = QuotaSubject(types=frozenset({"deploy", "idempotent"}))
    take(quotas, both, 1, 2, 0.0, 10.0)
    assert refused(quotas, deploy, 1, 0.0, 5.0).rule == "*,*,deploy,*"
    take(quotas, QuotaSubject(types=frozenset({"idempotent"})), 2, 9, 0.0, 10.0)
    found = refused(quotas, QuotaSubject(types=frozenset({"idempotent"})), 1, 0.0, 5.0)
    assert (found.rule, found.what, found.limit, found.holders) == ("*,*,/,*", "jobs", 2, [1, 2])
    assert quotas.counted(QuotaSubject()) is None


def test_containers_are_not_counted_and_their_inner_jobs_are() -> None:
    quotas = made({"*,*,*,*": [4], "*,*,container,*": [0]})
    assert quotas.counted(QuotaSubject(types=frozenset({"container"}))) is None
    assert quotas.counted(QuotaSubject(types=frozenset({"container", "inner"}))) is None
    assert not allowed(quotas, QuotaSubject(types=frozenset({"inner"})), 5, 0.0, 1.0)


def test_besteffort_counts_only_in_its_own_queue() -> None:
    besteffort = QuotaSubject(queue="besteffort", types=frozenset({"besteffort"}))
    assert made({"*,*,*,*": [1], "*,*,*,/": [1], "*,*,besteffort,*": [1]}).counted(besteffort) is None
    for key in ("besteffort,*,*,*", "/,*,*,*", "/,*,besteffort,*"):
        assert not allowed(made({key: [1]}), besteffort, 2, 0.0, 1.0)


# -- what is refused


def test_a_job_larger_than_its_quota_never_starts() -> None:
    quotas = made({"*,*,*,/": [16]})
    assert allowed(quotas, ALICE, 16, 0.0, 60.0)
    found = refused(quotas, ALICE, 24, 0.0, 60.0)
    assert (found.rule, found.what, found.limit, found.again) == ("*,*,*,/", "resources", 16, inf)
    assert (found.holders, found.calendar) == ([], False)


def test_a_quota_of_nothing_lets_nobody_start() -> None:
    assert refused(made({"*,*,*,*": [-1, 0]}), ALICE, 0, 0.0, 1.0).again == inf
    assert refused(made({"*,*,*,*": [-1, -1, 0]}), ALICE, 1, 0.0, 1.0).again == inf


def test_one_job_for_each_user_is_one_after_the_other() -> None:
    quotas = made({"*,*,*,/": [-1, 1]})
    take(quotas, ALICE, 1, 8, 0.0, 50.0)
    assert refused(quotas, ALICE, 8, 0.0, 50.0).again == 50.0
    assert allowed(quotas, ALICE, 8, 50.0, 100.0)
    assert allowed(quotas, BOB, 8, 0.0, 50.0)


def test_a_job_is_refused_for_those_that_begin_while_it_would_run() -> None:
    quotas = made({"*,*,*,*": [8]})
    take(quotas, ALICE, 1, 8, 100.0, 200.0)
    take(quotas, BOB, 2, 8, 200.0, 300.0)
    assert allowed(quotas, ALICE, 1, 0.0, 100.0)
    found = refused(quotas, ALICE, 1, 0.0, 101.0)
    assert (found.again, found.holders) == (300.0, [1])


def test_again_is_the_first_gap_that_is_long_enough() -> None:
    quotas = made({"*,*,*,*": [-1, 1]})
    for job, start in enumerate((0.0, 15.0, 35.0)):
        take(quotas, ALICE, job, 1, start, start + 10.0)
    assert refused(quotas, BOB, 1, 0.0, 5.0).again == 10.0
    assert refused(quotas, BOB, 1, 0.0, 10.0).again == 25.0
    assert refused(quotas, BOB, 1, 0.0, 11.0).again == 45.0


def test_resource_hours_count_whole_jobs_that_run_at_once() -> None:
    quotas = made({"*,*,*,/": [-1, -1, 2]})
    take(quotas, ALICE, 1, 2, 0.0, HOUR / 2)
    assert allowed(quotas, ALICE, 1, 0.0, HOUR)
    found = refused(quotas, ALICE, 2, 600.0, 600.0 + HOUR)
    assert (found.what, found.limit, found.again, found.holders) == ("resource-hours", 2, HOUR / 2, [1])
    assert refused(quotas, ALICE, 3, 0.0, HOUR).again == inf


def test_what_is_given_back_can_be_taken() -> None:
    quotas = made({"*,*,*,*": [8, 1, 1]})
    counted = handle(quotas, ALICE)
    quotas.take(counted, 1, 8, 0.0, 100.0)
    assert not allowed(quotas, ALICE, 1, 0.0, 1.0)
    quotas.give(counted, 1)
    assert allowed(quotas, ALICE, 8, 0.0, 100.0)
    with pytest.raises(Bug):
        quotas.give(counted, 1)
    quotas.take(counted, 1, 8, 0.0, 100.0)
    with pytest.raises(Bug):
        quotas.take(counted, 1, 8, 0.0, 100.0)


def test_what_runs_beyond_a_limit_is_counted_all_the_same() -> None:
    quotas = made({"*,*,*,*": [8]})
    take(quotas, ALICE, 1, 20, -30.0, 50.0)
    assert refused(quotas, BOB, 1, 0.0, 10.0).again == 50.0


# -- calendars


def test_a_rule_of_the_calendar_holds_in_its_period_only() -> None:
    quotas = made(calendar=week([["08:00-19:00 mon-fri", "day"]], {"day": {"*,*,*,/": [8]}}))
    assert allowed(quotas, ALICE, 9, 0.0, 8 * HOUR)
    found = refused(quotas, ALICE, 9, 0.0, 8 * HOUR + 1)
    assert (found.rule, found.calendar, found.again) == ("*,*,*,/ of 'day'", True, 19 * HOUR)
    assert found.holders == []
    assert refused(quotas, ALICE, 9, 10 * HOUR, 11 * HOUR).again == 19 * HOUR
    # 13 hours a night; 61 hours from Friday evening
    assert refused(quotas, ALICE, 9, 0.0, 14 * HOUR).again == 4 * DAY + 19 * HOUR
    assert refused(quotas, ALICE, 9, 0.0, 63 * HOUR).again == inf
    assert refused(quotas, ALICE, 9, 5 * DAY, 5 * DAY + 63 * HOUR).again == inf
    # but once a year: the clock goes back on 25 October, the Sunday 293 days later; its Friday is two days before
    assert refused(quotas, ALICE, 9, 0.0, 62 * HOUR).again == 291 * DAY + 18 * HOUR


def test_a_job_across_periods_satisfies_each() -> None:
    sets: dict[str, Rules] = {"day": {"*,*,*,/": [8]}, "night": {"*,*,*,/": [4]}}
    quotas = made({"*,*,*,*": [32]}, calendar=week([["08:00-19:00", "day"], ["19:00-08:00", "night"]], sets))
    assert allowed(quotas, ALICE, 8, 9 * HOUR, 19 * HOUR)
    found = refused(quotas, ALICE, 8, 9 * HOUR, 20 * HOUR)
    assert (found.rule, found.again) == ("*,*,*,/ of 'night'", DAY + 8 * HOUR)
    assert refused(quotas, ALICE, 8, 9 * HOUR, 24 * HOUR).again == inf


def test_rules_that_apply_always_hold_beside_those_of_the_calendar() -> None:
    quotas = made({"*,*,*,/": [4]}, calendar=week([["*", "all"]], {"all": {"*,*,*,/": [8]}}))
    assert refused(quotas, ALICE, 5, 0.0, 1.0).rule == "*,*,*,/"


def test_a_one_off_period_takes_the_place_of_the_weekly_one() -> None:
    sets: dict[str, Rules] = {"day": {"*,*,*,/": [8]}, "holiday": {"*,*,*,/": [16]}}
    calendar = week([["*", "day"]], sets, [["2026-01-06T00:00:00", "2026-01-07T00:00:00", "holiday"]])
    assert refused(made(calendar=calendar), ALICE, 12, 0.0, HOUR).again == DAY
    assert refused(made(calendar=calendar), ALICE, 12, 2 * DAY, 2 * DAY + HOUR).again == inf
    assert refused(made(calendar=calendar), ALICE, 17, 0.0, HOUR).again == inf


def test_resource_hours_of_a_period_count_what_lies_in_it() -> None:
    quotas = made(calendar=week([["08:00-18:00", "day"]], {"day": {"*,*,*,*": [-1, -1, 20]}}))
    take(quotas, ALICE, 1, 4, 4 * HOUR, 12 * HOUR)  # 16 of them
    assert allowed(quotas, BOB, 4, 12 * HOUR, 13 * HOUR)
    assert allowed(quotas, BOB, 4, 17 * HOUR, 30 * HOUR)
    found = refused(quotas, BOB, 4, 12 * HOUR, 14 * HOUR)
    assert (found.what, found.limit, found.again, found.holders) == ("resource-hours", 20, 17 * HOUR, [1])
    assert allowed(quotas, BOB, 10, DAY + 8 * HOUR, DAY + 10 * HOUR)
    # five hours of it is all there is
    assert refused(quotas, BOB, 4, DAY + 8 * HOUR, DAY + 14 * HOUR).again == DAY + 13 * HOUR
    quotas.give(handle(quotas, ALICE), 1)
    assert allowed(quotas, BOB, 4, 12 * HOUR, 14 * HOUR)


def test_what_ended_jobs_used_of_a_period_stays_used_until_it_is_over() -> None:
    quotas = made(calendar=week([["08:00-18:00", "day"]], {"day": {"*,*,*,*": [-1, -1, 20]}}))
    take(quotas, ALICE, 1, 4, 6 * HOUR, 18 * HOUR)
    quotas.give(handle(quotas, ALICE), 1)
    quotas.spend(handle(quotas, ALICE), ALICE, 4, 6 * HOUR, 11 * HOUR)  # 12 of them
    assert allowed(quotas, BOB, 4, 11 * HOUR, 13 * HOUR)
    found = refused(quotas, BOB, 4, 11 * HOUR, 14 * HOUR)
    assert (found.what, found.limit, found.again, found.holders) == ("resource-hours", 20, 16 * HOUR, [])
    assert allowed(quotas, BOB, 4, DAY + 8 * HOUR, DAY + 13 * HOUR)
    quotas.spend(handle(quotas, BOB), BOB, 1, DAY + 8 * HOUR, DAY + 9 * HOUR)
    assert [(spent.who, area) for spent, area in quotas.spent.items()] == [(BOB, 3_600_000_000)]
    assert refused(quotas, BOB, 4, DAY + 9 * HOUR, DAY + 14 * HOUR).again > DAY + 9 * HOUR


def test_what_was_spent_is_remembered_by_other_quotas_with_such_a_period_and_counts_once() -> None:
    def rules(most: int, hours: str = "08:00-18:00") -> Quotas:
        return made(calendar=week([[hours, "day"]], {"day": {"*,*,*,/": [-1, -1, most]}}))

    old, new, other = rules(20), rules(10), rules(10, "08:00-19:00")
    old.spend(handle(old, ALICE), ALICE, 4, 8 * HOUR, 10 * HOUR)
    for _ in range(2):
        new.remember(old.spent)
        other.remember(old.spent)
    assert allowed(new, ALICE, 2, 10 * HOUR, 11 * HOUR)
    assert refused(new, ALICE, 3, 10 * HOUR, 11 * HOUR).what == "resource-hours"
    assert allowed(new, BOB, 10, 10 * HOUR, 11 * HOUR)
    assert new.spent == old.spent
    assert allowed(other, ALICE, 10, 10 * HOUR, 11 * HOUR)
    assert not other.spent


def test_a_period_that_a_one_off_period_divides_is_still_one() -> None:
    sets: dict[str, Rules] = {"day": {"*,*,*,*": [-1, -1, 2]}, "noon": {}}
    calendar = week([["08:00-18:00", "day"]], sets, [["2026-01-05T12:00:00", "2026-01-05T14:00:00", "noon"]])
    quotas = made(calendar=calendar)
    take(quotas, ALICE, 1, 1, 11 * HOUR, 14 * HOUR)
    assert allowed(quotas, BOB, 1, 12 * HOUR, 15 * HOUR)
    assert refused(quotas, BOB, 1, 10 * HOUR, 12 * HOUR).again == 11 * HOUR
    assert refused(quotas, BOB, 1, 10 * HOUR, 15 * HOUR).again == 17 * HOUR


def test_a_night_of_nine_hours_has_more_to_give() -> None:
    calendar = parse_calendar(
        {"periodical": [["22:00-06:00", "night"]], "sets": {"night": {"*,*,*,*": [-1, -1, 8]}}},
        Clock(find_zone("Europe/Paris"), datetime(2026, 10, 24, 22)),
    )
    quotas = made(calendar=calendar)
    assert refused(quotas, ALICE, 1, 0.0, 9 * HOUR).again == 1 * HOUR
    assert allowed(quotas, ALICE, 1, 24 * HOUR + HOUR, 34 * HOUR)


def test_a_job_of_a_hundred_years_is_answered_for_two_of_them() -> None:
    quotas = made(calendar=week([["08:00-19:00", "day"]], {"day": {"*,*,*,*": [8, -1, 1000]}}))
    assert allowed(quotas, ALICE, 8, 0.0, 36500 * DAY)
    take(quotas, ALICE, 1, 8, 0.0, 36500 * DAY)
    assert not allowed(quotas, BOB, 1, 9 * HOUR, 10 * HOUR)


def test_jobs_planned_for_years_ahead_do_not_make_never_of_later() -> None:
    quotas = made({"*,*,*,*": [-1, 1]}, calendar=week([["mon", "day"]], {"day": {"*,*,*,*": [8]}}))
    for job in range(5):
        take(quotas, ALICE, job, 1, job * 365 * DAY, (job + 1) * 365 * DAY)
    assert refused(quotas, BOB, 1, 0.0, DAY).again == 5 * 365 * DAY


# -- what is held


def test_each_who_holds_something_is_named_and_those_together_are_one() -> None:
    quotas = made({"*,*,*,/": [4], "*,p,*,*": ["0.5*ALL", 3], "night,*,*,*": [2]})
    take(quotas, ALICE, 1, 3, 0, HOUR)
    take(quotas, ALICE, 2, 1, HOUR, 2 * HOUR)  # it only is planned
    take(quotas, BOB, 3, 2, 0, HOUR)
    each, project, night = quotas.uses({1, 3}, 10.0)
    assert sorted(each.holders) == [
        RuleHolder(("*", "*", "*", "/alice"), 3, 1, None),
        RuleHolder(("*", "*", "*", "/bob"), 2, 1, None),
    ]
    assert project.rule.resources == 16
    assert project.holders == [RuleHolder(("*", "p", "*", "*"), 5, 2, None)]
    assert night.holders == [RuleHolder(("night", "*", "*", "*"), 0, 0, None)]
    assert all(use.applies for use in (each, project, night))


def test_who_holds_nothing_any_more_is_not_named() -> None:
    quotas = made({"*,*,*,/": [4, -1, 10]})
    take(quotas, ALICE, 1, 3, 0, HOUR)
    (use,) = quotas.uses({1}, 10.0)
    assert use.holders == [RuleHolder(("*", "*", "*", "/alice"), 3, 1, 3 * 3600 * SECOND)]
    quotas.give(handle(quotas, ALICE), 1)
    (use,) = quotas.uses({1}, 10.0)
    assert use.holders == []


def test_resource_hours_of_a_period_are_those_of_ended_and_running_jobs_until_it_is_over() -> None:
    day = week([["08:00-18:00", "day"]], {"day": {"*,*,*,/": [-1, -1, 50]}})
    quotas = made(calendar=day)
    quotas.spend(handle(quotas, ALICE), ALICE, 4, 8 * HOUR, 9 * HOUR)
    take(quotas, ALICE, 1, 2, 9 * HOUR, 11 * HOUR)
    take(quotas, ALICE, 2, 7, 11 * HOUR, 12 * HOUR)  # it only is planned
    (use,) = quotas.uses({1}, 10 * HOUR)
    assert use.applies
    assert use.holders == [RuleHolder(("*", "*", "*", "/alice"), 2, 1, 8 * 3600 * SECOND)]
    (use,) = quotas.uses(set(), 19 * HOUR)
    assert not use.applies
    assert use.holders == []
