"""What a job waits for, and arrays."""

from __future__ import annotations

from typing import Final

from rota.core.fields import kinds
from rota.core.fields.field import ADD_ANEW, JobField
from rota.core.fields.kind_builders import optional

_ELEMENT: Final = ("a job stays the element that it is", "add another array")
_WAITS: Final = ("what a job waits for is fixed when it is added", ADD_ANEW)

FIELDS: Final = (
    JobField(
        name="array", kind=optional(kinds.ARRAY), default=None, in_spec=False, fixed=_ELEMENT,
        help="Make each command an array of jobs: 1-100, 0-99:2, 1,3,7-9; append %5 to run at most five at once.",
    ),
    JobField(
        name="array_file", kind=optional(kinds.PATH), default=None, in_spec=False, fixed=_ELEMENT,
        help="One job per line of this file; the line is appended to the command, and --array selects lines.",
        doc="path of a file with the parameters of one job on each line, without blank lines and lines that "
        "begin with "
        "`#`; the index counts the jobs from 1; a relative path begins where the submission is made. The line is "
        "appended to a text command after a blank, to a list as arguments, split as a shell does. With `array`, "
        "only "
        'the lines with these indexes; `"%5"` alone means all lines',
    ),
    JobField(
        name="after", kind=kinds.DEPENDENCIES, default=(), many=True, in_spec=False, wr="deps",
        sent_type="tuple[NewAfter, ...]",
        help="Wait for jobs: ids, ranges, @GROUP, afterok:ID (default), afterany:ID, afternotok:ID; with commas.",
    ),
    JobField(
        name="dep_groups", kind=kinds.DEP_GROUPS, default=(), flags=("--dep-group",), many=True, wr="dep_grps",
        label="in groups", comment="groups that the job is a member of",
        help="Join a group that others may wait for.",
        fixed=("its dependency groups are fixed when it is added", "add another job to the group"),
    ),
    JobField(
        name="live", kind=kinds.FLAG, default=True, flags=("--live/--no-live",), fixed=_WAITS,
        comment="also wait for members that join a group later",
        help="Also wait for jobs that join a group later (default: yes).",
    ),
    JobField(
        name="allow_empty_group", kind=kinds.FLAG, default=False, view="", fixed=_WAITS,
        help="Wait for a group that nothing has joined yet.",
    ),
    JobField(
        name="limits", kind=kinds.LIMITS, default=(), flags=("--limit",), many=True, wr="limit_grps",
        sent_type="tuple[NewUse, ...]", spec_type="tuple[LimitUse, ...]",
        help="Take units of a limit (default: 1); with !, exclusively. NAME:N declares a limit that does not "
        "exist.",
    ),
)  # fmt: skip
