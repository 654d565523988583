"""Time zones: that of this machine, and others by name."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final

from rota.errors import BadInput

_OFFSET: Final = re.compile(r"([+-])(\d\d):?(\d\d)")


def local_zone() -> tzinfo:
    """The local time zone, with its summer time."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # only a manager asks

    name = os.environ.get("TZ", "").removeprefix(":")
    try:
        if name and not name.startswith("/"):
            return ZoneInfo(name)
        with open(name or "/etc/localtime", "rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return datetime.now().astimezone().tzinfo or UTC


def local_seconds(date: datetime) -> float | None:
    """Unix seconds of a local time without a zone; None: clocks are put forward over it.

    Raises `OverflowError`, `OSError` or `ValueError` if it is out of range.
    """
    at = date.timestamp()
    return at if datetime.fromtimestamp(at) == date else None


def local_zone_name() -> str:
    """The name of the local zone in the tz database; without one, its present offset, such as +02:00."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    name = os.environ.get("TZ", "").removeprefix(":")
    if not name or name.startswith("/"):
        _before, found, name = os.path.realpath(name or "/etc/localtime").partition("/zoneinfo/")
        name = name if found else ""
    try:
        if name:
            ZoneInfo(name)
            return name
    except (OSError, ValueError, ZoneInfoNotFoundError):
        pass
    offset = datetime.now().astimezone().isoformat()[-6:]
    return "UTC" if offset == "+00:00" else offset


def zone_of(name: str) -> tzinfo:
    """A zone by its name, such as Europe/Paris, or by its offset, such as +02:00. Raises `BadInput`."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    if name.upper() in ("", "UTC", "Z"):
        return UTC
    if found := _OFFSET.fullmatch(name):
        sign, hours, minutes = found.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        if offset < timedelta(hours=24):
            return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        shown = name[:40].encode("unicode_escape").decode()
        raise BadInput(
            f"there is no time zone '{shown}'", hint="write it like Europe/Paris, +02:00 or UTC"
        ) from None
