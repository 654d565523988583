"""The fields that `modify` may change in existing jobs, and advice for those it may not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rota.client.fields.fields import FIELDS, check_request, checked, flag_of, refuse_name
from rota.errors import BadInput
from rota.wire.messages import SpecChange

#: Fields whose name in a specification includes a unit.
_RENAMED: Final = {
    "time": "time_s",
    "type": "types",
    "walltime": "walltime_s",
    "backoff": "backoff_s",
    "no_retry_over": "no_retry_over_s",
    "checkpoint": "checkpoint_s",
}

_NEW: Final = "remove the job and add it anew"
#: Field → why it cannot be changed, and what to do.
REFUSED: Final = {
    "cmd": ("the command is what the job is", _NEW),
    "cwd": ("the directory is part of what the job is", _NEW),
    "scratch": ("whether the directory is its own is part of what the job is", _NEW),
    "env": ("the environment was captured when the job was added", _NEW),
    "array": ("a job stays the element that it is", "add another array"),
    "array_file": ("a job stays the element that it is", "add another array"),
    "after": ("what a job waits for is fixed when it is added", _NEW),
    "dep_groups": ("its dependency groups are fixed when it is added", "add another job to the group"),
    "live": ("what a job waits for is fixed when it is added", _NEW),
    "allow_empty_group": ("what a job waits for is fixed when it is added", _NEW),
    "at": ("a reservation is granted when the job is added, and never moved", _NEW),
    "input_file": ("its size was taken when the job was added", "give input_bytes"),
    "job_key": ("who may enter a job is fixed when it is added", _NEW),
    "rerun": ("is for adding jobs", "run jobs again with 'rota retry', or add them with --rerun"),
    "once": ("is for adding jobs", "leave it out"),
    "allow_unsatisfiable": ("is for adding jobs", "leave it out"),
    "dry_run": ("is for adding jobs", "see what would be changed with 'rota jobs'"),
}
CHANGEABLE: Final = tuple(name for name in FIELDS if name not in REFUSED)


def spec_change(fields: Mapping[str, object], *, text: bool = False) -> SpecChange:
    """The change described by these fields. `text`: values are words of the command line.

    Raises `BadInput` that names the field, also if no field is given.
    """
    for name in fields:
        if name in REFUSED:
            why, instead = REFUSED[name]
            where = flag_of(name) if text else f"field '{name}'"
            raise BadInput(f"{where} cannot be modified: {why}", hint=instead)
        if name not in FIELDS:
            refuse_name(name, CHANGEABLE)
    if not fields:
        raise BadInput("nothing is to be changed", hint="give what to change, for example --mem 4G")
    new = checked(fields, text=text)
    check_request(new, text=text)
    return SpecChange(**{_RENAMED.get(name, name): value for name, value in new.items()})
