"""Durations and sizes as people write them: `1h30m`, `1-12:00:00`, `4G`.

A number without a unit is refused, with a hint that names the likely unit: a job that asks for 500 bytes or
90 hours by mistake would fail much later.
"""

from __future__ import annotations

import re
from typing import Final

from rota.errors import BadInput

#: Nothing is longer than this; it keeps sums of times exact and dates representable.
MAX_SECONDS: Final = 100 * 365 * 86400
#: 1 EiB.
MAX_BYTES: Final = 1 << 60

_UNIT_S: Final = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_PARTS: Final = re.compile(
    r"(?:(\d{1,12}(?:\.\d{1,6})?)d)?(?:(\d{1,12}(?:\.\d{1,6})?)h)?"
    r"(?:(\d{1,12}(?:\.\d{1,6})?)m)?(?:(\d{1,12}(?:\.\d{1,6})?)s)?",
    re.ASCII,
)
_CLOCK: Final = re.compile(r"(?:(\d{1,6})-)?(\d{1,7}):([0-5]\d):([0-5]\d)", re.ASCII)
_NUMBER: Final = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?", re.ASCII)
_SHORT_CLOCK: Final = re.compile(r"\d+:\d+", re.ASCII)

_POWERS: Final = {"B": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_SIZE: Final = re.compile(r"(\d{1,19})(?:\.(\d{1,9}))?(?:([KMGTP])(?:I?B)?|B)", re.ASCII | re.IGNORECASE)


def _quoted(text: str) -> str:
    """The text as it may be shown in a message: printable and short."""
    shown = text.encode("unicode_escape", "backslashreplace").decode("ascii")
    return f"'{shown if len(shown) <= 40 else shown[:37] + '...'}'"


def parse_duration(text: str) -> float:
    """Seconds, from `90s 2m 1h30m 2d 12:00:00 1-12:00:00`. Raises `BadInput`."""
    word = text.strip()
    seconds = _seconds(word)
    if seconds is None:
        raise _not_a_duration(word)
    if seconds > MAX_SECONDS:
        raise BadInput(f"{_quoted(word)} is longer than 100 years", hint="write a time such as 12h or 2d")
    return seconds


def _seconds(word: str) -> float | None:
    if match := _CLOCK.fullmatch(word):
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        if match[1] is not None and hours > 23:
            return None
        return float(days * 86400 + hours * 3600 + minutes * 60 + seconds)
    if word and (match := _PARTS.fullmatch(word.lower())):
        # In microseconds, so that 1.1m is exactly 66 s.
        total = 0
        for part, unit in zip(match.groups(), _UNIT_S.values(), strict=True):
            if part:
                whole, _, fraction = part.partition(".")
                total += int(whole + fraction.ljust(6, "0")) * unit
        return total / 1_000_000
    return None


def _not_a_duration(word: str) -> BadInput:
    if _NUMBER.fullmatch(word):
        if word.startswith("-"):
            return BadInput(f"{_quoted(word)} is negative", hint="write a time such as 90s, 30m or 2h")
        number = _plain(word, "90")
        return BadInput(
            f"{_quoted(word)} has no unit",
            hint=f"write {number}s for seconds, {number}m for minutes, {number}h for hours",
        )
    if _SHORT_CLOCK.fullmatch(word):
        first, last = word.split(":")
        return BadInput(
            f"{_quoted(word)} could be hours and minutes or minutes and seconds",
            hint=f"write {first}h{last}m or {first}m{last}s",
        )
    return BadInput(
        f"{_quoted(word)} is not a time", hint="write it like 90s, 2m, 1h30m, 2d, 12:00:00 or 1-12:00:00"
    )


def parse_size(text: str) -> int:
    """Bytes, from `500M 4G 1.5T` (powers of 1024). Raises `BadInput`."""
    word = text.strip()
    match = _SIZE.fullmatch(word)
    if match is None:
        raise _not_a_size(word)
    whole, fraction, unit = match.groups()
    scale: int = 1024 ** _POWERS[(unit or "B").upper()]
    size = int(whole) * scale
    if fraction:
        # Rounded up: a request for 0.3 of a unit must not become less.
        size += -(-int(fraction) * scale // 10 ** len(fraction))
    if size > MAX_BYTES:
        raise BadInput(f"{_quoted(word)} is more than 1024P", hint="write a size such as 500M or 4G")
    return size


def _not_a_size(word: str) -> BadInput:
    if _NUMBER.fullmatch(word):
        if word.startswith("-"):
            return BadInput(f"{_quoted(word)} is negative", hint="write a size such as 500M or 4G")
        number = _plain(word, "500")
        # 4 means gigabytes and 64,000 megabytes, hardly the reverse: suggest the likely unit.
        likely = ("G", "gigabytes") if float(number) <= 64 else ("M", "megabytes")
        if float(number) >= 1 << 20:
            likely = ("B", "bytes")
        return BadInput(f"{_quoted(word)} has no unit", hint=f"write {number}{likely[0]} for {likely[1]}")
    return BadInput(f"{_quoted(word)} is not a size", hint="write it like 500M, 4G or 1.5T")


def _plain(word: str, example: str) -> str:
    """The number to repeat in a hint, if it is short and simple enough to be useful there."""
    number = word.lstrip("+")
    return number if len(number) <= 15 and number.replace(".", "", 1).isdigit() else example


def format_duration(seconds: float) -> str:
    """The shortest text that `parse_duration` reads back as the same time, to the microsecond."""
    micros = round(seconds * 1_000_000)
    if micros < 0:
        raise ValueError("a duration cannot be negative")
    whole, rest = divmod(micros, 1_000_000)
    parts: list[str] = []
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        count, whole = divmod(whole, length)
        if count:
            parts.append(f"{count}{unit}")
    if rest:
        parts.append(f"{whole}.{rest:06d}".rstrip("0") + "s")
    elif whole or not parts:
        parts.append(f"{whole}s")
    return "".join(parts)


def format_size(size: int) -> str:
    """The shortest text that `parse_size` reads back as exactly this many bytes."""
    if size < 0:
        raise ValueError("a size cannot be negative")
    if size:
        for unit in ("P", "T", "G", "M", "K"):
            scale = 1024 ** _POWERS[unit]
            if size % scale == 0:
                return f"{size // scale}{unit}"
            # 1.5T rather than 1536G: quarters are exact in decimal too.
            if scale < size < 1000 * scale and (size * 4) % scale == 0:
                return f"{size / scale:g}{unit}"
    return f"{size}B"


def about_duration(seconds: float) -> str:
    """A time for a table: two units at most, rounded."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"


def about_size(size: float) -> str:
    """A size for a table: three digits or so, rounded."""
    for unit in ("B", "K", "M", "G", "T"):
        if size < 1000 or (size < 1024 and unit == "B"):
            return f"{size:.0f}{unit}" if size >= 100 or unit == "B" else f"{size:.3g}{unit}"
        size /= 1024
    return f"{size:.0f}P" if size >= 100 else f"{size:.3g}P"
