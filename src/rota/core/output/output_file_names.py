"""Patterns of the names of files that jobs write their output to.

`%j` the job, `%A` its array (or the job), `%a` its index there (or 0), `%x` its name (or `job`), `%u` the
user, `%N` the host, `%%` a percent sign.
"""

from __future__ import annotations

import re
from typing import Final

LETTERS: Final = "jAaxuN"
_PATTERN: Final = re.compile(f"%([{LETTERS}%])")


def expand(
    pattern: str, *, job: int, array: int | None, index: int | None, name: str, user: str, host: str
) -> str:
    """The name that a pattern means for one job. What is filled in never adds a directory; a host that is not
    known yet (empty) stays a pattern."""
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
