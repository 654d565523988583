"""The fields of a job as users give them, in JSON, on the command line or in Python: checked once.

`Wanted` holds all fields of one job; `Wanted.changed` overrides some of them. Each field is checked by its
declaration in `core.fields`, combinations are checked here; errors have the field.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn

import msgspec

from rota.client.fields.wanted_record import WantedRecord
from rota.core.fields import request
from rota.core.fields.table import FIELDS, LEARNED
from rota.core.fields.values import shown
from rota.core.jobs.command import CALL_FIELDS
from rota.errors import BadInput
from rota.plan.size import CORE, Size
from rota.time_zones import local_seconds

#: Part of the contract, but not supported in this version.
# fmt: off
LATER: Final = frozenset({
    "notify", "stage_in", "stage_out",
})
# fmt: on


class Wanted(WantedRecord, frozen=True, kw_only=True):
    """Everything about one job except its command, and how the fields of a line change it."""

    @property
    def size(self) -> Size:
        return Size(cpus=self.cpus, mem=self.mem, disk=self.disk, time_s=self.time, gpus=self.gpus)

    @property
    def is_array(self) -> bool:
        return self.array is not None or self.array_file is not None

    def changed(self, fields: Mapping[str, object], *, text: bool = False) -> Wanted:
        """A copy with these fields changed. `text`: values are words of the command line, not JSON.

        Raises `BadInput` whose message begins with the field.
        """
        new = checked(fields, text=text)
        if "cwd" in new:
            new["cwd"] = tidy(os.path.join(self.cwd, new["cwd"]))
        if "env" in new:
            new["env"] = tuple(sorted((dict(self.env) | dict(new["env"])).items()))
        if not new.keys().isdisjoint(LEARNED):
            new["given"] = tuple(name for name in LEARNED if name in new or name in self.given)
        if not new.keys().isdisjoint(("input_bytes", "input_file")):
            if new.get("input_bytes") is not None and new.get("input_file") is not None:
                raise _contradiction("input_bytes", "input_file", text=text)
            # Either one replaces a default of the other.
            new = {"input_bytes": None, "input_file": None} | new
        if new.get("request"):
            check_request(new, text=text)
            new |= ONE_CORE  # in place of the defaults
        elif self.request and "request" not in new and not new.keys().isdisjoint(ONE_CORE):
            new["request"] = ()
        result = msgspec.structs.replace(self, **new)
        result._check_together(text)
        return result

    def _check_together(self, text: bool) -> None:
        """Check combinations of fields that are valid one by one."""
        if self.rerun and self.once:
            raise _contradiction("rerun", "once", text=text)
        if self.array is not None and not self.array.parts and self.array_file is None:
            error = BadInput(
                f"'{shown(self.array.text)}' picks no elements",
                hint="write it like 1-100%5, or give a file of parameters as well",
            )
            raise _named(error, "array", text)
        if not self.scratch:
            hint = "add --scratch" if text else 'add "scratch": true'
            for name in ("on_success", "on_failure", "on_exit"):
                if "cleanup" in getattr(self, name):
                    error = BadInput("'cleanup' is only for jobs with a scratch directory", hint=hint)
                    raise _named(error, name, text)
        if self.checkpoint is not None and self.walltime is not None and self.checkpoint >= self.walltime:
            error = BadInput(
                "it is not shorter than the walltime",
                hint="say how long before the end of the walltime the signal should come",
            )
            raise _named(error, "checkpoint", text)
        if self.at is not None and self.type:
            try:
                request.check_terms(self.type, self.at)
            except BadInput as error:
                raise _named(error, "at", text) from None
        if self.dep_groups:
            own = next((parent for _, _, parent in self.after if parent in self.dep_groups), None)
            if own is not None:
                loop = BadInput(
                    f"it would wait for its own group '{shown(str(own))}'",
                    hint="take it out of the group, or wait for another",
                )
                raise _named(loop, "after", text)


def checked(fields: Mapping[str, object], *, text: bool) -> dict[str, Any]:
    """Parse each field by itself. Raises `BadInput` whose message begins with the field."""
    new: dict[str, Any] = {}
    now = time.time()
    for name, value in fields.items():
        field = FIELDS.get(name)
        if field is None:
            refuse_name(name)
        try:
            new[name] = field.parse(value, text=text, now=now, local=local_seconds)
        except BadInput as error:
            raise _named(error, name, text) from None
    return new


#: Fields that a request replaces, with the values they have beside one.
ONE_CORE: Final = {"cpus": CORE, "gpus": 0}


def check_request(fields: Mapping[str, object], *, text: bool) -> None:
    """Refuse fields that contradict a request given with them. Raises `BadInput`."""
    for name in ONE_CORE:
        if name in fields and fields.get("request"):
            raise _contradiction("request", name, text=text)


def _named(error: BadInput, name: str, text: bool) -> BadInput:
    """The error with its field, as the user gave it."""
    return error.at(field=name, label=FIELDS[name].option if text else "")


def _contradiction(one: str, other: str, *, text: bool) -> BadInput:
    names = f"{FIELDS[one].option} and {FIELDS[other].option}" if text else f"fields '{one}' and '{other}'"
    return BadInput(f"{names} contradict each other", hint="give one of them").about(one)


def tidy(path: str) -> str:
    """The path without needless parts."""
    # Keep `x/../y`: if x is a link, it is not the same as y.
    return path if ".." in path.split("/") else os.path.normpath(path)


def refuse_name(name: str, known: Iterable[str] = ()) -> NoReturn:
    """Refuse the name of an unknown or unsupported field. Raises `BadInput`."""
    if name in LATER:
        raise BadInput("not supported by this version yet", field=name, hint="leave it out")
    if name == "cmd":
        raise BadInput("given twice", field="cmd", hint="give it once")
    import difflib

    names = list(known) or ["cmd", *CALL_FIELDS, *FIELDS]
    close = difflib.get_close_matches(name[:60], names, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"the fields are {', '.join(names)}"
    raise BadInput("there is no such field", field=shown(name, 60), hint=hint)
