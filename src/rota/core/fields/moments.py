"""Moments as users write them: `2026-11-16T08:00`, `now+10m`, `+10m`, `-2d`, `@1700000000`.

A time without a zone is local to the user, and the caller says what that means. The result is Unix seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

from rota.core.fields.values import kind, shown
from rota.errors import BadInput
from rota.units import MAX_SECONDS, parse_duration

#: Unix seconds of a local time without a zone; None: clocks are put forward over it. Raises what
#: `datetime.timestamp` raises.
LocalTime = Callable[[datetime], float | None]

_EPOCH: Final = re.compile(r"@[0-9]{1,12}(?:\.[0-9]{1,6})?", re.ASCII)
_RELATIVE: Final = re.compile(r"(?:now)?\s*([+-])\s*(\S.*)", re.ASCII | re.IGNORECASE)
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]*)?", re.ASCII)
_HINT: Final = "write it like 2026-11-16T08:00, now+10m or @1700000000"


def coming(value: object, *, now: float, local: LocalTime) -> float:
    """A moment that has not passed at the time `now`. Raises `BadInput`."""
    if not isinstance(value, str):
        raise BadInput(f"must be a text, not {kind(value)}", hint=_HINT)
    at = parse_moment(value, now=now, local=local)
    # `date -Is` prints the current second, which has already begun.
    if at < math.floor(now):
        raise BadInput(f"'{shown(value.strip())}' is in the past", hint="give a time to come, such as now+10m")
    return at


def parse_moment(text: str, *, now: float, local: LocalTime) -> float:
    """Unix seconds, past or future. Relative times are rounded up to whole seconds. Raises `BadInput`."""
    word = text.strip()
    if word.lower() == "now":
        at = float(math.ceil(now))
    elif _EPOCH.fullmatch(word):
        at = float(word[1:])
    elif relative := _RELATIVE.fullmatch(word):
        length = parse_duration(relative[2])
        at = float(math.ceil(now + length if relative[1] == "+" else now - length))
    elif _NUMBER.fullmatch(word):
        raise BadInput(f"'{shown(word)}' is only a number", hint=f"write @{word[:12]} for Unix seconds")
    else:
        at = _date(word, local)
    if at > now + MAX_SECONDS:
        raise BadInput(f"'{shown(word)}' is more than 100 years away", hint=_HINT)
    return at


def _date(word: str, local: LocalTime) -> float:
    try:
        date = datetime.fromisoformat(word)
    except ValueError:
        raise BadInput(f"'{shown(word)}' is not a time", hint=_HINT) from None
    try:
        at = local(date) if date.tzinfo is None else date.timestamp()
    except (OverflowError, OSError, ValueError):
        raise BadInput(f"'{shown(word)}' is out of range", hint=_HINT) from None
    if at is None:
        raise BadInput(
            f"'{shown(word)}' does not exist here: clocks are put forward over it",
            hint="give another time, or a zone",
        )
    return at
