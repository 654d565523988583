"""The records of a site, kind by kind, and the checks of their values.

A record is (kind, name, value); the value is plain JSON. The name of a resource is its number, its value holds its
properties. What concerns a whole host is in the record of the host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from rota.errors import BadInput
from rota.plan.language.expression_tree import Kind
from rota.plan.site.availability import parse_hours
from rota.plan.site.node_facts import Figure, NodeFacts

KINDS: Final = (
    "property", "resource", "host", "node", "energy", "queue", "quota", "calendar", "rule", "share", "setting",
    "machine_group",
)  # fmt: skip

#: kind → name → value
Records = Mapping[str, Mapping[str, Any]]

State = Literal["alive", "absent", "suspected", "dead"]
MachineCondition = Literal["automated", "manual", "broken", "removed"]
#: `failed`: it did not wake up.
EnergyState = Literal["falling", "asleep", "waking", "failed"]

#: The setting that names the levels of the hierarchy, the widest first.
LEVELS_SETTING: Final = "levels"
LEVELS: Final = ("cluster", "switch", "host", "cpu", "core")
#: The setting that names the properties by which resources are preferred, `-name` for the larger first.
PREFER_SETTING: Final = "prefer"
#: Properties that every resource has. The core is the resource itself: its value is its id.
BUILT_IN: Final[dict[str, Kind]] = {
    "cluster": "text", "switch": "text", "host": "text", "cpu": "integer", "core": "integer",
}  # fmt: skip
#: Built-in properties that cannot be set.
PLACE: Final = ("host", "cpu", "core")

#: Bounded, because all resources travel in one message.
MOST_RESOURCES: Final = 100_000
MOST_ID: Final = 1_000_000
_TEXT_MAX: Final = 200
_PROPERTY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_GROUP: Final = re.compile(r"[A-Za-z0-9._:-]{1,100}", re.ASCII)
#: Words with a meaning of their own in requests and expressions.
_RESERVED: Final = frozenset("all and best false half_best in like no node nodes not or true walltime yes".split())


class PropertyRecord(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A property that resources may have."""

    type: Kind = "text"


