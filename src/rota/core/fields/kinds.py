"""The kinds of values that fields of jobs have. A new kind of value is described here, once."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

import msgspec

from rota.core.attempts.signal_names import signal_name
from rota.core.fields import after, array, behaviours, limits, moments, request, values
from rota.core.fields.field import Kind
from rota.core.fields.kind_builders import optional, same, texts, unless_empty, within
from rota.core.jobs.report_groups import MOST as MOST_GROUPS
from rota.core.jobs.report_groups import first_of, names_of
from rota.errors import BadInput
from rota.plan.language.reading import shown
from rota.plan.language.retry_codes import RETRY_CODES, retry_codes
from rota.plan.size import CORE
from rota.units import MAX_BYTES, MAX_SECONDS, about_size, format_duration

#: The year 5138.
_LATEST: Final = 1e11
#: Bytes of what machines are made into: it travels in an environment variable.
MAX_PROVISION: Final = 32_768
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_ENDS: Final = ", ".join(f"`{code}`" for code in RETRY_CODES)


# ------------------------------------------------------------------ texts and flags


def _check_directory(value: str) -> None:
    if not value.startswith("/") or "\0" in value or len(value.encode()) > values.MAX_PATH:
        raise BadInput(f"{shown(value)} is not an absolute path, or a very long one")


def _check_groups(value: str) -> None:
    names = names_of(value)
    if not all(names) or len(names) > MOST_GROUPS:
        raise BadInput(f"needs names, at most {MOST_GROUPS}")
    for name in names:
        values.group(name, False)


FLAG: Final = Kind(
    type="bool", doc="true or false", parse=values.flag, check=lambda value: value, metavar="",
    text=lambda value: "yes" if value else "",
)  # fmt: skip
TEXT: Final = Kind(type="str", doc="text", parse=values.label, check=same(values.label))
PROJECT: Final = Kind(type="str", doc="text", parse=values.project, check=same(values.project))
PATH: Final = Kind(type="str", doc="path of a file", parse=values.path, check=same(values.path), metavar="PATH")
DIRECTORY: Final = Kind(type="str", doc="text", parse=values.path, check=_check_directory, metavar="DIR")
GROUPS: Final = Kind(type="str", doc="text", parse=values.groups, check=_check_groups, shown=first_of)
LEARNING_GROUP: Final = Kind(
    type="str", doc="text", parse=values.learning_group, check=same(values.learning_group), metavar="NAME"
)
ENVIRONMENT: Final = Kind(
    type="tuple[tuple[str, str], ...]",
    doc="object of texts, added to the captured environment",
    parse=values.environment,
    check=lambda value: value,
    metavar="K=V",
)


PATTERN: Final = Kind(
    type="str",
    doc="name of a file, from the job's directory, with `%j` id, `%A` array, `%a` index, `%x` name, `%u` user, "
    "`%N` host, `%%` percent sign",
    parse=behaviours.pattern,
    check=unless_empty(behaviours.pattern),
    metavar="FILE",
    view="str | None",
    shown=lambda value: value or None,
)


def _provision(value: object, text: bool) -> str:
    if value is None or value == "none":
        return ""
    if not isinstance(value, str) or not value.strip() or "\0" in value or len(value.encode()) > MAX_PROVISION:
        raise BadInput(
            "must be a command, or a name that the provision command of a node understands",
            hint=f"write it as one text of at most {MAX_PROVISION} bytes",
        )
    return value


def _check_provision(value: str) -> None:
    if value and _provision(value, False) != value:
        raise BadInput("is not in its usual form", hint="write it as 'rota show --json' does")


PROVISION: Final = Kind(
    type="str",
    doc="text: what the machines must be made into, given to the `provision_cmd` of each node, or a command that "
    'runs on nodes without one; null or `"none"`: nothing',
    parse=_provision,
    check=_check_provision,
    metavar="COMMAND",
    view="str | None",
    shown=lambda value: value or None,
    text=lambda value: value or "",
    none="none",
)


def _signal(value: object, text: bool) -> str:
    if value is None:
        return ""
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise BadInput("must be the name of a signal", hint="write it like USR1")
    return signal_name(str(value))


def _check_signal(value: str) -> None:
    if value and signal_name(value) != value:
        raise BadInput("it is not the name of a signal", hint="write it like USR1")


SIGNAL: Final = Kind(
    type="str",
    doc='name of a signal, such as `"USR1"`',
    parse=_signal,
    check=_check_signal,
    metavar="SIGNAL",
    view="str | None",
    shown=lambda value: value or None,
)


def _check_key(value: str) -> None:
    if value and not _HASH.fullmatch(value):
        raise BadInput("this is not the hash of a key", hint="give the file of a key")


JOB_KEY: Final = msgspec.structs.replace(
    optional(PATH),
    doc="path of a file with the key of jobs, which is made if it is not there; a relative path begins where the "
    "submission is made; null: none",
    check=_check_key,
    metavar="FILE",
)

# ------------------------------------------------------------------ numbers, times and sizes

_TIME_DOC: Final = 'time: `"90s"`, `"2m"`, `"1h30m"`, `"2d"`, `"12:00:00"`, `"1-12:00:00"`'
DURATION: Final = Kind(
    type="float", doc=_TIME_DOC, parse=values.duration, check=within(0, MAX_SECONDS), metavar="TIME",
    text=format_duration,
)  # fmt: skip
POSITIVE_DURATION: Final = msgspec.structs.replace(
    DURATION, parse=values.positive_duration, check=within(0, MAX_SECONDS, above=True)
)
SIZE: Final = Kind(
    type="int",
    doc='size: `"500M"`, `"4G"`, `"1.5T"` (powers of 1024)',
    parse=values.size,
    check=within(0, MAX_BYTES - 1),
    metavar="SIZE",
    text=about_size,
)
BYTES: Final = msgspec.structs.replace(SIZE, doc="size, or a whole number of bytes", parse=values.byte_count)
CPUS: Final = Kind(
    type="int",
    doc="number, 0 or more, in steps of 0.01",
    parse=values.cpus,
    check=within(0, values.MAX_CPUS * CORE),
    metavar="N",
)


def _moment(value: object, text: bool, now: float, local: moments.LocalTime) -> float:
    return moments.coming(value, now=now, local=local)


def _check_moment(value: float) -> None:
    if not 0 <= value < _LATEST:  # NaN is not
        raise BadInput("out of range")


MOMENT: Final = Kind(
    type="float",
    doc='time of a reservation: `"2026-11-16T08:00"` (local, or with a zone), `"now+10m"`, `"@1700000000"`; '
    "null or "
    '`"none"`: none',
    parse=_moment,
    timed=True,
    check=_check_moment,
    metavar="WHEN",
    view="datetime",
    shown=lambda value: datetime.fromtimestamp(value, UTC),
)

# ------------------------------------------------------------------ what the planner reads


QUEUE: Final = Kind(
    type="str",
    doc="name of a queue, as `rota queue list` shows them; QUEUES are always there",
    parse=request.queue,
    check=unless_empty(request.queue),
    metavar="NAME",
)


POOL: Final = Kind(
    type="str",
    doc="name of a pool, as `rota pool list` shows them; `local` and `nodes` are always there. null or "
    '`"none"`: the first with room',
    parse=request.pool,
    check=unless_empty(request.pool),
    metavar="NAME",
    none="none",
)


GANG: Final = Kind(
    type="str",
    doc="name of a gang: letters, digits and `.` `_` `-`; null: none",
    parse=request.gang,
    check=unless_empty(request.gang),
    metavar="NAME",
    view="str | None",
    shown=lambda value: value or None,
    text=lambda value: value or "",
)


PROPERTY: Final = msgspec.structs.replace(
    GANG,
    doc="name of a property, such as `switch`; null: none",
    parse=request.property_name,
    check=unless_empty(request.property_name),
    metavar="PROPERTY",
)


HOST: Final = msgspec.structs.replace(
    GANG,
    doc='name of a host; null or `"none"`: any',
    parse=request.host,
    check=unless_empty(request.host),
    metavar="HOST",
    none="none",
)


def _check_where(value: str) -> None:
    if value:
        request.check_texts((value,))


REQUEST: Final = Kind(
    type="tuple[str, ...]",
    doc='text, or list of alternatives: `"nodes=2/core=4,walltime=1h"`; see [requests](requests.md). null or '
    '`"none"`: none',
    parse=request.request,
    check=request.check_texts,
    metavar="REQUEST",
    view="list[str] | None",
    shown=lambda value: list(value) or None,
    text=lambda value: "  or  ".join(value or ()),
)
WHERE: Final = Kind(
    type="str",
    doc="text: a condition on the properties of resources, `\"gpu = 'YES' and mem_gb >= 64\"`; null or "
    '`"none"`: any',
    parse=request.where,
    check=_check_where,
    metavar="EXPRESSION",
    view="str | None",
    shown=lambda value: value or None,
    text=lambda value: value or "",
)
TYPES: Final = Kind(
    type="tuple[str, ...]",
    doc='list, or text with commas, of job types: `"besteffort"`, `"container"`, `"inner=12"` …',
    parse=request.types,
    timed=True,
    check=request.check_texts,
    metavar="TYPE",
    view="list[str]",
    shown=list,
)

# ------------------------------------------------------------------ lists


def _check_dep_groups(value: tuple[str, ...]) -> None:
    if not all(value) or len(set(value)) > after.MAX_GROUPS:
        raise BadInput(f"needs names, at most {after.MAX_GROUPS}")
    for name in value:
        after.dependency_group(name)


DEPENDENCIES: Final = Kind(
    type="tuple[Dependency, ...]",
    doc="list, or text with commas, of `12`, `12-15`, `@group` (a dependency group), `afterok:12`, "
    "`afterany:@group`, `afternotok:12`, and `line:3`: the job, or all jobs of the array, of line 3 of the same "
    "input "
    "(in a JSON array: its third entry), which may also stand behind a condition; in a list also "
    '`{"cmd": "make data", "cwd": "/d"}`: the job of yours with this command in this directory, without `cwd` '
    "in one "
    "of its own",
    parse=after.after,
    check=lambda value: value,
    metavar="IDS",
)
DEP_GROUPS: Final = texts(
    after.dependency_groups,
    _check_dep_groups,
    "list, or text with commas, of the groups that others may wait for",
    "NAME",
)
ARRAY: Final = Kind(
    type="Array",
    doc='text: `"1-100%5"`, `"0-99:2"`, `"1,3,7-9"`; at most 1,000,000 elements, each index once; `%5`: at most '
    "five "
    "run at once; null: no array",
    parse=array.array,
    check=lambda value: value,
    metavar="SPEC",
)
LIMITS: Final = Kind(
    type="tuple[WantedLimit, ...]",
    doc="list, or text with commas, of `name`, `name:2`, `name:any` (one unit, of a limit without a capacity if "
    "nobody "
    "has declared it), and `name!` for exclusive use; `name:N` with N up to 1,000,000",
    parse=limits.limits,
    check=limits.check_uses,
    metavar="NAME[:N][!]",
    view="list[str]",
    shown=lambda uses: [str(use) for use in uses],
)
BEHAVIOURS: Final = texts(
    behaviours.behaviours,
    behaviours.check_behaviours,
    'list of `"run: CMD"`, `"cleanup"`, `"remove"`, or of `{"run": "CMD"}`, `{"cleanup": true}`, `{"remove": '
    "true}`; "
    "`cleanup` needs `scratch`",
    "WHAT",
)


def _retry_on(value: object, text: bool) -> tuple[str, ...] | None:
    words = values.words(value, "exit,lost")
    return retry_codes([word.strip() if isinstance(word, str) else word for word in words])


def _check_retry_on(value: tuple[str, ...]) -> None:
    if retry_codes(value) != value:
        raise BadInput("its codes are not in order", hint="give each once")


RETRY_ON: Final = optional(
    texts(
        _retry_on,
        _check_retry_on,
        f"list, or text with commas, of {_ENDS}: the reasons after which an attempt is retried; null: all but "
        "`walltime`, where another attempt can help; `[]`: none",
        "CODE",
    )
)
