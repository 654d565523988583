"""The reasons after which an attempt may be tried again: what `retry_on` of a job names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rota.errors import BadInput

#: How an attempt can end that did not do its work and was not ended by somebody.
RETRY_CODES: Final = ("exit", "signal", "memory", "time", "walltime", "disk", "lost", "not_found", "output_file")
#: What takes back a list: everything but the walltime, and what another attempt cannot help.
DEFAULT: Final = "default"


def retry_codes(words: Sequence[object]) -> tuple[str, ...] | None:
    """These codes, each once and in one order; None for the word `default`. Raises `BadInput`."""
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
