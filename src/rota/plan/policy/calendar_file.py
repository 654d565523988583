"""A calendar in a file, in the form of OAR or of `rota simulate`, as periods and quotas of a site."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from rota.errors import BadInput
from rota.plan.policy.calendar_document import calendar_parts
from rota.plan.policy.quota_records import PeriodRecord, QuotaRecord, new_period, new_quota

#: The parts of a row, without a description.
_WEEKLY: Final = 2
_ONCE: Final = 3


class CalendarFile(Struct, frozen=True):
    """The records of a file, by name."""

    periods: dict[str, PeriodRecord]
    quotas: dict[str, QuotaRecord]
    unused: tuple[str, ...]  #: rule sets that none of its periods names


def read_calendar(found: object) -> CalendarFile:
    """The records in a document. Raises `BadInput`, which names the entry."""
    parts = calendar_parts(found)
    if not parts.weekly and not parts.oneshot:
        raise BadInput(
            "the calendar has no period",
            hint='write {"periodical": [["08:00-19:00 mon-fri * *", "day"]], "day": {"*,*,*,/": [8, -1, -1]}}',
        )
    periods: dict[str, PeriodRecord] = {}
    for number, row in enumerate(parts.weekly, 1):
        with _entry(f"periodical, entry {number}"):
            _put(periods, new_period(row[1], period=row[0] or " ", description=_description(row, _WEEKLY)))
    for number, row in enumerate(parts.oneshot, 1):
        with _entry(f"oneshot, entry {number}"):
            _put(periods, new_period(row[2], start=row[0], end=row[1], description=_description(row, _ONCE)))
    quotas: dict[str, QuotaRecord] = {}
    for name, rules in parts.sets.items():
        for rule, limits in rules.items():
            with _entry(f"rule set '{name[:64]}', rule '{rule[:64]}'"):
                if not isinstance(limits, list):
                    raise BadInput(
                        "its limits are not a list", hint="write [RESOURCES, JOBS, HOURS]; -1 is no limit"
                    )
                made = new_quota(rule, limits, name)
                if made.name in quotas:
                    raise BadInput("it is there twice", hint="leave one of them out")
                quotas[made.name] = made
    named = {each.set for each in periods.values()}
    return CalendarFile(periods, quotas, tuple(name for name in parts.sets if name not in named))


def _put(periods: dict[str, PeriodRecord], made: PeriodRecord) -> None:
    if made.name in periods:
        raise BadInput(f"the period '{made.name}' is there twice", hint="leave one of them out")
    periods[made.name] = made


def _description(row: list[str], parts: int) -> str:
    return row[parts].strip() if len(row) > parts else ""


@contextmanager
def _entry(where: str) -> Iterator[None]:
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{where}: {error.message}", hint=error.hint) from None
