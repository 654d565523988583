"""Options of adding jobs, not fields of a job: what becomes of equal jobs, and of jobs that no host can run."""

from __future__ import annotations

from typing import Final

from rota.core.fields import kinds
from rota.core.fields.field import JobField

FIELDS: Final = (
    JobField(
        name="rerun", kind=kinds.FLAG, default=False, in_spec=False,
        help="Run ended jobs again, as new jobs that replace them. Other jobs are left alone.",
        fixed=("is for adding jobs", "run jobs again with 'rota retry', or add them with --rerun"),
    ),
    JobField(
        name="once", kind=kinds.FLAG, default=False, in_spec=False,
        help="With a command after --: do not add it twice.",
        fixed=("is for adding jobs", "leave it out"),
    ),
    JobField(
        name="allow_unsatisfiable", kind=kinds.FLAG, default=False, in_spec=False,
        help="Accept jobs that no host can run now.",
        fixed=("is for adding jobs", "leave it out"),
    ),
)  # fmt: skip
