"""Weekly hours such as `08:00-19:00 mon-fri`, `22:00-06:00 fri`, `sat,sun` and `*`.

Also in OAR's form, with days of the month and months: `08:00-19:00 mon-fri * *`, `* * 24-31 dec`.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Final

from msgspec import Struct

from rota.errors import BadInput

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS: Final = {name: number for names in (_DAYS, _FULL) for number, name in enumerate(names)}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_HOURS: Final = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})", re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,2}", re.ASCII)
_ONE_DIGIT: Final = re.compile(r"^(\d{4}-\d\d-\d\d[T ])(\d:)", re.ASCII)
_JOINED: Final = re.compile(r"\s*([-,])\s*")
_HINT: Final = "write it like '08:00-19:00 mon-fri', '22:00-06:00', 'sat,sun', '*' or '08:00-19:00 mon-fri * *'"

_DAY_MINUTES: Final = 24 * 60
_MOST_PARTS: Final = 4
_LONGEST_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ALL_DATES: Final = frozenset(range(1, 32))
_ALL_MONTHS: Final = frozenset(range(1, 13))


class Weekly(Struct, frozen=True):
    """Hours that begin on the days in all three sets. `end` may lie on the next day."""

    days: frozenset[int]  #: of the week; Monday is 0
    start: int = 0  #: minutes after midnight
    end: int = _DAY_MINUTES  #: minutes after the midnight that begins the day; more than a day: on the next one
    dates: frozenset[int] = _ALL_DATES  #: days of the month
    months: frozenset[int] = _ALL_MONTHS

    def begins_on(self, day: date) -> bool:
        return day.weekday() in self.days and day.day in self.dates and day.month in self.months


def parse_weekly(text: str) -> Weekly:
    """`[HH:MM-HH:MM] [DAYS]`, either part may be left out or `*`; or OAR's four, `HOURS DAYS DATES MONTHS`, each
    of which may be `*`. Raises `BadInput`.

    Hours that end at or before their start run into the next day, and belong to the day they begin on.
    """
    words = _JOINED.sub(r"\1", text.strip().lower()).split()
    if not words:
        raise BadInput("a period of the calendar is empty", hint=_HINT)
    if len(words) not in (1, 2, _MOST_PARTS):
        raise _bad(text, f"has {len(words)} parts")
    hours: str | None = words[0]
    days = words[1] if len(words) > 1 else "*"
    dates, months = words[2:] if len(words) == _MOST_PARTS else ("*", "*")
    if len(words) == 1 and ":" not in words[0]:
        hours, days = None, words[0]
    start, end = (0, _DAY_MINUTES) if hours is None or hours == "*" else _parse_hours(hours, text)
    on = _parse_numbers(dates, text, _ALL_DATES, "day of the month")
    of = _parse_numbers(months, text, _ALL_MONTHS, "month", names=_MONTHS)
    if min(on) > max(_LONGEST_MONTHS[month - 1] for month in of):
        raise _bad(text, "there is no such day")
    return Weekly(
        days=_parse_days(days, text),
        start=start,
        end=end,
        dates=on,
        months=of,
    )


def tidy(text: str) -> str:
    """The canonical text of a period: OAR's four parts as two where these are enough."""
    words = _JOINED.sub(r"\1", text.strip().lower()).split()
    if len(words) == _MOST_PARTS:
        return " ".join(words[:2] if words[2:] == ["*", "*"] else words)
    return " ".join(text.lower().split())


def parse_date(text: str) -> datetime:
    """A date, or a date and a time, in ISO 8601; an hour may have one digit, as in OAR: `8:30`.

    Raises `ValueError`.
    """
    return datetime.fromisoformat(_ONE_DIGIT.sub(r"\g<1>0\2", text.strip()))


def _parse_hours(word: str, text: str) -> tuple[int, int]:
    match = _HOURS.fullmatch(word)
    if match is None:
        raise _bad(text, f"'{word}' is not HH:MM-HH:MM")
    hour, minute, last_hour, last_minute = map(int, match.groups())
    start, end = 60 * hour + minute, 60 * last_hour + last_minute
    if minute > 59 or last_minute > 59 or start >= _DAY_MINUTES or end > _DAY_MINUTES:
        raise _bad(text, f"'{word}' is not within 00:00-24:00")
    return start, end if end > start else end + _DAY_MINUTES


def _parse_days(word: str, text: str) -> frozenset[int]:
    if word == "*":
        return frozenset(range(7))
    days: set[int] = set()
    for part in word.split(","):
        ends = [_day(name, text) for name in part.split("-")]
        if len(ends) > 2:
            raise _bad(text, f"'{part}' has too many '-'")
        first, last = ends[0], ends[-1]
        days.update((first + number) % 7 for number in range((last - first) % 7 + 1))
    return frozenset(days)


def _parse_numbers(
    word: str, text: str, known: frozenset[int], what: str, *, names: tuple[str, ...] = ()
) -> frozenset[int]:
    """`*`, or numbers and ranges such as `1-7,15`; names stand for the numbers from 1 on."""
    if word == "*":
        return known
    found: set[int] = set()
    for part in word.split(","):
        ends = []
        for name in part.split("-"):
            number = names.index(name) + 1 if name in names else int(name) if _NUMBER.fullmatch(name) else 0
            if number not in known:
                raise _bad(text, f"'{name}' is not a {what}")
            ends.append(number)
        if len(ends) > 2:
            raise _bad(text, f"'{part}' has too many '-'")
        first, last = ends[0], ends[-1]
        found.update((first - 1 + step) % len(known) + 1 for step in range((last - first) % len(known) + 1))
    return frozenset(found)


def _day(name: str, text: str) -> int:
    number = _NUMBERS.get(name)
    if number is None:
        raise _bad(text, f"'{name}' is not a day, the days are {' '.join(_DAYS)}")
    return number


def _bad(text: str, wrong: str) -> BadInput:
    return BadInput(f"period '{text}' of the calendar: {wrong}", hint=_HINT)
