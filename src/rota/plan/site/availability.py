"""The hours in which a host may be used, and the closures of a plan that follow from them.

Hours are weekly periods (`plan.language.weekly_hours`) joined by commas: `20:00-07:00 mon-fri, * sat,sun`. A comma
begins another period if hours follow it; otherwise it separates days.
"""

from __future__ import annotations

import re
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from rota.errors import BadInput
from rota.plan.language.weekly_hours import Weekly, parse_weekly
from rota.plan.site.calendar import Calendar
from rota.plan.site.clock import SECOND, Clock, moment

if TYPE_CHECKING:
    from rota.plan.site.resources import Site

#: Closures are computed this far ahead; later ones are added as time passes.
HORIZON_S: Final = 28 * 86400.0
#: A plan renews its closures this often.
RENEW_S: Final = 86400.0
#: Always open.
ALWAYS: Final = "*"
_MOST: Final = 50
_LONGEST: Final = 1000
_NEXT: Final = re.compile(r"[,;]\s*(?=\*|\d{1,2}:\d)", re.ASCII)
_HINT: Final = "write it like '20:00-07:00 mon-fri', '08:00-18:00, * sat,sun' or '*'"


class Closure(NamedTuple):
    """A span of time, `end` excluded, in which these resources may not be used."""

    start: float
    end: float
    mask: int


def parse_hours(text: str) -> tuple[Weekly, ...]:
    """`[HH:MM-HH:MM] [DAYS]`, several joined by commas. Raises `BadInput`, which shows the format."""
    if len(text) > _LONGEST or not text.isprintable():
        raise BadInput("the hours are not a short line of text", hint=_HINT)
    parts = [part.strip() for part in _NEXT.split(text)]
    if len(parts) > _MOST:
        raise BadInput(f"the hours have more than {_MOST} periods", hint="say it with fewer")
    found = []
    for part in parts:
        try:
            found.append(parse_weekly(part))
        except BadInput as error:
            problem = error.message.replace("a period of the calendar is empty", "a period is empty")
            raise BadInput(f"hours '{text}': {problem.replace(' of the calendar', '')}", hint=_HINT) from None
    return tuple(found)


def closed_spans(hours: str, clock: Clock, start: float, end: float) -> list[tuple[float, float]]:
    """The spans between start and end that lie outside these hours, in order."""
    return _closed(_calendar(hours, clock), start, end)


def _calendar(hours: str, clock: Clock) -> Calendar:
    return Calendar(clock, weekly=[(weekly, "open") for weekly in parse_hours(hours)])


def _closed(calendar: Calendar, start: float, end: float) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for piece in calendar.pieces(moment(start), moment(end)):
        if piece.occurrences:
            continue
        begins, ends = max(start, piece.start / SECOND), min(end, piece.end / SECOND)
        if found and found[-1][1] == begins:
            found[-1] = (found[-1][0], ends)
        else:
            found.append((begins, ends))
    return found


def closures(site: Site, now: float) -> tuple[Closure, ...]:
    """All closures from now on. Hosts with hours are closed beyond the horizon as well."""
    found = [Closure(moment, inf, mask) for moment, mask in site.until.items()]
    for hours, mask in site.hours.items():
        assert site.clock is not None
        calendar = site.made.get(hours)
        if not isinstance(calendar, Calendar):
            calendar = site.made[hours] = _calendar(hours, site.clock)
        horizon = now + HORIZON_S
        if spans := _closed(calendar, now, horizon):
            found += [Closure(start, end, mask) for start, end in spans]
            found.append(Closure(horizon, inf, mask))
    return tuple(found)


def closing(found: tuple[Closure, ...], now: float) -> tuple[tuple[float, int], ...]:
    """When the last closure of resources ends, and these resources: before it, jobs need a walltime."""
    latest: dict[int, float] = {}
    for start, end, mask in found:
        if start > now:
            latest[mask] = max(end, latest.get(mask, end))
    return tuple((until, mask) for mask, until in latest.items())


def is_open(hours: str, clock: Clock, at: float) -> bool:
    """May a host with these hours be used at this moment?"""
    return not hours or not closed_spans(hours, clock, at, at + 1e-6)
