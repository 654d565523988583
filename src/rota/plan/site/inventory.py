"""Adding, changing and removing resources: turns a request into changes of the site's records.

Nothing is written here. The caller applies the changes in one transaction.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from rota.errors import BadInput, NotFound
from rota.plan.language.expression import Kind, Value, check, matches, parse
from rota.plan.language.hostlist import fold
from rota.plan.language.reading import suggestion
from rota.plan.site.records import MOST_RESOURCES, PLACE, HostRecord, Records, kinds_of, read_value
from rota.plan.site.site_builder import host_record, own_ids, recorded_hosts, taken_ids, values_by_id
from rota.plan.size import Capacity

Change = tuple[str, str, Any]

MOST_PER_HOST: Final = 100_000
_LIST: Final = "list them with 'rota resource list'"
_INTEGER: Final = re.compile(r"[-+]?\d{1,15}", re.ASCII)


def guess_kind(text: str) -> Kind:
    """The type of an undeclared property, guessed from one of its values."""
    return "yesno" if text.lower() in ("yes", "no") else "integer" if _INTEGER.fullmatch(text) else "text"


class HostChange(Struct, frozen=True, kw_only=True):
    """A change of whole hosts; fields that are not set stay as they are."""

    mem: int | UnsetType | None = UNSET
    disk: int | UnsetType | None = UNSET
    gpus: int | UnsetType = UNSET
    state: str | UnsetType = UNSET
    drain: bool | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    available_until: float | UnsetType | None = UNSET
    hours: str | UnsetType = UNSET
    limits: dict[str, int | None] = {}  #: None takes a limit away

    def __bool__(self) -> bool:
        return self != HostChange()

    def applied(self, record: HostRecord) -> HostRecord:
        given = {name: value for name in _HOST_FIELDS if (value := getattr(self, name)) is not UNSET}
        limits = {**record.limits, **self.limits}
        given["limits"] = {name: units for name, units in limits.items() if units is not None}
        if "state" in given:  # overrides an earlier decision of a hook
            given |= {"by": "", "why": ""}
        if "state" in given or "drain" in given:
            given.setdefault("reason", "")
        return msgspec.structs.replace(record, **given)


_HOST_FIELDS: Final = ("mem", "disk", "gpus", "state", "drain", "reason", "available_until", "hours")


class Inventory:
    """All resources: the recorded ones, and the cores of hosts without records."""

    def __init__(self, records: Records, own: Mapping[str, list[int]]) -> None:
        self.records = records
        self.kinds = kinds_of(records)
        self.own = {host: ids for host, ids in own.items() if ids}
        self.rows = values_by_id(records, self.own)

    @classmethod
    def of(cls, records: Records, capacity: Mapping[str, Capacity]) -> Inventory:
        return cls(records, own_ids(records, capacity, {}))

    def by_host(self, ids: Iterable[int]) -> dict[str, list[int]]:
        """These resources by host, hosts in the order of their first resource."""
        found: dict[str, list[int]] = {}
        for id in ids:
            found.setdefault(str(self.rows[id]["host"]), []).append(id)
        return found

    # -- choosing

    def select(
        self, *, hosts: Collection[str] | None = None, ids: Iterable[int] | None = None, where: str | None = None
    ) -> list[int]:
        """The ids that meet all conditions, ascending. Raises `NotFound` for an unknown host or id."""
        chosen = set(self.rows)
        if hosts is not None:
            known = self.by_host(self.rows)
            if missing := [host for host in hosts if host not in known]:
                raise NotFound(f"there is no host '{fold(missing)[:200]}'", hint=_LIST)
            chosen &= {id for host in hosts for id in known[host]}
        if ids is not None:
            wanted = set(ids)
            if missing_ids := wanted - self.rows.keys():
                raise NotFound(f"there is no resource {min(missing_ids)}", hint=_LIST)
            chosen &= wanted
        if where is not None:
            expression = parse(where)
            check(expression, self.kinds)
            chosen = {id for id in chosen if matches(expression, self.rows[id])}
        return sorted(chosen)

    # -- values

    def read_values(self, words: Iterable[str], *, create: bool = False) -> tuple[dict[str, Value], list[Change]]:
        """The values of `name=value` words; with `create`, also the properties to add for them."""
        values: dict[str, Value] = {}
        added: list[Change] = []
        for word in words:
            name, equals, text = word.partition("=")
            if not equals:
                raise BadInput(f"'{word[:80]}' sets nothing", hint="write NAME=VALUE")
            if name in values:
                raise BadInput(f"property '{name}' is given twice", hint="give it once")
            kind = self._kind(name, text, create=create)
            if name not in self.kinds:
                added.append(("property", name, {"type": kind}))
            values[name] = read_value(name, text, kind)
        return values, added

    def _kind(self, name: str, text: str, *, create: bool) -> Kind:
        if name in PLACE:
            raise BadInput(f"property '{name}' is built in and cannot be set", hint="use another name")
        kind = self.kinds.get(name)
        if kind is not None:
            return kind
        if create:
            return guess_kind(text)
        if name in ("mem", "disk", "gpus", "state"):
            raise BadInput(f"'{name}' is not a property but a figure of a host", hint=f"use --{name} {text[:40]}")
        raise self._unknown(name)

    def require(self, name: str) -> None:
        """Raise `BadInput` unless the property exists and can be set."""
        if name not in self.kinds:
            raise self._unknown(name)
        self._kind(name, "", create=False)

    def _unknown(self, name: str) -> BadInput:
        add = f"add it first: rota property add {name[:64]}"
        hint = suggestion(name, self.kinds, what="properties")
        if hint.startswith("did you mean"):
            add = f"{hint} If not, {add}"
        return BadInput(f"there is no property '{name[:64]}'", hint=add)

    # -- changing

    def add(
        self, hosts: list[str], *, cpus: int, cores: int, values: Mapping[str, Value], host: HostChange
    ) -> list[Change]:
        """New hosts, each with so many processors of so many cores. Raises `BadInput` if one exists already."""
        for what, number in (("--cpus", cpus), ("--cores", cores)):
            if not 0 < number <= MOST_PER_HOST:
                raise BadInput(f"{what} {number} is out of range", hint=f"give 1 to {MOST_PER_HOST:,}")
        if there := sorted(recorded_hosts(self.records) & set(hosts)):
            raise BadInput(
                f"host '{fold(there)[:200]}' is there already",
                hint="change it with 'rota resource set', or remove it first",
            )
        size = cpus * cores
        next_id = max([*taken_ids(self.records), *self.rows, 0]) + 1
        if len(self.rows) + size * len(hosts) > MOST_RESOURCES:
            raise BadInput(f"there would be more than {MOST_RESOURCES:,} resources", hint="add fewer")
        changes: list[Change] = []
        for name in hosts:
            ids = self.own.get(name, [])  # running jobs keep their ids
            if len(ids) != size:
                ids = list(range(next_id, next_id + size))
                next_id += size
            for place, id in enumerate(ids):
                first = ids[place - place % cores]
                changes.append(("resource", str(id), {"host": name, "cpu": first, **values}))
            changes.append(self._host(name, host))
        return changes

    def _host(self, name: str, change: HostChange) -> Change:
        return "host", name, msgspec.to_builtins(change.applied(host_record(self.records, name)))

    def set(
        self, ids: list[int], *, values: Mapping[str, Value], without: Collection[str], host: HostChange
    ) -> list[Change]:
        """Set values of these resources, and change their hosts."""
        changes: list[Change] = []
        chosen = self.by_host(ids)
        if values or without:
            for name, some in chosen.items():
                meant = set(some)
                # Once a core of a host without records gets a value, all of the host's cores are recorded.
                for id in self.own.get(name, some):
                    row = {key: value for key, value in self.rows[id].items() if key != "core"}
                    if id in meant:
                        row = {key: value for key, value in row.items() if key not in without}
                        row.update(values)
                    changes.append(("resource", str(id), row))
        if host:
            self._refuse_parts(chosen)
            changes += [self._host(name, host) for name in chosen]
        return changes

    def _refuse_parts(self, chosen: Mapping[str, list[int]]) -> None:
        """Refuse a change of whole hosts if only some of their resources were selected."""
        whole = self.by_host(self.rows)
        for name, some in chosen.items():
            if len(some) < len(whole[name]):
                raise BadInput(
                    f"state and figures are those of a whole host; of '{name}' only {len(some)} of "
                    f"{len(whole[name])} resources are chosen",
                    hint=f"use --hosts {name}",
                )

    def remove(self, ids: list[int]) -> list[Change]:
        """Remove these resources, and the records of hosts that then have none."""
        chosen = self.by_host(ids)
        if own := [name for name in chosen if name in self.own]:
            raise BadInput(
                f"host '{own[0]}' brings its own resources",
                hint=f"drain it: rota resource set --hosts {own[0]} --drain",
            )
        whole = self.by_host(self.rows)
        changes: list[Change] = [("resource", str(id), None) for id in ids]
        known = self.records.get("host", {})
        changes += [
            ("host", name, None)
            for name, some in chosen.items()
            if len(some) == len(whole[name]) and name in known
        ]
        return changes
