"""Declare, change and withdraw limits. Administrators and jobs may do so; a change takes effect at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from math import inf

import msgspec

from rota.core.attempts.parts import all_leased
from rota.core.effects import RecallLeases, SendReply
from rota.core.events import LimitsDeclared
from rota.core.restart import Restart
from rota.core.site.manager_pause import unstarted
from rota.core.stored import StoreSnapshot
from rota.core.turn import Turn
from rota.core.world import World
from rota.errors import BadInput, NotFound
from rota.plan.need import LimitUse
from rota.plan.policy.limits import ARRAY_LIMIT, Limit, Window, clock_at, minute_at

MOST_UNITS = 1_000_000_000
LIMIT_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_CLOCK = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?", re.ASCII)
_HINT = "write it like blast:5, blast:any, blast:unlimited, night@22:00-06:00 or night@always"
_DAY = 24 * 60
#: Steps after which windows are considered never open together.
_MOST_LOOKS = 64
#: The window `@always`: no restriction.
ALWAYS = Window(0, 24 * 60)


def array_limit(uses: Iterable[LimitUse]) -> str:
    """The name of the limit that bounds the array of a job; empty: none."""
    return next((use.name for use in uses if ARRAY_LIMIT.fullmatch(use.name)), "")


def parse_limit(text: str) -> tuple[str, int | None, bool, Window | None]:
    """Parse `NAME:N`, `NAME:any`, `NAME:unlimited`, `NAME@22:00-06:00`, `NAME@always` or `NAME:N@…`.

    Returns (name, units, withdrawn?, window). Raises `BadInput`.
    """
    rest, at, hours = text.strip().partition("@")
    name, colon, number = rest.partition(":")
    if not LIMIT_NAME.fullmatch(name) or not (colon or at):
        raise BadInput(f"'{text[:80]}' is not a limit", hint=_HINT)
    window = _window(hours) if at else None
    if not colon:
        return name, None, False, window
    if number == "any":
        return name, None, False, window
    if number == "unlimited":
        return name, None, window is None or window == ALWAYS, window
    if not (number.isascii() and number.isdigit()) or len(number) > 12 or int(number) > MOST_UNITS:
        raise BadInput(f"limit '{name}': '{number[:40]}' is not a number of units", hint=_HINT)
    return name, int(number), False, window


def _window(text: str) -> Window:
    if text == "always":
        return ALWAYS
    first, dash, last = text.partition("-")
    found = _CLOCK.fullmatch(first), _CLOCK.fullmatch(last)
    if not dash or found[0] is None or found[1] is None:
        raise BadInput(f"'{text[:40]}' are not hours of a day", hint="write them like 22:00-06:00, or always")
    start, end = (minute_at(int(each[1]), int(each[2]), int(each[3] or 0)) for each in found if each)
    if start > 24 * 60 or end > 24 * 60 or start % (24 * 60) == end % (24 * 60):
        raise BadInput(f"'{text[:40]}' is no span of hours within a day", hint="write them like 22:00-06:00")
    return Window(start % (24 * 60), end)


def restore_limits(world: World, restart: Restart) -> None:
    """Restore the declarations."""
    limits = world.placement.limits
    limits.minute = minute_of_day(world, restart.wall)
    for text in restart.snapshot.limits.values():
        limits.declare(msgspec.json.decode(text, type=Limit))


def unused_array_limits(snapshot: StoreSnapshot) -> list[str]:
    """Limits of arrays without a live job: no later job can name them. Other limits stay until they are removed,
    even if only jobs have declared them, since later jobs may name them."""
    declared = {name: msgspec.json.decode(text, type=Limit) for name, text in snapshot.limits.items()}
    by_jobs = {name for name, limit in declared.items() if limit.by_jobs and ARRAY_LIMIT.fullmatch(name)}
    if by_jobs:
        for number in {row.spec_id for row in snapshot.jobs}:
            by_jobs.difference_update(use.name for use in snapshot.specs[number].limits)
    return sorted(by_jobs)


def on_limits_declared(world: World, turn: Turn, event: LimitsDeclared) -> None:
    """Take new declarations; jobs start or are recalled accordingly."""
    limits = world.placement.limits
    for new in event.limits:
        old = limits.get(new.name)
        if old is None and _alone_beside_others(world, new):
            raise BadInput(
                f"limit '{new.name}' is in use by jobs that want it alone and by others",
                hint="declare it when some of them have ended",
            )
        if old is not None and bool(old.hosts) != bool(new.hosts) and limits.use(new.name)[0]:
            raise BadInput(
                f"limit '{new.name}' is in use and cannot change between global and per host",
                hint="wait until its jobs have ended, or use another name",
            )
    for name in event.withdrawn:
        if limits.get(name) is None:
            raise NotFound(f"there is no limit '{name}'", hint="list them with 'rota limit'")
    declare(world, turn, event.limits)
    for name in event.withdrawn:
        limits.withdraw(name)
        turn.changes.limits[name] = None
        world.placement.limit_changed(name)
    if event.by is not None:
        turn.effects.append(SendReply(event.by, None))


def declare(world: World, turn: Turn, new: Iterable[Limit]) -> None:
    """Put these declarations into force."""
    limits = world.placement.limits
    for limit in new:
        known = limits.get(limit.name) is not None
        limits.declare(limit)
        turn.changes.limits[limit.name] = msgspec.json.encode(limit).decode()
        # No job waits for a limit that jobs have just declared.
        if known or not limit.by_jobs:
            world.placement.limit_changed(limit.name)
            _recall(world, turn, limit.name)


def _alone_beside_others(world: World, limit: Limit) -> bool:
    """An undeclared limit stops nothing: is there already a job that wants it exclusively beside others?"""
    users: dict[str, list[bool]] = {}
    for job, host in all_leased(world):
        for use in job.spec.limits:
            if use.name == limit.name:
                users.setdefault(host if limit.hosts else "", []).append(use.exclusive)
    return any(len(exclusive_uses) > 1 and any(exclusive_uses) for exclusive_uses in users.values())


def _recall(world: World, turn: Turn, name: str) -> None:
    """Recall leases that have not started and now exceed the limit."""
    if not world.placement.limits.over(name):
        return
    for runner in world.runners.values():
        leases = [
            lease
            for lease in unstarted(world, runner)
            if any(use.name == name for use in world.jobs[lease[0]].spec.limits)
        ]
        if leases:
            turn.effects.append(RecallLeases(runner.id, leases))


# ------------------------------------------------------------------ hours


def follow_clock(world: World, turn: Turn) -> None:
    """Open and close the windows of limits as local time passes."""
    limits = world.placement.limits
    minute = minute_of_day(world, turn.wall)
    before, limits.minute = limits.minute, minute
    if minute == before:
        return
    for limit in list(limits):
        window = limit.window
        if window is not None and window.open_at(before) != window.open_at(minute):
            world.placement.limit_changed(limit.name)


def minute_of_day(world: World, wall: float) -> float:
    """Local time as minutes since midnight."""
    return _minute(world.zone, wall)


def openings(zone: tzinfo, windows: list[Window]) -> Callable[[float], tuple[float, float]]:
    """Return a function: moment → (when all these windows are open next, until when)."""

    def hours(after: float) -> tuple[float, float]:
        moment = after
        for _ in range(_MOST_LOOKS):
            shut = [window for window in windows if not window.open_at(_minute(zone, moment))]
            if not shut:
                closes = [_next(zone, window.end % _DAY, moment) for window in windows if window != ALWAYS]
                return moment, min(closes, default=inf)
            moment = max(_next(zone, window.start, moment) for window in shut)
        return inf, inf

    return hours


def _minute(zone: tzinfo, wall: float) -> float:
    local = datetime.fromtimestamp(wall, UTC).astimezone(zone)
    return minute_at(local.hour, local.minute, local.second)


def _next(zone: tzinfo, minute: float, wall: float) -> float:
    """The next moment after now at this minute of the day."""
    local = datetime.fromtimestamp(wall, UTC).astimezone(zone)
    hour, of_hour, second = clock_at(minute)
    found = local.replace(hour=hour, minute=of_hour, second=second, microsecond=0)
    if found <= local:
        found = (found + timedelta(days=1)).replace(tzinfo=zone)
    return found.timestamp()
