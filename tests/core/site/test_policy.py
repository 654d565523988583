"""From the records of a site to its queues and quotas."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest

from rota.core.site.policy import policy_of, queues_of, quotas_of
from rota.errors import BadInput
from rota.plan.language.weekly_hours import Weekly, parse_weekly
from rota.plan.policy.policy import DEFAULT_QUEUES, Queue
from rota.plan.policy.policy_records import check_queue
from rota.plan.policy.quota_records import check_period, check_quota, new_period, new_quota
from rota.plan.policy.quota_rules import QuotaSubject
from rota.plan.site.clock import Clock

CLOCK = Clock(UTC)
DAY = 86400.0


def test_a_site_without_records_has_the_built_in_policy() -> None:
    assert policy_of({}).queues == DEFAULT_QUEUES
    assert quotas_of({}, 100, CLOCK) is None


def test_a_record_says_what_differs_from_the_built_in_queue() -> None:
    queues = queues_of({"queue": {"admin": {"order": "fairshare"}, "night": {"priority": 11, "walltime_s": 60}}})
    assert list(queues) == ["night", "admin", "default", "besteffort"], "highest priority first"
    assert queues["admin"] == Queue(priority=10, order="fairshare", admins_only=True)
    assert queues["night"] == Queue(priority=11, walltime_s=60.0)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("a b", {}, "cannot be a queue"),
        ("q", [], "Expected"),
        ("q", {"prioriti": 1}, "prioriti"),
        ("q", {"priority": -1}, "priority"),
        ("q", {"priority": True}, "priority"),
        ("q", {"order": "lifo"}, "there is no order 'lifo'"),
        ("q", {"backfill": "hard"}, "there is no backfill 'hard'"),
        ("q", {"walltime_s": 0}, "walltime_s"),
        ("q", {"shares": {"ann": 2}}, "shares"),
        ("q", {"shares": {"project:": 0.5}}, "a share needs"),
    ],
)
def test_a_queue_that_cannot_be_is_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        check_queue(name, value)


def records_of(*made: Any) -> dict[str, dict[str, Any]]:
    import msgspec

    found: dict[str, dict[str, Any]] = {"quota": {}, "calendar": {}}
    for each in made:
        kind = "quota" if hasattr(each, "rule") else "calendar"
        value = msgspec.to_builtins(each)
        (check_quota if kind == "quota" else check_period)(each.name, value)
        found[kind][each.name] = value
    return found


def test_quotas_hold_always_and_those_of_a_set_in_its_periods() -> None:
    records = records_of(
        new_quota("*,*,*,/", ["0.5*ALL", -1]),
        new_quota("*, *, *, /", [8], "day"),
        new_period("day", period="08:00-19:00 Mon-Fri"),
        new_period("holiday", start="1970-01-01T00:00", end="1970-01-03T00:00"),
    )
    quotas = quotas_of(records, 32, CLOCK)
    assert quotas is not None
    bob = quotas.counted(QuotaSubject(user="bob"))
    assert bob is not None
    thursday, monday = 10 * 3600.0, 4 * DAY + 10 * 3600.0  # 1970-01-01 was a Thursday
    assert quotas.refusal(bob, 16, thursday, thursday + 60) is None, "a one-off period wins over weekly ones"
    assert quotas.refusal(bob, 17, thursday, thursday + 60) is not None
    refused = quotas.refusal(bob, 9, monday, monday + 60)
    assert refused is not None
    assert refused.rule == "*,*,*,/ of 'day'"


def test_a_quota_and_a_period_are_called_as_they_are() -> None:
    assert new_quota(" * ,*,*, /", [1], "day").name == "day: *,*,*,/"
    assert new_period("day", period=" 08:00-19:00   Mon-Fri ").name == "08:00-19:00 mon-fri: day"
    assert new_period("x", start="2026-12-24", end="2026-12-27T00:00:30").name == (
        "2026-12-24T00:00/2026-12-27T00:00:30: x"
    )
    with pytest.raises(BadInput, match="is not what its value says"):
        check_quota("*,*,*,*", {"rule": "*,*,*,/", "limits": [1]})
    with pytest.raises(BadInput, match="is not what its value says"):
        check_period("x", {"period": "mon", "set": "day"})


@pytest.mark.parametrize(
    ("period", "message"),
    [
        ({"period": "8-19 mon"}, "HH:MM"),
        ({}, "weekly hours, or a start and an end"),
        ({"period": "mon", "start": "2026-01-01"}, "weekly hours, or a start and an end"),
        ({"start": "2026-01-01"}, "weekly hours, or a start and an end"),
        ({"start": "2026-01-02", "end": "2026-01-02"}, "not after its start"),
        ({"start": "tomorrow", "end": "2026-01-02"}, "is not a date and time"),
        ({"start": "2026-01-01", "end": "2026-01-02T00:00+01:00"}, "time zone"),
    ],
)
def test_a_period_that_cannot_be_is_refused(period: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        new_period("day", **period)
    with pytest.raises(BadInput, match="cannot be the name of a rule set"):
        new_period("a b", period="mon")


def test_hours_are_stored_as_they_can_be_read_again() -> None:
    assert parse_weekly(new_period("day", period="22:00-06:00 FRI").period) == Weekly(frozenset({4}), 1320, 1800)
