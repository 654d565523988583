"""Records of quotas and calendar periods, and the `Quotas` that they make.

The name of a quota is its rule, after its rule set if it has one. The name of a period is its hours or dates, and
the rule set that applies then.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from rota.errors import BadInput
from rota.plan.language.weekly_hours import parse_date, parse_weekly, tidy
from rota.plan.policy.calendar_document import parse_calendar
from rota.plan.policy.quota_rules import parse_rules
from rota.plan.policy.quotas import Quotas
from rota.plan.site.calendar import Calendar
from rota.plan.site.clock import Clock

T = TypeVar("T")

#: A number, ALL, or a fraction such as 0.5*ALL.
Limit = int | float | str

_LONGEST_SET: Final = 64
_LONGEST_DESCRIPTION: Final = 255


class QuotaRecord(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The record of one quota rule."""

    rule: str  #: queue,project,type,user
    limits: list[Limit]  #: resources, jobs, resource-hours
    set: str = ""  #: empty: it applies always

    @property
    def name(self) -> str:
        return f"{self.set}: {self.rule}" if self.set else self.rule


class PeriodRecord(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={"start": "from", "end": "to"},
):
    """When a rule set applies: in weekly hours, or once from a start to an end."""

    set: str
    period: str = ""
    start: str = ""  #: ISO 8601; without a zone, in that of the deployment
    end: str = ""
    description: str = ""  #: for people

    @property
    def when(self) -> str:
        return self.period or f"{self.start}/{self.end}"

    @property
    def name(self) -> str:
        return f"{self.when}: {self.set}"


def new_quota(rule: str, limits: list[Limit], set: str = "") -> QuotaRecord:
    """A quota, checked. Raises `BadInput`."""
    tidy = ",".join(part.strip() for part in rule.split(","))
    parse_rules({tidy: limits}, total=0, name=set)
    if set:
        _check_set(set)
    return QuotaRecord(rule=tidy, limits=limits, set=set)


def new_period(
    set: str, *, period: str = "", start: str = "", end: str = "", description: str = ""
) -> PeriodRecord:
    """A period, checked. Raises `BadInput`."""
    _check_set(set)
    if not description.isprintable() or len(description) > _LONGEST_DESCRIPTION:
        raise BadInput(
            "the description of the period is too long or not printable",
            hint=f"write one line of at most {_LONGEST_DESCRIPTION} characters",
        )
    if period and not start and not end:
        parse_weekly(period)
        return PeriodRecord(set=set, period=tidy(period), description=description)
    if period or not start or not end:
        raise BadInput(
            "a period has weekly hours, or a start and an end",
            hint="write 08:00-19:00 mon-fri, or give --from and --to",
        )
    first, last = _moment(start), _moment(end)
    if (first.tzinfo is None) != (last.tzinfo is None):
        raise BadInput("one end of the period has a time zone and the other has none", hint="give both alike")
    if first >= last:
        raise BadInput(f"the period ends at {end}, not after its start {start}", hint="give a later end")
    return PeriodRecord(set=set, start=_iso(first), end=_iso(last), description=description)


def _moment(text: str) -> datetime:
    try:
        return parse_date(text)
    except ValueError:
        raise BadInput(f"'{text[:40]}' is not a date and time", hint="write it like 2026-12-24T00:00") from None


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="auto" if moment.second or moment.microsecond else "minutes")


def _check_set(name: str) -> None:
    if (
        not 0 < len(name) <= _LONGEST_SET
        or not name.replace("_", "a").replace("-", "a").replace(".", "a").isalnum()
    ):
        raise BadInput(f"'{name[:40]}' cannot be the name of a rule set", hint="use letters, digits and . _ -")


# ------------------------------------------------------------------ records


def check_quota(name: str, value: Any) -> None:
    """Raise `BadInput` unless there may be such a record."""
    record = read_quota(value)
    if new_quota(record.rule, record.limits, record.set).name != name:
        raise BadInput(f"quota '{name[:60]}' is not what its value says", hint=f"call it '{record.name}'")


def check_period(name: str, value: Any) -> None:
    """Raise `BadInput` unless there may be such a record."""
    record = read_period(value)
    made = new_period(
        record.set, period=record.period, start=record.start, end=record.end, description=record.description
    )
    if made.name != name:
        raise BadInput(f"period '{name[:60]}' is not what its value says", hint=f"call it '{made.name}'")


def read_quota(value: Any) -> QuotaRecord:
    return _converted("quota", value, QuotaRecord)


def read_period(value: Any) -> PeriodRecord:
    return _converted("calendar", value, PeriodRecord)


def _converted(what: str, value: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise BadInput(f"{what}: {error}".replace("`", "'")) from None


def sets_of(quotas: Mapping[str, Any]) -> dict[str, dict[str, list[Limit]]]:
    """Rule set → rule → limits; permanent quotas under the empty name."""
    found: dict[str, dict[str, list[Limit]]] = {"": {}}
    for value in quotas.values():
        record = read_quota(value)
        found.setdefault(record.set, {})[record.rule] = record.limits
    return found


def calendar_of(quotas: Mapping[str, Any], periods: Mapping[str, Any], clock: Clock) -> Calendar:
    """The calendar in these records. A rule set without quotas limits nothing."""
    sets: dict[str, Any] = {name: rules for name, rules in sets_of(quotas).items() if name}
    weekly, oneshot = [], []
    for value in periods.values():
        record = read_period(value)
        sets.setdefault(record.set, {})
        if record.period:
            weekly.append([record.period, record.set])
        else:
            oneshot.append([record.start, record.end, record.set])
    return parse_calendar({"periodical": weekly, "oneshot": oneshot, "sets": sets}, clock)


def quotas_from(
    quotas: Mapping[str, Any], periods: Mapping[str, Any], *, total: int, clock: Clock
) -> Quotas | None:
    """The quotas of a site with `total` resources; None: it has no quotas."""
    if not quotas:
        return None
    calendar = calendar_of(quotas, periods, clock) if periods else None
    return Quotas(sets_of(quotas)[""], total=total, calendar=calendar)
