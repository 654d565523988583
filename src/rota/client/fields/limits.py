"""Uses of limits as users write them: `NAME`, `NAME:NUMBER`, `NAME:any`, with a final `!` for exclusive use."""

from __future__ import annotations

import re
from typing import Final

from rota.client.fields import values
from rota.client.fields.values import kind, shown
from rota.errors import BadInput
from rota.wire.messages import NewUse

MAX_UNITS: Final = 1_000_000
MAX_LIMITS: Final = 100

NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_FORM: Final = "write it like blast, blast:2, blast:any or blast!"
_ANY: Final = "any"


def limits(value: object, text: bool) -> tuple[NewUse, ...]:
    """The limits a job uses; `none` on the command line means none. Raises `BadInput`."""
    if text and value in ("none", ["none"], ("none",)):
        return ()
    found: dict[str, NewUse] = {}
    for word in values.words(value, '["blast", "licence:2"]'):
        use = _use(word)
        if use.name in found:
            raise BadInput(f"names '{use.name}' twice", hint="give each limit once, with all its units")
        found[use.name] = use
    if len(found) > MAX_LIMITS:
        raise BadInput(f"names more than {MAX_LIMITS} limits", hint="name fewer")
    return tuple(found.values())


def _use(word: object) -> NewUse:
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
        return NewUse(name, None, exclusive)
    if units == _ANY:
        return NewUse(name, None, exclusive, declare=True)
    if not values.DIGITS.fullmatch(units) or not 1 <= int(units) <= MAX_UNITS:
        raise BadInput(
            f"'{shown(word)}': the units must be a whole number from 1 to {MAX_UNITS}",
            hint="write it like blast:2",
        )
    return NewUse(name, int(units), exclusive)
