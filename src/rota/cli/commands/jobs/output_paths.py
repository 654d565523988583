"""Where the output of a job goes that names files for it. Only names: nothing is opened."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rota.core.output.output_file_names import expand

if TYPE_CHECKING:
    from rota.wire.views import JobView


def output_file(job: JobView, stream: int) -> str:
    """The path that its stdout (1) or stderr (2) is written to; empty when Rota keeps it.

    What is not known yet, such as the host of a job that waits, stays a pattern.
    """
    pattern = (job.stdout if stream == 1 else job.stderr) or ""
    named = expand(
        pattern,
        job=job.id,
        array=job.array_id,
        index=job.array_index,
        name=job.name,
        user=job.user,
        host=job.host or "",
    )
    # Of a job in a private directory it is not told from where it was added.
    return os.path.join(job.cwd, named) if named and job.cwd else named
