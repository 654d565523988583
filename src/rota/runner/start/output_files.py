"""The files that a job names for its output, instead of having it captured.

Relative to the directory of the specification, for a job in scratch too, whose own directory is removed.
"""

from __future__ import annotations

import os

from rota.core.output import output_file_names
from rota.wire.job_structs import RunSpec
from rota.wire.orders import Grant


def output_file(pattern: str, spec: RunSpec, grant: Grant, host: str) -> str:
    """The path of the file that a pattern means for one attempt; empty if there is no pattern."""
    return os.path.join(spec.cwd, expand(pattern, spec, grant, host)) if pattern else ""


def expand(pattern: str, spec: RunSpec, grant: Grant, host: str) -> str:
    """The path that a pattern means for one attempt."""
    element = grant.element
    array, index = (None, None) if element is None else (element.array, element.index)
    return output_file_names.expand(
        pattern, job=grant.job, array=array, index=index, name=spec.name, user=spec.user, host=host
    )
