"""Converts each field of a wr job to Rota's fields. Pure; one function per field that differs.

Only forms that differ are handled here. A value that both programs write alike is passed on unchanged and checked
with the other fields of a job, so there is one place for such checks.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

from msgspec import Struct

from rota.core.fields.after import dependency_group
from rota.core.fields.limits import NAME as LIMIT
from rota.core.fields.table import FIELDS
from rota.core.fields.values import shown, with_commas
from rota.errors import BadInput
from rota.units import MAX_SECONDS, format_duration

#: Fields that differ only in name, with wr's name. Errors must use wr's name.
SAME: Final = {field.wr: name for name, field in FIELDS.items() if field.wr_alike}
WR_NAME: Final = {name: field.wr for name, field in FIELDS.items() if field.wr}
#: Fields of wr without an equivalent, with what they would have changed, so that users can judge.
_LEFT_OUT: Final = {
    "cloud_os": "it chooses machines of a cloud",
    "cloud_username": "it chooses machines of a cloud",
    "cloud_ram": "it chooses machines of a cloud",
    "cloud_flavor": "it chooses machines of a cloud",
    "cloud_script": "it prepares machines of a cloud",
    "cloud_config_files": "it prepares machines of a cloud",
    "cloud_shared": "it prepares machines of a cloud",
    "mounts": "nothing is mounted for the job",
    "mount_json": "nothing is mounted for the job",
    "monitor_docker": "a container that the job starts is not measured",
    "bsub_mode": "a bsub in the job is the real one",
    "queue": "it names a queue of LSF",
    "queues_avoid": "it names queues of LSF",
    "misc": "it is for bsub",
    "group": "the job runs with your own Unix groups",
    "modules": "load them in the command",
    "reserve_timeout": "runners decide that themselves",
}

_MICRO: Final = Decimal("1e-6")
_UNITS: Final = {
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": 1000 * _MICRO,
    "us": _MICRO,
    "\u00b5s": _MICRO,  # two letters that look alike
    "\u03bcs": _MICRO,
    "ns": _MICRO / 1000,
}
_TIME: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(h|ms|m|s|us|\u00b5s|\u03bcs|ns)")
_OVERRIDE: Final = {0: "no", 1: "higher", 2: "always"}
_CLOCK: Final = r"(\d\d):(\d\d):(\d\d)"
_DATE: Final = r"(\d{4}-\d\d-\d\d) +(\d\d:\d\d:\d\d)"
_DATES: Final = re.compile(rf"(?:{_DATE}\s*<\s*)?datetime(?:\s*<\s*{_DATE})?", re.ASCII)
_WINDOW: Final = re.compile(rf"(?:{_CLOCK}\s*<\s*)?time(?:\s*<\s*{_CLOCK})?", re.ASCII)
_UPDATE: Final = re.compile(r"(.+):(-?[0-9]{1,12})", re.ASCII | re.DOTALL)


class WrPlace(Struct, frozen=True):
    """The context of a line: its directory, and whether jobs run there."""

    cwd: str
    cwd_matters: bool = False


class Parsed(Struct, gc=False):
    """One job while its fields are read, in the order in which wr's object has them."""

    said: str  #: the original command, by which other jobs may depend on it
    cmd: str
    scratch: bool
    cwd: str  #: part of the job's identity; "" if the directory does not matter
    fields: dict[str, object]
    warnings: tuple[str, ...] = ()
    #: fields that were dropped, with a message for each
    lost: tuple[tuple[str, str], ...] = ()
    #: limits declared in the line: name, and the declaration for the manager
    declared: tuple[tuple[str, str], ...] = ()
    #: the commands it depends on, each with the directory by which wr identifies it
    parents: tuple[tuple[str, str], ...] = ()

    def warn(self, message: str) -> None:
        self.warnings += (message,)

    def lose(self, field: str, message: str) -> None:
        """Record that a field has no equivalent."""
        self.warn(f"field '{field}': {message}")
        self.lost += ((field, f"field '{field}': {message}"),)

    def declare(self, name: str, limit: str) -> None:
        self.declared += ((name, limit),)


def parse(cmd: str | None, given: Mapping[str, object], place: WrPlace) -> Parsed:
    """One job of wr. Raises `BadInput` whose message begins with the field, by wr's name."""
    # wr ignores the case of names, and treats null, "" and [] as not given.
    said = {name.lower(): value for name, value in given.items() if value not in (None, "", [], {})}
    own = said.pop("cmd", None)
    twice = cmd is not None and own is not None
    if cmd is None:
        if own is None:
            raise BadInput("missing", field="cmd", hint='write it like {"cmd": "sleep 1"}')
        cmd = _text("cmd", own)
    matters = _flag("cwd_matters", said.pop("cwd_matters", False)) or place.cwd_matters
    stated = "cwd" in said
    cwd = _text("cwd", said.pop("cwd", place.cwd))
    job = Parsed(said=cmd, cmd=cmd, scratch=not matters, cwd=cwd if matters else "", fields={})
    if twice:
        job.warn("field 'cmd': given twice; what stands before the tab is taken")
    if matters:
        job.fields["scratch"] = False
        if stated:  # even if it is the current directory: the job may be added from elsewhere
            job.fields["cwd"] = cwd
    for name, value in said.items():
        _one(job, name, value)
    _finish(job, said)
    return job


