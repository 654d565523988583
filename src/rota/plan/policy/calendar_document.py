"""A calendar as a JSON document: weekly and one-off periods, and the quota rules of each rule set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from rota.errors import BadInput
from rota.plan.language.weekly_hours import parse_date, parse_weekly
from rota.plan.site.calendar import Calendar
from rota.plan.site.clock import Clock

_FIELDS: Final = ("periodical", "oneshot", "sets")


class CalendarParts(NamedTuple):
    """The parts of a calendar document. A row may have a description as its last element."""

    weekly: list[list[str]]  #: period, rule set
    oneshot: list[list[str]]  #: start, end, rule set
    sets: dict[str, dict[str, Any]]  #: rule set → rule → limits


def parse_calendar(found: object, clock: Clock) -> Calendar:
    """The calendar in a JSON value with `periodical`, `oneshot` and `sets`. Raises `BadInput`."""
    parts = calendar_parts(found)
    weekly = [(parse_weekly(row[0]), row[1]) for row in parts.weekly]
    oneshot = []
    for row in parts.oneshot:
        start, end = _local(row[0], clock), _local(row[1], clock)
        if start >= end:
            raise BadInput(f"one-off period of the calendar ends at {row[1]}, not after its start {row[0]}")
        oneshot.append((start, end, row[2]))
    return Calendar(clock, weekly=weekly, oneshot=oneshot, sets=parts.sets)


def calendar_parts(found: object) -> CalendarParts:
    """Checked periods and rule sets of a document. Raises `BadInput`.

    As in OAR's files, a period may have a description after its rule set, and rule sets may be top-level keys
    beside the periods.
    """
    if not isinstance(found, dict):
        raise BadInput("calendar is not an object", hint='write {"periodical": […], "oneshot": […], "sets": {…}}')
    sets = found.get("sets", {})
    beside = {key: value for key, value in found.items() if key not in _FIELDS}
    if unknown := sorted(str(key) for key, value in beside.items() if not isinstance(value, dict)):
        raise BadInput(f"calendar has no field '{unknown[0]}'", hint="its fields are periodical, oneshot and sets")
    if not isinstance(sets, dict) or not all(isinstance(rules, dict) for rules in sets.values()):
        raise BadInput("sets of the calendar do not name rules", hint='write {"day": {"*,*,*,/": [8, -1, -1]}}')
    if twice := sorted(sets.keys() & beside.keys()):
        raise BadInput(
            f"calendar has rule set '{twice[0]}' twice", hint="write it under sets, or beside the periods"
        )
    sets = {**sets, **beside}
    weekly = _rows(found, "periodical", ("period", "set"), '["08:00-19:00 mon-fri", "day"]')
    oneshot = _rows(found, "oneshot", ("start", "end", "set"), '["2026-01-06T00:00", "2026-01-07T00:00", "day"]')
    for name in (*(row[1] for row in weekly), *(row[2] for row in oneshot)):
        _known(name, sets)
    return CalendarParts(weekly, oneshot, sets)


def _rows(found: Mapping[str, object], name: str, parts: tuple[str, ...], example: str) -> list[list[str]]:
    """The rows of a field. Each may have a description as its last element, which is ignored."""
    rows = found.get(name, [])
    if not isinstance(rows, list):
        raise BadInput(f"{name} of the calendar is not a list", hint=f"write [{example}]")
    for number, row in enumerate(rows, 1):
        fits = isinstance(row, list) and len(parts) <= len(row) <= len(parts) + 1
        if not fits or not all(isinstance(part, str) for part in row):
            raise BadInput(
                f"{name} of the calendar, entry {number}: {row!r} is not [{', '.join(parts)}]",
                hint=f"write {example}",
            )
    return rows


def _known(name: str, sets: Mapping[str, object]) -> None:
    if name not in sets:
        known = ", ".join(sets) or "none"
        raise BadInput(f"calendar names rule set '{name}', which is not under sets", hint=f"sets has: {known}")


def _local(text: str, clock: Clock) -> int:
    try:
        return clock.moment(parse_date(text))
    except (ValueError, OverflowError) as error:
        raise BadInput(
            f"calendar: '{text}' is not a date and time", hint="write it like 2026-01-06T00:00:00"
        ) from error
