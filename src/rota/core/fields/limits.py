"""Uses of limits as users write them: `NAME`, `NAME:NUMBER`, `NAME:any`, with a final `!` for exclusive use."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from rota.core.fields import values
from rota.core.fields.values import kind, shown
from rota.errors import BadInput
from rota.plan.need import LimitUse

MAX_UNITS: Final = 1_000_000
MAX_LIMITS: Final = 100

NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_FORM: Final = "write it like blast, blast:2, blast:any or blast!"
_ANY: Final = "any"


class WantedLimit(NamedTuple):
    """A use of a limit as its user wrote it. Depending on the limit, the number is the units to take, or the
    capacity of a limit that only jobs declare."""

    name: str
    number: int | None = None
    exclusive: bool = False
    declare: bool = False  #: without a number: if the limit is undeclared, any number of jobs may run


def limits(value: object, text: bool) -> tuple[WantedLimit, ...]:
    """The limits a job uses; `none` on the command line means none. Raises `BadInput`."""
    if text and value in ("none", ["none"], ("none",)):
        return ()
    found: dict[str, WantedLimit] = {}
    for word in values.words(value, '["blast", "licence:2"]'):
        use = _use(word)
        if use.name in found:
            raise BadInput(f"names '{use.name}' twice", hint="give each limit once, with all its units")
        found[use.name] = use
    if len(found) > MAX_LIMITS:
        raise BadInput(f"names more than {MAX_LIMITS} limits", hint="name fewer")
    return tuple(found.values())


def _use(word: object) -> WantedLimit:
    if not isinstance(word, str):
        raise BadInput(f"must be texts, not {kind(word)}", hint=_FORM)
    body = word.strip()
    exclusive = body.endswith("!")
    name, colon, units = body.removesuffix("!").partition(":")
    if not NAME.fullmatch(name):
        raise BadInput(
            f"'{shown(word)}' is not a use of a limit; names have letters, digits and . _ - (at most 64)",
            hint=_FORM,
        )
    if name == "none":
        raise BadInput("'none' cannot be the name of a limit", hint="it means no limits, and stands alone")
    if not colon:
        return WantedLimit(name, None, exclusive)
    if units == _ANY:
        return WantedLimit(name, None, exclusive, declare=True)
    if not values.DIGITS.fullmatch(units) or not 1 <= int(units) <= MAX_UNITS:
        raise BadInput(
            f"'{shown(word)}': the units must be a whole number from 1 to {MAX_UNITS}",
            hint="write it like blast:2",
        )
    return WantedLimit(name, int(units), exclusive)


def check_uses(uses: tuple[LimitUse, ...]) -> None:
    """Refuse uses that no parser makes. Raises `BadInput`."""
    # An array has one limit more: on how many of its elements run at once.
    if len(uses) > MAX_LIMITS + 1 or any(not 0 < use.units <= MAX_UNITS for use in uses):
        raise BadInput("a number of units is out of range")
    if len({use.name for use in uses}) < len(uses):
        raise BadInput("a limit is named twice")
