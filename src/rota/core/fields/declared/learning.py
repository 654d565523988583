"""How the size of a job is learned."""

from __future__ import annotations

from typing import Final

from rota.core.fields import kinds
from rota.core.fields.field import JobField
from rota.core.fields.kind_builders import choice, optional

FIELDS: Final = (
    JobField(
        name="learn", kind=kinds.LEARNING_GROUP, default="", view="", wr="req_grp", wr_alike=True,
        comment="learning group; empty: the program's name",
        help="Learning group: jobs with similar needs (default: the program's name).",
    ),
    JobField(
        name="override", kind=choice("no", "higher", "always"), default="", label="override",
        comment="empty: higher for `given` fields, no for the others",
        help="Which amounts count: the learned ones (no), the higher of learned and given (higher), or the "
        "given ones "
        "(always). Without it, given amounts are lower bounds, and the others are learned.",
    ),
    JobField(
        name="input_bytes", kind=optional(kinds.BYTES), default=None, in_spec=False,
        help="Size of the input, used to predict what the job needs; a plain number is bytes.",
    ),
    JobField(
        name="input_file", kind=optional(kinds.PATH), default=None, in_spec=False,
        help="File whose size is that of the input.",
        doc="path of a file, from the job's directory, whose size is that of the input",
        fixed=("its size was taken when the job was added", "give input_bytes"),
    ),
)  # fmt: skip
