"""The codes of `retry_on`: reasons after which a job is tried again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rota.errors import BadInput

#: Ends of attempts that failed and that no user caused.
RETRY_CODES: Final = (
    *("exit", "signal", "memory", "time", "walltime", "disk", "lost", "not_found", "output_file"),
    *("provision", "exception", "import", "result"),
)
#: Resets the list: all codes but the walltime, and none that another attempt cannot change.
DEFAULT: Final = "default"


def retry_codes(words: Sequence[object]) -> tuple[str, ...] | None:
    """These codes, each once and in a fixed order; None for the word `default`. Raises `BadInput`."""
    if list(words) == [DEFAULT]:
        return None
    for word in words:
        if word not in RETRY_CODES:
            from rota.plan.language.reading import shown

            text = word.strip() if isinstance(word, str) else str(word)
            raise BadInput(
                f"{shown(text)} is not a reason after which an attempt is tried again",
                hint=f"use {', '.join(RETRY_CODES)}, or {DEFAULT} alone",
            )
    return tuple(code for code in RETRY_CODES if code in words)
