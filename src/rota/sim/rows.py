"""Reads the resources of a trace: rows of units with levels and properties, and amounts of their hosts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from rota.errors import BadInput
from rota.plan.language.expression import Kind, Value
from rota.plan.site.bitset import parse_spans
from rota.plan.site.resources import HostFigures
from rota.sim.values import Moments, WrongField, did_you_mean, field, shown, size

Row = dict[str, str | int | float | bool | list[int] | None]

STATES: Final = ("alive", "absent", "suspected", "dead")
#: Keys of a row with a fixed meaning; all others are levels or properties.
RESERVED: Final = ("ids", "state", "drain", "available_until")

MAX_ID: Final = 999_999_999
_IDS: Final = 'write ids like "1-8", "1-8,17", 5 or [1, 2]'


class HostRow(Struct, forbid_unknown_fields=True):
    """What a host has besides its resources."""

    mem: float | str | None = None
    disk: float | str | None = None
    gpus: int = 0
    limits: dict[str, int] = {}


def host_named(name: str) -> str:
    """The name of a level; `nodes` is an alias of `host`."""
    return "host" if name == "nodes" else name


class Units(Struct, frozen=True):
    """The resources of some rows."""

    values: dict[int, dict[str, Value]] = {}  #: id → its levels and properties
    usable: frozenset[int] = frozenset()  #: alive and not draining
    until: dict[int, float] = {}  #: id → when it may not be used any more

    def __or__(self, other: Units) -> Units:
        """These and those; no id is in both."""
        values, until = self.values | other.values, self.until | other.until
        return Units(values, self.usable | other.usable, until)

    @property
    def hosts(self) -> list[str]:
        """The hosts that they are on, in order."""
        return list(dict.fromkeys(str(own["host"]) for own in self.values.values() if "host" in own))


def read_rows(rows: Sequence[Row], moments: Moments) -> Units:
    """The resources in the rows of a document. Raises `BadInput` with the path of the field."""
    if not rows:
        raise WrongField("resources", "there are none", hint='give rows such as {"ids": "1-8", "host": "n1"}')
    values: dict[int, dict[str, Value]] = {}
    usable: set[int] = set()
    until: dict[int, float] = {}
    for number, row in enumerate(rows):
        with field(f"resources[{number}]"):
            found = read_row(row, moments, known=values)
            values |= found.values
            usable |= found.usable
            until |= found.until
    return Units(values, frozenset(usable), until)


def read_row(row: Row, moments: Moments, *, known: Collection[int]) -> Units:
    """The resources in one row; the ids must not be `known`. Raises `BadInput` with the path of the field."""
    own = _values(row)
    ends = _until(row, moments)
    alive = _alive(row)
    with field("ids"):
        ids = ids_of(row.get("ids"))
    values: dict[int, dict[str, Value]] = {}
    for id in ids:
        if id in known or id in values:
            raise WrongField("ids", f"{id} is given twice", hint="each resource has one row")
        values[id] = dict(own)
    return Units(
        values,
        frozenset(ids) if alive else frozenset(),
        {} if ends is None else dict.fromkeys(ids, ends),
    )


def ids_of(given: object) -> list[int]:
    """The ids in `"1-8,17"`, a number, or a list of numbers. Raises `BadInput`."""
    if isinstance(given, bool) or given is None or given == "" or given == []:
        raise BadInput("it names no resources", hint=_IDS)
    if isinstance(given, int):
        found = [given]
    elif isinstance(given, str):
        found = parse_spans(given)
    elif isinstance(given, list):
        found = list(given)
    else:
        raise BadInput(f"{given} is not an id", hint=_IDS)
    for id in found:
        if not 0 <= id <= MAX_ID:
            raise BadInput(f"{id} is not an id", hint=f"ids are whole numbers from 0 to {MAX_ID}")
    return found


def _values(row: Row) -> dict[str, Value]:
    """Levels and properties of a row."""
    own: dict[str, Value] = {}
    for key, value in row.items():
        if key in RESERVED or value is None:
            continue
        name = host_named(key)
        if not name.isidentifier():
            raise BadInput(f"{shown(key)} cannot be the name of a property", hint="use letters, digits and _")
        if isinstance(value, float | list):
            raise WrongField(key, f"{value} is not a value", hint="give text, a whole number, or true or false")
        if name == "host":
            value = str(value)
        own[name] = value
    return own


def _until(row: Row, moments: Moments) -> float | None:
    value = row.get("available_until")
    if value is None:
        return None
    with field("available_until"):
        if isinstance(value, bool | list):
            raise BadInput(f"{value} is not a time", hint="give seconds from the epoch")
        return moments.read(value)


def _alive(row: Row) -> bool:
    state = row.get("state", "alive")
    if state not in STATES:
        raise WrongField(
            "state", f"there is no state {shown(state)}", hint=did_you_mean(str(state), STATES, "states")
        )
    drain = row.get("drain", False)
    if not isinstance(drain, bool):
        raise WrongField("drain", f"{shown(drain)} is neither true nor false", hint="write true or false")
    return state == "alive" and not drain


def levels_of(given: Sequence[str] | None, values: Iterable[Mapping[str, Value]]) -> tuple[str, ...]:
    """The levels from the widest to the unit. By default hosts, if there are any, and cores."""
    known = {name for own in values for name in own}
    if given is None:
        return ("host", "core") if "host" in known else ("core",)
    names = [host_named(name) for name in given]
    for number, name in enumerate(names):
        with field(f"levels[{number}]"):
            if not name.isidentifier() or name in RESERVED:
                raise BadInput(f"{shown(name)} cannot be a level", hint="use letters, digits and _")
            if name in names[:number]:
                raise BadInput(f"{shown(name)} is given twice", hint="name each level once")
            if name not in known and number < len(names) - 1:
                raise BadInput(
                    f"no resource has a {shown(name)}", hint=did_you_mean(name, known, "keys of the rows")
                )
    if not names:
        raise WrongField("levels", "there are none", hint='write them like ["switch", "host", "core"]')
    return tuple(names)


def kinds_of(values: Mapping[int, dict[str, Value]], unit: str) -> dict[str, Kind]:
    """The kind of each property; numbers mixed with text become text. The unit's value defaults to its id."""
    for id, own in values.items():
        own.setdefault(unit, id)
    kinds: dict[str, Kind] = {}
    for own in values.values():
        for name, value in own.items():
            kind: Kind = "yesno" if isinstance(value, bool) else "integer" if isinstance(value, int) else "text"
            if kinds.setdefault(name, kind) != kind:
                kinds[name] = "text"
    for own in values.values():
        for name, value in own.items():
            if kinds[name] == "text" and not isinstance(value, str):
                own[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return kinds


def figures_of(hosts: Mapping[str, HostRow], known: set[str]) -> dict[str, HostFigures]:
    found: dict[str, HostFigures] = {}
    for name, host in hosts.items():
        with field(f"hosts.{name}"):
            if name not in known:
                raise BadInput(f"no resource is on {shown(name)}", hint=did_you_mean(name, sorted(known), "hosts"))
            if host.gpus < 0:
                raise WrongField("gpus", f"{host.gpus} is negative", hint="give a number of GPUs")
            for limit, units in host.limits.items():
                if units < 0:
                    raise WrongField(f"limits.{limit}", f"{units} is negative", hint="give a number of units")
            with field("mem"):
                mem = None if host.mem is None else size(host.mem)
            with field("disk"):
                disk = None if host.disk is None else size(host.disk)
            found[name] = HostFigures(mem=mem, disk=disk, gpus=host.gpus, limits=dict(host.limits))
    return found