def _one(job: Parsed, name: str, value: object) -> None:
    if name in SAME:
        job.fields[SAME[name]] = value
    elif name in _CHANGED:
        _CHANGED[name](job, name, value)
    elif name in _LEFT_OUT:
        if value is not False:
            job.lose(name, f"has no equivalent and is left out: {_LEFT_OUT[name]}")
    elif name not in _TOGETHER:
        job.lose(shown(name), "is none of wr's and is left out")


def _finish(job: Parsed, said: Mapping[str, object]) -> None:
    """Settle what depends on several fields: the command itself, and what is kept of its directory."""
    for kind in ("with_docker", "with_singularity"):
        if kind in said:
            job.cmd = _contained(job, kind, said)
            break
    else:
        if "container_mounts" in said:
            job.lose("container_mounts", "there is no container; it is left out")
    if _flag("change_home", said.get("change_home", False)) and job.scratch:
        job.cmd = f'export HOME="$PWD"; {job.cmd}'
    ending = job.fields.get("on_exit")
    if job.scratch and isinstance(ending, list) and "cleanup" not in ending:
        job.warn("field 'on_exit': has no cleanup, so wr would have kept the job's directory; Rota removes it")


def _contained(job: Parsed, kind: str, said: Mapping[str, object]) -> str:
    """The command, piped to a shell in a container with the job's directory mounted."""
    image = shlex.quote(_text(kind, said[kind]))
    mounts = _text("container_mounts", said.get("container_mounts", ""))
    places = [shlex.quote(one if ":" in one else f"{one}:{one}") for one in mounts.split(",") if one]
    feed = f"printf '%s\\n' {shlex.quote(job.cmd)}"
    if kind == "with_singularity":
        binds = "".join(f" --bind {one}" for one in places)
        return f'{feed} | singularity shell --pwd "$PWD" --bind "$PWD"{binds} {image}'
    env = job.fields.get("env")
    names = "".join(f" --env {shlex.quote(name)}" for name in env) if isinstance(env, dict) else ""
    volumes = "".join(f" --volume {one}" for one in places)
    return f'{feed} | docker run --rm -i --volume "$PWD:$PWD" --workdir "$PWD"{volumes}{names} {image} /bin/sh'


# ------------------------------------------------------------------ one function a field


def _time(job: Parsed, name: str, value: object) -> None:
    text = _text(name, value).strip()
    seconds = Decimal(0)
    at = 0
    for found in _TIME.finditer(text):
        if found.start() != at:
            break
        seconds += Decimal(found[1]) * _UNITS[found[2]]
        at = found.end()
    if text in ("0", "+0", "-0"):
        at = len(text)
    if at == len(text) and not seconds:
        return  # not given, or the feature is off
    rota = {"time": "time", "no_retry_over_walltime": "no_retry_over"}[name]
    # A time that only Rota understands, such as 2d, is accepted too; an invalid one is refused with the other
    # fields.
    known = at == len(text) and seconds < MAX_SECONDS
    job.fields[rota] = format_duration(max(float(seconds), 1e-6)) if known else text


