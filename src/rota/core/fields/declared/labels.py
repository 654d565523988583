"""What a job is called, and where it runs."""

from __future__ import annotations

from typing import Final

from rota.core.fields import kinds
from rota.core.fields.field import ADD_ANEW, JobField

FIELDS: Final = (
    JobField(
        name="name", kind=kinds.TEXT, default="", flags=("-n", "--name"), label="name", run=True,
        help="A label.",
    ),
    JobField(
        name="group", kind=kinds.GROUPS, default="default", flags=("-g", "--group"), many=True, run=True,
        help="Report group; repeatable (default: the file's name, or 'default').",
        wr="rep_grp", wr_alike=True,
    ),
    JobField(
        name="cwd", kind=kinds.DIRECTORY, default=..., view="", run=True,
        help="Working directory (default: here).",
    ),
    JobField(
        name="scratch", kind=kinds.FLAG, default=False, run=True,
        help="Run in a new private directory with its own TMPDIR, removed afterwards.",
        fixed=("whether the directory is its own is part of what the job is", ADD_ANEW),
    ),
    JobField(
        name="env", kind=kinds.ENVIRONMENT, default=(), many=True, in_spec=False, sent_type="bytes",
        comment="added to the captured environment, sorted",
        help="Set a variable, in addition to the current environment.",
    ),
)  # fmt: skip
