"""The paths that a job's output is written to, if it names files. No file is opened."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rota.core.output.output_file_names import expand

if TYPE_CHECKING:
    from rota.wire.views import JobView


def output_file(job: JobView, stream: int) -> str:
    """The path of its stdout (1) or stderr (2); empty if Rota keeps the output.

    Values that are not known yet, such as the host of a waiting job, stay patterns.
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
    # A job in a private directory has no known `cwd`.
    return os.path.join(job.cwd, named) if named and job.cwd else named
