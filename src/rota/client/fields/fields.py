"""The fields of a job as users give them, in JSON, on the command line or in Python: checked once.

`Wanted` holds all fields of one job; `Wanted.changed` overrides some of them. All checks are here and strict, and
errors name the field. Nothing is read from the machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Struct

from rota.client.fields import request, values
from rota.client.fields.after import Dependency, after, dependency_groups
from rota.client.fields.array import Array, array
from rota.client.fields.behaviours import behaviours, check_cleanup, pattern
from rota.client.fields.limits import limits
from rota.client.fields.moments import moment
from rota.client.fields.values import shown
from rota.core.attempts.signal_names import signal_name
from rota.errors import BadInput
from rota.plan.language.retry_codes import retry_codes
from rota.plan.size import CORE, Size
from rota.wire.messages import NewUse

MAX_RETRIES: Final = 10_000
#: Fields whose values are learned unless the user gives them.
LEARNED: Final = ("mem", "disk", "time")

#: Part of the contract, but not supported in this version.
# fmt: off
LATER: Final = frozenset({
    "pool", "prefer", "force_host", "reserve", "reserve_for", "gang_same", "provision", "call", "args",
    "notify", "stage_in", "stage_out", "gang",
})
# fmt: on


class Wanted(Struct, frozen=True, kw_only=True):
    """Everything about one job except its command. The defaults are those of `rota add`."""

    cwd: str
    scratch: bool = False
    env: tuple[tuple[str, str], ...] = ()  #: added to the captured environment, sorted
    name: str = ""
    group: str = "default"
    project: str = ""
    queue: str = ""  #: empty: the rules of the site choose
    priority: int = 0
    cpus: int = CORE  #: hundredths
    mem: int
    disk: int = 0
    time: float = 3600.0
    gpus: int = 0
    given: tuple[str, ...] = ()  #: fields of `LEARNED` that the user gave
    request: tuple[str, ...] = ()  #: alternatives; instead of `cpus` and `gpus`
    where: str = ""
    walltime: float | None = None
    type: tuple[str, ...] = ()
    at: float | None = None  #: Unix seconds
    array: Array | None = None
    array_file: str | None = None
    after: tuple[Dependency, ...] = ()
    dep_groups: tuple[str, ...] = ()
    live: bool = True
    allow_empty_group: bool = False
    limits: tuple[NewUse, ...] = ()
    learn: str = ""
    override: str = ""
    input_bytes: int | None = None
    input_file: str | None = None
    retries: int = 3
    backoff: float = 30.0
    no_retry_over: float | None = None
    retry_on: tuple[str, ...] | None = None  #: None: all but walltime
    pipefail: bool = False
    on_success: tuple[str, ...] = ()
    on_failure: tuple[str, ...] = ()
    on_exit: tuple[str, ...] = ()
    stdout: str = ""
    stderr: str = ""
    checkpoint: float | None = None
    signal: str = ""
    rerun: bool = False
    once: bool = False
    allow_unsatisfiable: bool = False
    interactive: bool = False
    job_key: str | None = None  #: path of a file

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
            new["cwd"] = _tidy(os.path.join(self.cwd, new["cwd"]))
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
            raise BadInput(
                f"{_named('array', text)}: '{shown(self.array.text)}' picks no elements",
                hint="write it like 1-100%5, or give a file of parameters as well",
            )
        if not self.scratch:
            hint = "add --scratch" if text else 'add "scratch": true'
            for name in ("on_success", "on_failure", "on_exit"):
                check_cleanup(_named(name, text), getattr(self, name), hint=hint)
        if self.checkpoint is not None and self.walltime is not None and self.checkpoint >= self.walltime:
            raise BadInput(
                f"{_named('checkpoint', text)}: it is not shorter than the walltime",
                hint="say how long before the end of the walltime the signal should come",
            )
        if self.at is not None and self.type:
            try:
                request.check_terms(self.type, self.at)
            except BadInput as error:
                raise BadInput(f"{_named('at', text)}: {error.message}", hint=error.hint) from None
        if self.dep_groups:
            own = next((parent for _, _, parent in self.after if parent in self.dep_groups), None)
            if own is not None:
                raise BadInput(
                    f"{_named('after', text)}: it would wait for its own group '{shown(str(own))}'",
                    hint="take it out of the group, or wait for another",
                )


def checked(fields: Mapping[str, object], *, text: bool) -> dict[str, Any]:
    """Parse each field by itself. Raises `BadInput` whose message begins with the field."""
    new: dict[str, Any] = {}
    for name, value in fields.items():
        parse = FIELDS.get(name)
        if parse is None:
            refuse_name(name)
        try:
            new[name] = parse(value, text)
        except BadInput as error:
            raise BadInput(f"{_named(name, text)}: {error.message}", hint=error.hint) from None
    return new


#: Fields that a request replaces, with the values they have beside one.
ONE_CORE: Final = {"cpus": CORE, "gpus": 0}


def check_request(fields: Mapping[str, object], *, text: bool) -> None:
    """Refuse fields that contradict a request given with them. Raises `BadInput`."""
    for name in ONE_CORE:
        if name in fields and fields.get("request"):
            raise _contradiction("request", name, text=text)


#: Flags with another name than their field.
_FLAGS: Final = {"dep_groups": "dep-group", "limits": "limit"}


def flag_of(name: str) -> str:
    """The name of a field on the command line."""
    return f"--{_FLAGS.get(name) or name.replace('_', '-')}"


def _named(name: str, text: bool) -> str:
    return flag_of(name) if text else f"field '{name}'"


def _contradiction(one: str, other: str, *, text: bool) -> BadInput:
    names = f"{flag_of(one)} and {flag_of(other)}" if text else f"fields '{one}' and '{other}'"
    return BadInput(f"{names} contradict each other", hint="give one of them")


def _tidy(path: str) -> str:
    # Keep `x/../y`: if x is a link, it is not the same as y.
    return path if ".." in path.split("/") else os.path.normpath(path)


def refuse_name(name: str, known: Iterable[str] = ()) -> NoReturn:
    """Refuse the name of an unknown or unsupported field. Raises `BadInput`."""
    if name in LATER:
        raise BadInput(f"field '{name}': not supported by this version yet", hint="leave it out")
    if name == "cmd":
        raise BadInput("field 'cmd': given twice", hint="give it once")
    import difflib

    names = list(known) or ["cmd", *FIELDS]
    close = difflib.get_close_matches(name[:60], names, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"the fields are {', '.join(names)}"
    raise BadInput(f"field '{shown(name, 60)}': there is no such field", hint=hint)


def _signal(value: object, text: bool) -> str:
    if value is None:
        return ""
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise BadInput("must be the name of a signal", hint="write it like USR1")
    return signal_name(str(value))


def _retry_on(value: object, text: bool) -> tuple[str, ...] | None:
    words = values.words(value, "exit,lost")
    return retry_codes([word.strip() if isinstance(word, str) else word for word in words])


#: Every field of a job besides `cmd`, with the parser of its value.
FIELDS: Final[dict[str, Callable[[object, bool], Any]]] = {
    "cwd": values.path,
    "scratch": values.flag,
    "env": values.environment,
    "name": values.label,
    "group": values.groups,
    "cpus": values.cpus,
    "mem": values.size,
    "disk": values.size,
    "time": values.positive_duration,
    "gpus": values.count(0, 1024),
    "request": request.request,
    "where": request.where,
    "walltime": values.optional(values.positive_duration, word="none"),
    "type": request.types,
    "priority": values.count(0, 255),
    "project": values.project,
    "queue": request.queue,
    "at": values.optional(moment, word="none"),
    "array": values.optional(array),
    "array_file": values.optional(values.path),
    "after": after,
    "dep_groups": dependency_groups,
    "live": values.flag,
    "allow_empty_group": values.flag,
    "limits": limits,
    "learn": values.learning_group,
    "override": values.choice("no", "higher", "always"),
    "input_bytes": values.optional(values.byte_count),
    "input_file": values.optional(values.path),
    "retries": values.count(0, MAX_RETRIES),
    "backoff": values.duration,
    "no_retry_over": values.optional(values.duration, word="none"),
    "retry_on": values.optional(_retry_on),
    "pipefail": values.flag,
    "on_success": behaviours,
    "on_failure": behaviours,
    "on_exit": behaviours,
    "stdout": pattern,
    "stderr": pattern,
    "job_key": values.optional(values.path),
    "checkpoint": values.optional(values.positive_duration, word="none"),
    "signal": _signal,
    "rerun": values.flag,
    "once": values.flag,
    "allow_unsatisfiable": values.flag,
}
