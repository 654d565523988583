"""The fields that `modify` may change in existing jobs, and advice for those it may not."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from rota.client.fields.fields import check_request, checked, refuse_name, tidy
from rota.client.fields.new_spec import sent_limits
from rota.client.fields.parents import sent_parent
from rota.client.submit_environment import working_directory
from rota.core.fields.after import Dependency
from rota.core.fields.table import CHANGEABLE, FIELDS
from rota.core.fields.values import check_command
from rota.core.jobs.command import Command
from rota.errors import BadInput
from rota.wire.client_messages import NewAfter, SpecChange

#: Name → why it cannot be changed, and what to do, where that is no field.
_OTHERS: Final = {
    "dry_run": ("is for adding jobs", "see what would be changed with 'rota jobs'"),
}


def spec_change(fields: Mapping[str, object], *, text: bool = False) -> SpecChange:
    """The change described by these fields. `text`: values are words of the command line.

    Raises `BadInput` that names the field, also if no field is given.
    """
    others = {name: value for name, value in fields.items() if name != "cmd"}
    for name in others:
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
    new = checked(others, text=text)
    check_request(new, text=text)
    for name, convert in _SENT.items():
        if name in new:
            new[name] = convert(new[name])
    sent = {FIELDS[name].spec_name: value for name, value in new.items()}
    if "cmd" in fields:
        sent["cmd"] = _command(fields["cmd"], text=text)
    return SpecChange(**sent)


def _command(value: object, *, text: bool) -> Command:
    try:
        return check_command(value)
    except BadInput as error:
        raise error.at(field="cmd", label="--cmd" if text else "") from None


def _directory(cwd: str) -> str:
    return tidy(os.path.join(working_directory(), cwd))


def _variables(env: tuple[tuple[str, str], ...]) -> bytes:
    return b"\0".join(f"{name}={value}".encode("utf-8", "surrogateescape") for name, value in env)


def _dependencies(after: tuple[Dependency, ...]) -> tuple[NewAfter, ...]:
    found = []
    for condition, of_line, parent in after:
        if of_line:
            raise BadInput("a job that exists has no lines", field="after", hint="name the job by its id")
        found.append(msgspec.structs.replace(sent_parent(parent), condition=condition))
    return tuple(found)


#: Fields that are sent in another form than they are given.
_SENT: Final[dict[str, Callable[[Any], Any]]] = {
    "limits": sent_limits,
    "cwd": _directory,
    "env": _variables,
    "after": _dependencies,
}
