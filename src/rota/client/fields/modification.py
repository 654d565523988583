"""The fields that `modify` may change in existing jobs, and advice for those it may not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rota.client.fields.fields import check_request, checked, refuse_name
from rota.client.fields.new_spec import sent_limits
from rota.core.fields.table import CHANGEABLE, FIELDS
from rota.errors import BadInput
from rota.wire.messages import SpecChange

#: Name → why it cannot be changed, and what to do, where that is no field besides `cmd`.
_OTHERS: Final = {
    "cmd": ("the command is what the job is", "remove the job and add it anew"),
    "dry_run": ("is for adding jobs", "see what would be changed with 'rota jobs'"),
}


def spec_change(fields: Mapping[str, object], *, text: bool = False) -> SpecChange:
    """The change described by these fields. `text`: values are words of the command line.

    Raises `BadInput` that names the field, also if no field is given.
    """
    for name in fields:
        field = FIELDS.get(name)
        fixed = _OTHERS.get(name) if field is None else field.fixed
        if fixed is not None:
            why, instead = fixed
            option = f"--{name.replace('_', '-')}" if field is None else field.option
            where = option if text else f"field '{name}'"
            raise BadInput(f"{where} cannot be modified: {why}", hint=instead).about(name)
        if field is None:
            refuse_name(name, CHANGEABLE)
    if not fields:
        raise BadInput("nothing is to be changed", hint="give what to change, for example --mem 4G")
    new = checked(fields, text=text)
    check_request(new, text=text)
    if "limits" in new:
        new["limits"] = sent_limits(new["limits"])
    return SpecChange(**{FIELDS[name].spec_name: value for name, value in new.items()})
