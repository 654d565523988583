"""Patterns for the names of output files.

`%j` job, `%A` array (or job), `%a` index in the array (or 0), `%x` name (or `job`), `%u` user, `%N` host, `%%` a
percent sign.
"""

from __future__ import annotations

import re
from typing import Final

LETTERS: Final = "jAaxuN"
_PATTERN: Final = re.compile(f"%([{LETTERS}%])")


def expand(
    pattern: str, *, job: int, array: int | None, index: int | None, name: str, user: str, host: str
) -> str:
    """Expand a pattern for one job.

    Inserted values never add a directory. An unknown host (empty) stays `%N`.
    """
    values = {
        "j": str(job),
        "A": str(job if array is None else array),
        "a": str(index or 0),
        "x": _one_word(name or "job"),
        "u": _one_word(user),
        "N": _one_word(host) if host else "%N",
        "%": "%",
    }
    return _PATTERN.sub(lambda found: values[found[1]], pattern)


def _one_word(value: str) -> str:
    return "_" if value in {"", ".", ".."} else value.replace("/", "_").replace("\0", "_")
