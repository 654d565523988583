"""Settings about energy: when nodes may sleep, and how long waking takes."""

from __future__ import annotations

import re
import shlex
from typing import Final

from msgspec import Struct

from rota.errors import BadInput
from rota.plan.language.expression import parse
from rota.settings import Settings

_RULE: Final = re.compile(r"(\d{1,6})(?:\s+where\s+(.+))?", re.ASCII | re.IGNORECASE | re.DOTALL)
_HINT: Final = "write it like \"2 where gpu='YES', 1\": so many idle nodes that match, so many of any kind"


class KeepAlive(Struct, frozen=True):
    """How many idle nodes that match an expression stay awake."""

    number: int
    where: str = ""  #: property expression; empty: any node


class EnergyRules(Struct, frozen=True, kw_only=True):
    """The energy settings of a deployment."""

    sleeps: bool = False  #: is there a sleep command?
    wakes: bool = False  #: is there a wake command?
    sleep_after_s: float = 1800.0
    sleep_gap_s: float = 3600.0
    wake_s: float = 300.0
    wake_timeout_s: float = 900.0
    keep_alive: tuple[KeepAlive, ...] = ()


def rules_from(settings: Settings) -> EnergyRules:
    """What the settings say about energy. Raises `BadInput`."""
    for name in ("sleep_cmd", "wake_cmd"):
        command_words(getattr(settings, name), name)
    return EnergyRules(
        sleeps=settings.sleep_cmd is not None,
        wakes=settings.wake_cmd is not None,
        sleep_after_s=settings.sleep_after,
        sleep_gap_s=settings.sleep_gap,
        wake_s=settings.wake_time,
        wake_timeout_s=settings.wake_timeout,
        keep_alive=parse_keep_alive(settings.keep_alive) if settings.keep_alive else (),
    )


def command_words(command: str | None, name: str) -> list[str]:
    """The program and the arguments of a power command; `name` is its setting. Raises `BadInput`."""
    try:
        words = shlex.split(command or "")
    except ValueError as error:
        raise BadInput(f"{name}: {error}", hint="check its quotes") from None
    if command is not None and not words:
        raise BadInput(f"{name} is empty", hint="name a program, or leave it out")
    return words


def parse_keep_alive(text: str) -> tuple[KeepAlive, ...]:
    """Parse `N [where EXPRESSION]`, several separated by commas. Raises `BadInput`."""
    found = []
    for part in _parts(text):
        match = _RULE.fullmatch(part.strip())
        if match is None:
            raise BadInput(f"keep_alive: '{part.strip()}' is not a number of nodes", hint=_HINT)
        where = (match[2] or "").strip()
        if where:
            try:
                parse(where)
            except BadInput as error:
                raise BadInput(f"keep_alive: {error.message}", hint=error.hint or _HINT) from None
        found.append(KeepAlive(int(match[1]), where))
    return tuple(found)


def _parts(text: str) -> list[str]:
    """Split at commas outside quotes and parentheses."""
    parts, quote, depth = [""], "", 0
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "()":
            depth += 1 if letter == "(" else -1
        elif letter == "," and depth <= 0:
            parts.append("")
            continue
        parts[-1] += letter
    return parts
