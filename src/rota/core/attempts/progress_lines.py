"""Lines in which jobs say how far they have come: `n/m text` or `n text`. Jobs and runners are not trusted."""

from __future__ import annotations

import re
from math import isfinite
from typing import Final

from msgspec.structs import replace

from rota.core.attempts.leases import JobProgress

_LONGEST: Final = 100
#: No number is larger.
_MOST: Final = 1e15
_NUMBER: Final = r"\d{1,15}(?:\.\d{1,6})?"
_LINE: Final = re.compile(rf"\s*({_NUMBER})(?:\s*/\s*({_NUMBER}))?(?:\s+(.*))?", re.ASCII | re.DOTALL)


def read_progress(line: bytes, key: tuple[int, int, int]) -> JobProgress | None:
    """What an attempt says in a line; None: nothing about progress."""
    found = _LINE.fullmatch(line.decode("utf-8", "replace"))
    if found is None:
        return None
    done, of, text = found.groups()
    return JobProgress(*key, float(done), None if of is None else float(of), _clean(text or ""))


def sane_progress(told: JobProgress) -> JobProgress | None:
    """The same within bounds; None: it cannot be true."""
    if any(not isfinite(number) or not 0 <= number <= _MOST for number in (told.done, told.of or 0)):
        return None
    return replace(told, text=_clean(told.text))


def _clean(text: str) -> str:
    """One short line without control characters."""
    words = "".join(c if c.isprintable() else " " for c in text[: 4 * _LONGEST]).split()
    return " ".join(words)[:_LONGEST]
