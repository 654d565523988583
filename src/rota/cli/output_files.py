"""Where the output of a job goes that names files for it. Only names: nothing is opened."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rota.wire.views import JobView

_PATTERN: Final = re.compile(r"%([jAaxuN%])")


def output_file(job: JobView, stream: int) -> str:
    """The path that its stdout (1) or stderr (2) is written to; empty when Rota keeps it.

    What is not known yet, such as the host of a job that waits, stays a pattern.
    """
    pattern = (job.stdout if stream == 1 else job.stderr) or ""
    values = {
        "j": str(job.id),
        "A": str(job.id if job.array_id is None else job.array_id),
        "a": str(job.array_index or 0),
        "x": _one_word(job.name or "job"),
        "u": _one_word(job.user),
        "N": _one_word(job.host) if job.host else "%N",
        "%": "%",
    }
    named = _PATTERN.sub(lambda found: values[found[1]], pattern)
    # Of a job in a private directory it is not told from where it was added.
    return os.path.join(job.cwd, named) if named and job.cwd else named


def _one_word(value: str) -> str:
    """What is filled in never adds a directory."""
    return "_" if value in {"", ".", ".."} else value.replace("/", "_")
