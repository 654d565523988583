"""Weekly hours as people write them: `08:00-19:00 mon-fri`, `22:00-06:00 fri`, `sat,sun`, `*`."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from rota.errors import BadInput

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS: Final = {name: number for names in (_DAYS, _FULL) for number, name in enumerate(names)}
_HOURS: Final = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})", re.ASCII)
_JOINED: Final = re.compile(r"\s*([-,])\s*")
_HINT: Final = "write it like '08:00-19:00 mon-fri', '22:00-06:00', 'sat,sun' or '*'"

_DAY_MINUTES: Final = 24 * 60


class Weekly(Struct, frozen=True):
    """Hours that begin on certain days of the week; Monday is 0. `end` may lie on the next day."""

    days: frozenset[int]
    start: int = 0  #: minutes after midnight
    end: int = _DAY_MINUTES  #: minutes after the midnight that begins the day; more than a day: on the next one


def parse_weekly(text: str) -> Weekly:
    """`[HH:MM-HH:MM] [DAYS]`, either part may be left out or `*`. Raises `BadInput`.

    Hours that end at or before their start run into the next day, and belong to the day they begin on.
    """
    words = _JOINED.sub(r"\1", text.strip().lower()).split()
    if not words:
        raise BadInput("a period of the calendar is empty", hint=_HINT)
    if len(words) > 2:
        raise _bad(text, f"has {len(words)} parts")
    hours: str | None = words[0]
    days = words[1] if len(words) == 2 else "*"
    if len(words) == 1 and ":" not in words[0]:
        hours, days = None, words[0]
    start, end = (0, _DAY_MINUTES) if hours is None or hours == "*" else _parse_hours(hours, text)
    return Weekly(days=_parse_days(days, text), start=start, end=end)


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


def _day(name: str, text: str) -> int:
    number = _NUMBERS.get(name)
    if number is None:
        raise _bad(text, f"'{name}' is not a day, the days are {' '.join(_DAYS)}")
    return number


def _bad(text: str, wrong: str) -> BadInput:
    return BadInput(f"period '{text}' of the calendar: {wrong}", hint=_HINT)
