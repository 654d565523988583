"""Windows of accounting. Sums are kept by the hour, so windows begin at full hours.

Days, weeks and months are those of a time zone, summer time included: a day may have 23 or 25 hours. Where
midnight is not at a full hour of UTC, a day begins with the hour that midnight is in.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta, tzinfo
from typing import Final

from rota.errors import BadInput
from rota.units import parse_duration

HOUR_S: Final = 3600
#: Windows that are shown without a start time.
LATELY: Final = 30
#: Windows in one answer.
MOST: Final = 50_000
#: The whole time in one window.
WHOLE: Final = "all"
NAMED: Final = ("hour", "day", "week", "month", WHOLE)
#: Least hours of named windows.
_LEAST: Final = {"hour": 1, "day": 23, "week": 7 * 24 - 1, "month": 28 * 24 - 1}
_LATEST: Final = 62_135_000_000  #: seconds before 1970: the year 1
#: Nothing is accounted for in the time to come; what is asked about it ends here.
_AHEAD_S: Final = 366 * 86_400.0


def length_of(window: str) -> int:
    """Hours of a window without a name. Raises `BadInput`."""
    try:
        seconds = parse_duration(window)
    except BadInput as error:
        raise BadInput(f"window: {error.message}", hint=f"use {', '.join(NAMED)} or a time such as 36h") from None
    if seconds < HOUR_S or seconds % HOUR_S:
        raise BadInput("a window must have whole hours", hint="write it like 36h, or use hour, day, week or month")
    return int(seconds // HOUR_S)


def edges(window: str, *, since: float | None, until: float | None, now: float, zone: tzinfo) -> list[int]:
    """The hours, counted from 1970, at which windows begin, and at which the last one ends; at least two.

    Named windows are whole. Windows of a given length are counted from `since`, or back from `until`.
    Raises `BadInput`.
    """
    last = now if until is None else min(until, now + _AHEAD_S)
    for at in (last, since):
        if at is not None and not -_LATEST <= at < now + _AHEAD_S + 1:  # also what is no number
            raise BadInput("this time is out of range", hint="give a date of this century")
    if until is not None and math.isnan(until):
        raise BadInput("this time is out of range", hint="give a date of this century")
    if since is not None and since >= last:
        raise BadInput("'to' is not after 'from'", hint="give a later end, or none")
    end = max(1, math.ceil(last / HOUR_S))
    if window not in _LEAST:
        return _of_length(window, since=since, end=end)
    if since is not None:
        _refuse_many(int((end * HOUR_S - since) // (_LEAST[window] * HOUR_S)))
    begin = _begin(window, end * HOUR_S - 1, zone)
    found = [_next(window, begin, zone), begin]  # the last first
    while found[-1] > 0 and (len(found) <= LATELY if since is None else found[-1] * HOUR_S > since):
        found.append(_begin(window, found[-1] * HOUR_S - 1, zone))
    found[-1] = max(0, found[-1])
    return found[::-1]


def _of_length(window: str, *, since: float | None, end: int) -> list[int]:
    if window == WHOLE:
        return [0 if since is None else max(0, int(since // HOUR_S)), end]
    hours = length_of(window)
    if since is None:
        return list(range(max(end % hours, end - LATELY * hours), end + 1, hours)) or [0, end]
    first = max(0, int(since // HOUR_S))
    _refuse_many((end - first) // hours)
    return [*range(first, end, hours), end]


def _refuse_many(number: int) -> None:
    if number > MOST:
        raise BadInput(f"these are more than {MOST:,} windows", hint="ask for a shorter time, or for days")


def _begin(window: str, at: float, zone: tzinfo) -> int:
    """The hour at which the window that a moment lies in begins."""
    if window == "hour":
        return int(at // HOUR_S)
    local = datetime.fromtimestamp(at, zone)
    day = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if window == "week":
        day = _midnight(day - timedelta(days=day.weekday()), zone)
    elif window == "month":
        day = _midnight(day.replace(day=1), zone)
    return int(day.timestamp() // HOUR_S)


def _next(window: str, hour: int, zone: tzinfo) -> int:
    """The hour at which the window after the one that begins then begins."""
    if window == "hour":
        return hour + 1
    # Some hours into it, for where midnight is not at a full hour of UTC.
    local = datetime.fromtimestamp((hour + 2) * HOUR_S, zone)
    days = 1 if window == "day" else 7 - local.weekday() if window == "week" else 32 - local.day
    day = _midnight(local + timedelta(days=days), zone)
    return int((_midnight(day.replace(day=1), zone) if window == "month" else day).timestamp() // HOUR_S)


def _midnight(day: datetime, zone: tzinfo) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=zone)
