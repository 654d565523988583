"""Parses times, sizes and names of a trace. Errors name the path of the field."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from rota.errors import BadInput
from rota.plan.site.clock import SECOND, Clock, find_zone
from rota.units import MAX_BYTES, MAX_SECONDS, parse_duration, parse_size

#: The greatest distance of a moment from the epoch of its trace, in seconds.
_FAR: Final = float(MAX_SECONDS)
_DURATION: Final = "give seconds, or text such as '90s' or '2h'"


class WrongField(BadInput):
    """A wrong field, with its path from the outside in."""

    def __init__(self, path: str, message: str, *, hint: str = "") -> None:
        super().__init__(printable(f"{path}: {message}"), hint=printable(hint))
        self.path = path
        self.wrong = message


@contextmanager
def field(path: str) -> Iterator[None]:
    """Context manager that puts this path before the fields of errors."""
    try:
        yield
    except WrongField as error:
        raise WrongField(f"{path}.{error.path}", error.wrong, hint=error.hint) from None
    except BadInput as error:
        raise WrongField(path, error.message, hint=error.hint) from None


def printable(text: str) -> str:
    """The text on one line."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def shown(text: object) -> str:
    """Foreign text for a message: printable, quoted and short; numbers unquoted."""
    if isinstance(text, float):
        return f"{text:.12g}"
    word = str(text).encode("unicode_escape", "backslashreplace").decode("ascii")
    return f"'{word if len(word) <= 60 else word[:57] + '...'}'"


def did_you_mean(name: str, known: Iterable[str], what: str) -> str:
    """The hint for a name that does not exist."""
    names = [str(word) for word in known]
    close = difflib.get_close_matches(name[:60], names, n=1)
    if close:
        return f"did you mean {shown(close[0])}?"
    listed = ", ".join(shown(word)[1:-1] for word in names[:40])
    return f"the {what} are {listed}" if names else f"there are no {what}"


def duration(value: float | str, *, least: float = 0.0) -> float:
    """Seconds: a number of them, or text such as `90s`. Raises `BadInput`."""
    seconds = parse_duration(value) if isinstance(value, str) else float(value)
    if not least <= seconds <= _FAR:
        raise BadInput(
            f"{shown(value)} is not a length of time", hint="give seconds, or text such as '90s' or '2h'"
        )
    return seconds


def walltime(value: float | str) -> float:
    """A duration above 0."""
    seconds = duration(value)
    if seconds <= 0:
        raise BadInput(f"{shown(value)} leaves no time to run", hint=_DURATION)
    return seconds


def size(value: float | str) -> int:
    """Bytes: a number of them, or text such as `64G`. Raises `BadInput`."""
    if isinstance(value, str):
        return parse_size(value)
    if not 0 <= value <= MAX_BYTES or value != int(value):
        raise BadInput(f"{shown(value)} is not a size", hint="give bytes, or text such as '500M' or '64G'")
    return int(value)


#: Bounded, because calendars are computed for the years of a trace.
_FIRST_YEAR, _LAST_YEAR = 1900, 2900


class Moments:
    """Parses the moments of a trace: seconds from its epoch, or local times of the site."""

    def __init__(self, epoch: str | None, zone: str) -> None:
        with field("timezone"):
            found = find_zone(zone)
        with field("epoch"):
            self.clock = Clock(found, None if epoch is None else _datetime(epoch))

    def read(self, value: float | str) -> float:
        """Seconds from the epoch: a number, a number as text, or a local ISO time. Raises `BadInput`."""
        if isinstance(value, str):
            try:
                seconds = float(value)
            except ValueError:
                seconds = self.clock.moment(_datetime(value)) / SECOND
        else:
            seconds = float(value)
        if not abs(seconds) <= _FAR:
            raise BadInput(
                f"{shown(value)} is too far away", hint="give seconds from the epoch, or 2026-01-05T08:00:00"
            )
        return seconds


def _datetime(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise BadInput(
            f"{shown(text)} is not a time", hint="write it like 2026-01-05T08:00:00, or in seconds from the epoch"
        ) from None
    if not _FIRST_YEAR <= found.year <= _LAST_YEAR:
        raise BadInput(f"{shown(text)} is too far away", hint=f"give a year from {_FIRST_YEAR} to {_LAST_YEAR}")
    return found
