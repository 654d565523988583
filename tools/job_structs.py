"""Writes the structs in which fields of jobs travel, from the declarations in `rota.core.fields`.

A template lists the members of a struct in the order in which they are encoded. `@name` stands for the field of
that name with a default, `@!name` for one without; other lines are members that are no fields of a job. Fields
that came after the first release (`JobField.number`) follow the template by themselves, so that peers and
databases of earlier releases go on.

`python tools/job_structs.py` writes the modules; a test fails when they are not current.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from rota.core.fields.field import JobField
from rota.core.fields.table import FIELDS

_SOURCE = Path(__file__).parents[1] / "src" / "rota"
_WIDTH = 115


class Member(NamedTuple):
    """One line of a struct."""

    name: str
    type: str
    default: str
    comment: str = ""

    def lines(self, *, required: bool) -> list[str]:
        value = "" if required else f" = {self.default}"
        line = f"    {self.name}: {self.type}{value}"
        if not self.comment:
            return [line]
        short = f"{line}  #: {self.comment}"
        return [short] if len(short) <= _WIDTH else [f"    #: {self.comment}", line]


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _wanted(field: JobField) -> Member:
    return Member(field.name, field.kind.type, _literal(field.default), field.comment)


def _sent(field: JobField) -> Member:
    default = field.default if field.spec_default is None else field.spec_default
    type = field.sent_type or field.spec_type or field.kind.type
    return Member(field.spec_name, type, _literal(default), field.comment)


def _stored(field: JobField) -> Member:
    default = field.default if field.spec_default is None else field.spec_default
    return Member(field.spec_name, field.spec_type or field.kind.type, _literal(default), field.comment)


def _changed(field: JobField) -> Member:
    type = field.sent_type or field.kind.type
    type = type.replace(" | None", " | UnsetType | None") if " | None" in type else f"{type} | UnsetType"
    return Member(field.spec_name, type, "UNSET", field.comment)


def _shown(field: JobField) -> Member:
    kind = field.kind
    type = kind.view or kind.type
    default = field.default if field.spec_default is None else field.spec_default
    value = _literal(default if kind.shown is None else kind.shown(default))
    return Member(field.view_name, type, "field(default_factory=list)" if value == "[]" else value, field.comment)


class Shape(NamedTuple):
    """A struct to write."""

    head: str  #: its class statement and docstring
    template: str
    member: Callable[[JobField], Member]
    has: Callable[[JobField], bool]  #: which fields that came later


_SPEC = Shape(
    '''\
class SpecRecord(Struct, frozen=True, kw_only=True, gc=False):
    """What the jobs of a submission have in common, as it is stored."""
''',
    """\
    user: str
@!cwd
    env: int  #: id of the stored environment
@group @name @project @queue @priority
    size: Size = Size()
@walltime @retries @backoff @no_retry_over @scratch @pipefail @limits @dep_groups @live @allow_empty_group @learn
@override
    given: tuple[str, ...] = ()  #: which of mem, disk and time the user gave
@on_success @on_failure @on_exit @stdout @stderr @request @where @type @at @checkpoint @signal
    interactive: bool = False  #: its command has a terminal with a client attached
@job_key @retry_on
    wrote: AsWritten | None = None  #: what was asked for, if the site's rules changed it
""",
    _stored,
    lambda field: field.in_spec,
)
_NEW_SPEC = Shape(
    '''\
class NewSpec(Message, frozen=True):
    """A specification as a client sends it. The manager fills in user and environment."""
''',
    """\
@!cwd @!group @!name @!project @!queue @!priority
    size: Size
@!walltime @!retries @!backoff @!no_retry_over @!scratch @!pipefail
    env: int  #: index into the submission's environments
@limits @dep_groups @live @allow_empty_group @learn @override
    given: tuple[str, ...] = ()
@on_success @on_failure @on_exit @stdout @stderr @request @where @type @at
    interactive: bool = False
