"""Shared by the parsers of requests, expressions and types: names, quotes, and texts in error messages.

Columns count characters of the user's text from 1. Everything here takes time linear in its input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from rota.errors import BadInput

#: The longest text a person may give, in characters.
LONGEST: Final = 64 * 1024
#: Canonical text, which Rota wrote, is at most twice as long as the user's.
LONGEST_CANONICAL: Final = 2 * LONGEST

BLANKS: Final = " \t\r\n"
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}(?![A-Za-z0-9_])")
#: Words with a meaning of their own in requests and expressions, in any case.
RESERVED: Final = frozenset("and or not in like yes no true false walltime".split())

_STRETCH: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MOST_SHOWN: Final = 40
_MOST_LISTED: Final = 12


def require_readable(text: str, *, what: str, longest: int = LONGEST) -> None:
    """Raise `BadInput` if the text is too long, or not valid Unicode."""
    if len(text) > longest:
        raise BadInput(f"the {what} has {len(text)} characters", hint=f"at most {longest} are allowed")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"the {what} is not valid Unicode at column {error.start + 1}", hint="remove it") from None


def shown(text: str) -> str:
    """The text for an error message: printable, short and quoted."""
    cut = text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."
    return "'" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut) + "'"


def found(text: str, at: int) -> str:
    """The text at this index, for "expected …, found …"."""
    if at >= len(text):
        return "the end"
    match = _STRETCH.match(text, at)
    return shown(match[0] if match else text[at])


def end_of_text(text: str, start: int) -> int:
    """The index after the quoted text that begins at `start`; a doubled quote is part of it. -1: not closed."""
    quote = text[start]
    at = start + 1
    while (at := text.find(quote, at)) >= 0:
        if not text.startswith(quote, at + 1):
            return at + 1
        at += 2
    return -1


def not_closed(start: int) -> BadInput:
    return BadInput(f"the text that begins at column {start} is not closed", hint="add the missing quote")


def suggestion(name: str, known: Iterable[str], *, what: str) -> str:
    """A hint for an unknown name: the closest known one, else all of them if they are few."""
    names = sorted(known)
    for other in names:
        if other.lower() == name.lower():
            return f"did you mean '{other}'?"
    import difflib

    close = difflib.get_close_matches(name[:60], names, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    if not names:
        return f"there are no {what}"
    if len(names) <= _MOST_LISTED:
        return f"{what}: {', '.join(names)}"
    return f"there are {len(names)} {what}, such as {', '.join(names[:3])}"