class HostRecord(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a host has besides its cores, and whether jobs may run there."""

    mem: Figure | None = None  #: bytes; None: any amount
    disk: Figure | None = None
    gpus: Annotated[int, Meta(ge=0, le=100_000)] = 0
    limits: dict[str, Figure] = {}
    state: State = "alive"
    by: str = ""  #: the hook that set the state; empty: an administrator
    why: str = ""  #: the hook's reason
    drain: bool = False  #: no new jobs
    reason: Annotated[str, Meta(max_length=200)] = ""  #: the administrator's reason for the state or the drain
    available_until: float | None = None  #: wall time from which it may not be used any more
    hours: str = ""  #: when it may be used (`plan.site.availability`); empty: what its agent says, else always
    condition: MachineCondition = "automated"
    condition_reason: Annotated[str, Meta(max_length=500)] = ""
    owner: Annotated[str, Meta(max_length=200)] = ""  #: user who is told of its troubles; empty: nobody
    groups: list[str] = []  #: machine groups
    provision_cmd: Annotated[str, Meta(max_length=10_000)] = ""  #: installs it anew for a job
    manual_user: str = ""  #: who has reserved it by hand
    manual_until: float | None = None  #: wall time at which that ends
    wanted_by: str = ""  #: who gets it by hand as soon as it is free
    wanted_s: float = 0.0  #: for how long
    returns_to: MachineCondition = "automated"  #: its condition when that user returns it


class MachineGroupRecord(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Machines that belong together, and what outsiders may have of them."""

    cap: int | None = None  #: highest priority of a job of an outsider there; None: no cap
    users: list[str] = []  #: its members


class EnergyRecord(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A node that Rota has put to sleep. A node that is awake has no such record."""

    state: EnergyState
    since: float  #: wall time
    why: str = ""


class NodeRecord(NodeFacts, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The last report of a node's agent, so that an absent node is known and keeps its ids. The host's own record
    overrides it."""

    ids: list[int] = msgspec.field(default_factory=list)  #: of its cores


Check = Callable[[str, Any], None]

#: The highest priority that a job can have.
MOST_PRIORITY: Final = 255
#: What msgspec says of a text that is too long.
_TOO_LONG: Final = re.compile(r"Expected `str` of length <= (\d+) - at `\$\.(\w+)`")


def as_struct(what: str, value: Any, kind: Any) -> Any:
    """A value converted to the struct of its kind. Raises `BadInput`, which names the field."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        if (found := _TOO_LONG.fullmatch(str(error))) is not None:
            name = found[2].replace("_", " ")
            raise BadInput(f"{what}: its {name} has more than {found[1]} characters", hint="shorten it") from None
        text = str(error).replace("`", "'").replace("Object contains unknown field", "there is no field")
        raise BadInput(f"{what}: {text[:1].lower()}{text[1:]}", hint="see 'rota --help'") from None


def _check_property(name: str, value: Any) -> None:
    if not _PROPERTY.fullmatch(name):
        raise BadInput(
            f"'{shortened(name)}' cannot be the name of a property",
            hint="begin with a letter, then letters, digits and _, at most 64",
        )
    if name.lower() in _RESERVED:
        raise BadInput(f"'{name}' has a meaning of its own in requests", hint="use another name")
    if name in BUILT_IN:
        raise BadInput(f"property '{name}' is built in", hint="see 'rota property list'")
    as_struct(f"property '{name}'", value, PropertyRecord)


def _check_resource(name: str, value: Any) -> None:
    if not (name.isascii() and name.isdigit() and str(int(name)) == name and 0 < int(name) <= MOST_ID):
        raise BadInput(f"'{shortened(name)}' is not the id of a resource", hint=f"use 1 to {MOST_ID:,}")
    if not isinstance(value, dict) or not isinstance(value.get("host"), str):
        raise BadInput(f"resource {name} has no host", hint="give it one")


def _check_host(name: str, value: Any) -> None:
    record: HostRecord = as_struct(f"host '{shortened(name)}'", value, HostRecord)
    if record.hours:
        parse_hours(record.hours)


def _check_node(name: str, value: Any) -> None:
    record: NodeRecord = as_struct(f"node '{shortened(name)}'", value, NodeRecord)
    if record.hours:
        parse_hours(record.hours)


def check_group_name(name: str) -> None:
    """Raise `BadInput` unless a machine group can have this name."""
    if not _GROUP.fullmatch(name):
        raise BadInput(
            f"'{shortened(name)}' cannot be the name of a machine group",
            hint="use letters, digits and . _ - : at most 100",
        )


def check_user_name(name: str) -> None:
    """Raise `BadInput` unless this can be one user."""
    if not name or not name.isprintable() or " " in name:
        raise BadInput(f"'{shortened(name)}' cannot be a user", hint="give the name of one user")


def _check_machine_group(name: str, value: Any) -> None:
    check_group_name(name)
    record: MachineGroupRecord = as_struct(f"machine group '{shortened(name)}'", value, MachineGroupRecord)
    if record.cap is not None and not 0 <= record.cap <= MOST_PRIORITY:
        raise BadInput(
            f"machine group '{name}': no job has the priority {shortened(str(record.cap))}",
            hint=f"give a cap from 0 to {MOST_PRIORITY}, or none",
        )
    for user in record.users:
        check_user_name(user)


def _check_energy(name: str, value: Any) -> None:
    as_struct(f"energy of '{shortened(name)}'", value, EnergyRecord)


def _check_setting(name: str, value: Any) -> None:
    if name == LEVELS_SETTING:
        levels = as_struct("setting 'levels'", value, list[str])
        if len(set(levels)) < len(levels) or "host" not in levels or levels[-1:] != ["core"]:
            raise BadInput("the levels must be different, 'host' among them and 'core' last")
    elif name == PREFER_SETTING:
        as_struct("setting 'prefer'", value, list[str])


#: Checks of the values of the site's own kinds. `core.site.record_checks` adds those of the policies.
SITE_CHECKS: Final[dict[str, Check]] = {
    "property": _check_property,
    "resource": _check_resource,
    "host": _check_host,
    "node": _check_node,
    "energy": _check_energy,
    "machine_group": _check_machine_group,
    "setting": _check_setting,
}

# ------------------------------------------------------------------ properties and levels


def kinds_of(records: Records) -> dict[str, Kind]:
    """All properties and their types."""
    added = {name: value.get("type", "text") for name, value in records.get("property", {}).items()}
    return {**BUILT_IN, **added}


def levels_of(records: Records) -> tuple[str, ...]:
    """The hierarchy, the widest level first."""
    return tuple(records.get("setting", {}).get(LEVELS_SETTING, LEVELS))


def check_value(name: str, value: Any, kind: Kind) -> None:
    """Raise `BadInput` unless the value fits a property of this type."""
    if kind == "text":
        fits = isinstance(value, str) and 0 < len(value) <= _TEXT_MAX and value.isprintable()
    elif kind == "integer":
        fits = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53
    else:
        fits = isinstance(value, bool)
    if not fits:
        example = {"text": "short text", "integer": "a whole number", "yesno": "yes or no"}[kind]
        raise BadInput(f"property '{name}': {shortened(repr(value))} is not {example}", hint=f"give {example}")


def read_value(name: str, text: str, kind: Kind) -> str | int | bool:
    """Parse a value of a property of this type. Raises `BadInput`."""
    value: str | int | bool = text
    if kind == "integer" and re.fullmatch(r"[-+]?\d{1,16}", text, re.ASCII):
        value = int(text)
    elif kind == "yesno" and text.lower() in _YES_NO:
        value = _YES_NO[text.lower()]
    check_value(name, value, kind)
    return value


_YES_NO: Final = {"yes": True, "true": True, "no": False, "false": False}


def show_value(value: Any) -> str:
    """The text that `read_value` reads back."""
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def shortened(text: str) -> str:
    """Foreign text in a message: printable, and at most 60 characters."""
    shown = text.encode("unicode_escape", "backslashreplace").decode("ascii")
    return shown if len(shown) <= 60 else shown[:57] + "..."