@job_key @checkpoint @signal @retry_on
""",
    _sent,
    lambda field: field.in_spec,
)
_CHANGE = Shape(
    '''\
class SpecChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Changes to a specification: only changed fields are sent, by name. A field unknown to the other side is
    refused rather than lost."""
''',
    """\
@name @group @project @priority @cpus @mem @disk @time @gpus @walltime @retries @backoff @no_retry_over @pipefail
@limits @learn @override @input_bytes @on_success @on_failure @on_exit @stdout @stderr @queue @request @where @type
@checkpoint @signal @retry_on @cwd @env @after
    cmd: Command | UnsetType = UNSET
""",
    _changed,
    lambda field: field.fixed is None,
)
_RUN = Shape(
    '''\
class RunSpec(Message, frozen=True):
    """What a runner needs to know to run jobs of one specification."""
''',
    """\
    id: int
    env: int
@!cwd
    user: str
@!name @!group
    size: Size
@!walltime @!scratch @!pipefail @on_success @on_failure @on_exit @stdout @stderr
    interactive: bool = False
@checkpoint @signal
    done_at_walltime: bool = False  #: reaching its walltime is its normal end
""",
    _sent,
    lambda field: field.run,
)
_VIEW = Shape(
    '''\
class JobView(Struct, kw_only=True, gc=False):
    """One job. In a list `attempts` is a number; in `show` it is the list of attempts."""
''',
    """\
    id: int
    key: str
    cmd: Command
    cwd: str | None
@!name @!group
    user: str
@!project @!queue @!priority
    state: str
    reason: ReasonView | None
@request @where @type @at
    size: SizeView
@limits
    after: list[str] = field(default_factory=list)
@dep_groups
    attempts: int | list[AttemptView]
    attempt: int
    exit_code: int | None
    signal: str | None
    host: str | None
    pool: str
    resources: str | None  #: allocated or, while it waits, planned: ids, like 1-8,17
    submitted_at: datetime
    ready_at: datetime | None
    scheduled_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    expected_start: datetime | None
    wall_s: float | None  #: without suspended time
    cpu_s: float | None
    peak_mem_bytes: int | None
    peak_disk_bytes: int | None
@!retries
    retries_left: int
    walltime_s: float | None  #: from its specification or request (the longest alternative); rules may have set it
@!scratch
    story: list[StoryLine] | None = None  #: only in `show`
    array_id: int | None = None
    array_index: int | None = None
    #: its size by the specification, including defaults; `amounts` has only what the user asked for. Without a
    #: time, the walltime is used
    asked: SizeView | None = None
    learned: LearnedView | None = None  #: only in `show`
    learn: str = ""  #: the learning group
@override
    input_bytes: int | None = None
@live @pipefail @on_success @on_failure @on_exit @stdout @stderr
    given: list[str] = field(default_factory=list)  #: fields of `asked` (mem, disk, time) that are not defaults
    backoff_s: float | None = None  #: null: from a manager of an earlier release
@no_retry_over
    expected_end: datetime | None = None
    given_walltime_s: float | None = None  #: of its attempt; null: no attempt, or no walltime
    asked_priority: int | None = None  #: if rules or the queue changed it
    pending_walltime_s: float | None = None  #: asked for with `rota walltime`, not yet granted
    suspended_s: float | None = None  #: of the newest attempt, up to now; null: never suspended
    suspended_at: datetime | None = None  #: since when it is suspended; null: it is not
@checkpoint @signal
    #: all hosts of the present or last attempt; the first is `host`
    hosts: list[str] = field(default_factory=list)
@retry_on
    #: the job that replaced it; 0: removed from its input; null: not replaced
    replaced_by: int | None = None
    expected_reason: ReasonView | None = None  #: why its expected start or end is unknown
    amounts: AmountsView | None = None  #: asked, learned, and the newest attempt's given and used amounts
    promised: PromisedView | None = None  #: for a reservation that began with fewer resources
    groups: list[str] = field(default_factory=list)  #: all its report groups; the first is `group`
    #: waiting, installing (its machines are provisioned), running, hold (it has ended and keeps them); null: none
    phase: str | None = None
    #: wait_s + provision_s + the execution of its newest attempt + hold_s = the time since its submission
    wait_s: float | None = None
    provision_s: float | None = None
    hold_s: float | None = None
""",
    _shown,
    lambda field: field.in_spec and bool(field.view_name),
)
_WANTED = Shape(
    '''\