def _disk(job: Parsed, name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadInput("must be a whole number of gigabytes", field=name, hint="write it like 10")
    job.fields["disk"] = f"{value}G"


def _override(job: Parsed, name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value not in _OVERRIDE:
        raise BadInput("must be 0, 1 or 2", field=name, hint="0 is no, 1 is higher, 2 is always")
    job.fields["override"] = _OVERRIDE[value]


def _env(job: Parsed, name: str, value: object) -> None:
    pairs = {}
    for word in _texts(name, value):
        variable, equals, content = word.partition("=")
        if not equals or not variable:
            raise BadInput(f"'{shown(word)}' is not NAME=VALUE", field=name, hint='write it like ["LANG=C"]')
        pairs[variable] = content
    job.fields["env"] = pairs


def _dep_groups(job: Parsed, name: str, value: object) -> None:
    job.fields["dep_groups"] = _groups(name, value)


def _deps(job: Parsed, name: str, value: object) -> None:
    job.fields["after"] = [f"@{group}" for group in _groups(name, value)]


def _cmd_deps(job: Parsed, name: str, value: object) -> None:
    if not isinstance(value, list):
        raise BadInput("must be a list of objects", field=name, hint='write it like [{"cmd": "x", "cwd": ""}]')
    for one in value:
        keys = {key.lower(): content for key, content in one.items()} if isinstance(one, dict) else {}
        if isinstance(keys.get("essence"), dict):
            keys = {key.lower(): content for key, content in keys["essence"].items()}
        if not isinstance(keys.get("cmd"), str):
            raise BadInput("must be objects with cmd and cwd", field=name, hint='{"cmd": "x", "cwd": ""}')
        job.parents += ((keys["cmd"], _text(name, keys.get("cwd") or "")),)


def _limits(job: Parsed, name: str, value: object) -> None:
    names: dict[str, str] = {}  #: → how the job names it
    between = ["", ""]
    for word in _texts(name, value):
        word = word.strip()
        if re.search(r"<.*\bdatetime\b|\bdatetime\b.*<", word):
            _narrow(between, name, word)
        elif "<" in word:
            window, hours = _window(name, word)
            if hours != "00:00-00:00":  # the whole day
                job.declare(window, f"{window}@{hours}")
                names[window] = window
        elif update := _UPDATE.fullmatch(word):
            units = int(update[2])
            job.declare(update[1], f"{update[1]}:{units if units >= 0 else 'any'}")
            names[update[1]] = update[1]
        else:
            # As in wr, an undeclared limit does not restrict any job.
            names.setdefault(word, f"{word}:any")
    for one in names:
        if not LIMIT.fullmatch(one):
            raise BadInput(
                f"'{shown(one)}' cannot be a limit",
                field=name,
                hint="use letters, digits and . _ - (at most 64)",
            )
    if names:
        job.fields["limits"] = list(names.values())
    if any(between):
        kinds = zip(("postpone", "expire"), between, strict=True)
        job.fields["type"] = [f"{kind}={moment}" for kind, moment in kinds if moment]


def _narrow(between: list[str], name: str, word: str) -> None:
    """A job starts after the latest start date and before the earliest end date."""
    found = _DATES.fullmatch(word)
    if found is None or not (found[1] or found[3]):
        raise BadInput(
            f"'{shown(word)}' is not a date and time", field=name, hint="2030-07-01 12:00:00 < datetime"
        )
    if found[1]:
        between[0] = max(between[0], f"{found[1]}T{found[2]}")
    if found[3]:
        between[1] = min(between[1] or "~", f"{found[3]}T{found[4]}")


def _window(name: str, word: str) -> tuple[str, str]:
    """A time of day as the name of a limit and its window."""
    found = _WINDOW.fullmatch(word)
    if found is None or not (found[1] or found[4]) or not _is_span([int(part or 0) for part in found.groups()]):
        raise BadInput(f"'{shown(word)}' is not a time of day", field=name, hint="17:00:00 < time < 20:00:00")
    begin = f"{found[1] or '00'}:{found[2] or '00'}" + (f":{found[3]}" if found[3] not in (None, "00") else "")
    end = f"{found[4] or '00'}:{found[5] or '00'}" + (f":{found[6]}" if found[6] not in (None, "00") else "")
    return f"time_{begin.replace(':', '')}_{end.replace(':', '')}", f"{begin}-{end}"


def _is_span(parts: list[int]) -> bool:
    """Are these two valid times of a day that differ? Midnight twice is the whole day."""
    begin, end = ((h * 60 + m) * 60 + s for h, m, s in (parts[:3], parts[3:]))
    if max(parts[1:3] + parts[4:]) > 59 or max(begin, end) > 86_400:
        return False
    return begin != end or begin == 0


def _behaviours(job: Parsed, name: str, value: object) -> None:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise BadInput("must be a list of objects", field=name, hint='write it like [{"cleanup": true}]')
    found: list[str] = []
    for one in value:
        keys = {key.lower(): content for key, content in one.items() if content}
        if "run" in keys:
            found.append(f"run: {_text(name, keys['run'])}")
        elif "copy_to_manager" in keys:
            job.lose(name, "copy_to_manager has no equivalent and is left out")
        elif "cleanup" in keys or "cleanup_all" in keys:
            # Without a directory of its own there is nothing to clean up, and wr ignores it too.
            if job.scratch:
                found.append("cleanup")
        elif "remove" in keys:
            found.append("remove")
        elif keys and "nothing" not in keys:
            unknown = shown(next(iter(keys)))
            raise BadInput(f"there is no behaviour '{unknown}'", field=name, hint="run, cleanup or remove")
    job.fields[name] = found


_CHANGED: Final[dict[str, Callable[[Parsed, str, object], None]]] = {
    "time": _time,
    "no_retry_over_walltime": _time,
    "disk": _disk,
    "override": _override,
    "env": _env,
    "dep_grps": _dep_groups,
    "deps": _deps,
    "cmd_deps": _cmd_deps,
    "limit_grps": _limits,
    "on_failure": _behaviours,
    "on_success": _behaviours,
    "on_exit": _behaviours,
}
_TOGETHER: Final = ("with_docker", "with_singularity", "container_mounts", "change_home")


# ------------------------------------------------------------------ kinds of values


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadInput("must be a text", field=name, hint="put it in quotes")
    return value


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadInput("must be true or false", field=name, hint="without quotes")
    return value


def _texts(name: str, value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadInput("must be a list of texts", field=name, hint='write it like ["a", "b"]')
    return list(value)


def _groups(name: str, value: object) -> list[str]:
    try:
        return list(dict.fromkeys(with_commas(dependency_group(group)) for group in _texts(name, value)))
    except BadInput as error:
        raise error.at(field=name) from None