class WantedRecord(Struct, frozen=True, kw_only=True):
    """Everything about one job except its command. The defaults are those of `rota add`."""
''',
    "".join(f"@{'!' * (each.default is ...)}{name}\n" for name, each in FIELDS.items() if not each.number)
    + """\
    given: tuple[str, ...] = ()  #: fields of `LEARNED` that the user gave
    interactive: bool = False
""",
    _wanted,
    lambda field: True,
)

_NOTE = "Made by `make generated` from `rota.core.fields`; change the declarations, not this module."
#: Module → its docstring and imports, and the structs in it.
MODULES: dict[str, tuple[str, tuple[Shape, ...]]] = {
    "core/jobs/spec_record.py": (
        f'''\
"""The fields of a specification.

{_NOTE}
"""

from __future__ import annotations

from msgspec import Struct

from rota.core.jobs.as_written import AsWritten
from rota.plan.need import LimitUse
from rota.plan.size import Size
''',
        (_SPEC,),
    ),
    "wire/job_structs.py": (
        f'''\
"""Fields of jobs in messages: what clients send and change, and what runners are told.

{_NOTE}
"""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from rota.core.jobs.command import Command
from rota.plan.size import Size
from rota.wire.greeting import Message
from rota.wire.new_after import NewAfter
from rota.wire.new_use import NewUse
''',
        (_NEW_SPEC, _CHANGE, _RUN),
    ),
    "wire/job_view.py": (
        f'''\
"""One job as clients see it: the object behind `--json` and the Python API.

{_NOTE}
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field

from rota.core.jobs.command import Command
from rota.wire.job_parts import (
    AmountsView,
    AttemptView,
    LearnedView,
    PromisedView,
    ReasonView,
    SizeView,
    StoryLine,
)
''',
        (_VIEW,),
    ),
    "client/fields/wanted_record.py": (
        f'''\
"""The fields of one job after its defaults, parsed.

{_NOTE}
"""

from __future__ import annotations

from msgspec import Struct

from rota.core.fields.after import Dependency
from rota.core.fields.array import Array
from rota.core.fields.limits import WantedLimit
''',
        (_WANTED,),
    ),
}


def _body(shape: Shape, fields: Iterable[JobField]) -> list[str]:
    known = {field.name: field for field in fields}
    lines: list[str] = []
    for line in shape.template.splitlines():
        if not line.startswith("@"):
            lines.append(line)
            continue
        for word in line.split():
            name = word.lstrip("@!")
            lines += shape.member(known[name]).lines(required="!" in word)
    later = sorted((field for field in known.values() if field.number), key=lambda field: field.number)
    for field in later:
        if shape.has(field):
            lines += shape.member(field).lines(required=False)
    return lines


def text_of(module: str, fields: Iterable[JobField] = tuple(FIELDS.values())) -> str:
    """The text of a module."""
    fields = tuple(fields)
    numbers = [field.number for field in fields if field.number]
    if len(set(numbers)) < len(numbers):
        raise SystemExit("two fields have the same number")
    head, shapes = MODULES[module]
    parts = ["\n".join([shape.head, *_body(shape, fields)]) for shape in shapes]
    return "\n\n".join([head, *(f"{part}\n" for part in parts)])


def main() -> int:
    for module in MODULES:
        (_SOURCE / module).write_text(text_of(module), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
