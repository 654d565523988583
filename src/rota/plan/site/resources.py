"""The resources of a site, their hierarchy, and which of them may be used.

A `Site` gives each resource one bit, in order of preference: a set of resources is an integer, and its lowest bits
are taken first. A `Site` is immutable: when resources change, a new one is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from itertools import pairwise
from typing import Final

from msgspec import Struct

from rota.errors import BadInput
from rota.plan.language.expression import Kind, Value, check, parse
from rota.plan.site.bitset import positions, runs, spans_of
from rota.plan.site.clock import Clock
from rota.plan.site.matching_sets import MatchingSets
from rota.plan.snapshot import Unchanging

#: Other names of a level.
ALIASES: Final = {"nodes": "host", "node": "host"}


#: Why a host may not be used, in a word: from its record, or from the state of its agent.
DRAINED: Final = "drained"
ABSENT: Final = "absent"
SUSPECTED: Final = "suspected"
LEAVING: Final = "leaving"
DEAD: Final = "dead"
ASLEEP: Final = "asleep"


class Resource(Struct, frozen=True):
    """The smallest thing that can be allocated."""

    id: int
    values: dict[str, Value]  #: levels of the hierarchy and properties alike


class HostFigures(Struct, frozen=True):
    """What a host has besides resources; None is unlimited."""

    mem: int | None = None
    disk: int | None = None
    gpus: int = 0
    limits: dict[str, int] = {}
    pool: str = ""  #: that the host belongs to


class Site(Unchanging):
    """Resources as bits."""

    def __init__(
        self,
        resources: Sequence[Resource],
        *,
        levels: tuple[str, ...] = ("host", "core"),
        hosts: Mapping[str, HostFigures] | None = None,
        kinds: Mapping[str, Kind] | None = None,
        usable: Collection[int] | None = None,
        until: Mapping[int, float] | None = None,
        prefer: Sequence[str] = (),
        away: Mapping[str, str] | None = None,
        reasons: Mapping[str, str] | None = None,
        silent: Mapping[str, bool] | None = None,
        hours: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        asleep: Mapping[str, float | None] | None = None,
        wake_s: float = 0.0,
        forceable: Collection[int] | None = None,
        automated: Collection[int] | None = None,
    ) -> None:
        """`hours`: host → the hours in which it may be used, by `clock`. `asleep`: sleeping host → since when it
        is being woken, or None; waking takes `wake_s`."""
        self.levels = levels
        self.unit = levels[-1] if levels else "core"
        sleeping = asleep or {}
        self.resources = sorted(
            resources,
            # Hosts that are awake go first.
            key=lambda resource: (resource.values.get("host") in sleeping, *_preference(resource, prefer)),
        )
        self.figures = dict(hosts or {})
        self.kinds = dict(kinds) if kinds is not None else kinds_of(self.resources)
        self.count = len(self.resources)
        self.everything = (1 << self.count) - 1
        self._bit = {resource.id: bit for bit, resource in enumerate(self.resources)}
        if len(self._bit) != self.count:
            twice = next(r.id for bit, r in enumerate(self.resources) if self._bit[r.id] != bit)
            raise BadInput(f"resource {twice} is there twice", hint="give each resource an id of its own")
        #: resources on which jobs may be placed
        self.usable = self.everything if usable is None else self.mask(usable)
        #: resources that a job may have which forces their host, whatever its condition
        self.forceable = self.usable if forceable is None else self.mask(forceable)
        #: resources of machines that are automated or may be again, whether they may be used now or not
        self.automated = self.everything if automated is None else self.mask(automated)
        self.away = dict(away or {})  #: host that may not be used → why, in a word
        self.reasons = dict(reasons or {})  #: host → the reason that an administrator or a hook gave
        #: host that is `away` only because of its agent → does `rota node add` start that agent?
        self.silent = dict(silent or {})
        self.until: dict[float, int] = {}  #: moment → resources that may not be used from then on
        for id, moment in (until or {}).items():
            self.until[moment] = self.until.get(moment, 0) | 1 << self._bit[id]
        self.hosts: dict[str, int] = {}  #: host → its resources
        for bit, resource in enumerate(self.resources):
            host = resource.values.get("host")
            if host is not None:
                self.hosts[str(host)] = self.hosts.get(str(host), 0) | 1 << bit
        self.clock = clock
        self.hours: dict[str, int] = {}  #: hours → resources that may be used only then (`plan.site.availability`)
        for name, text in (hours or {}).items():
            self.hours[text] = self.hours.get(text, 0) | self.hosts.get(name, 0)
        self.wake_s = wake_s
        self.sleeping: dict[
            float | None, int
        ] = {}  #: since when they are being woken → sleeping resources (`plan.planner.waking`)
        for name, since in sleeping.items():
            self.sleeping[since] = self.sleeping.get(since, 0) | self.hosts.get(name, 0)
        self.asleep = 0  #: all sleeping resources
        for mask in self.sleeping.values():
            self.asleep |= mask
        self._in_order: bool | None = None  #: do ids ascend as bits do?
        self._matching: dict[str, int] = {"": self.everything}
        self._sets = MatchingSets([each.values for each in self.resources])
        self._columns: dict[str, list[Value | None]] = {}
        #: cache of values derived from this site by other modules
        self.made: dict[object, object] = {}

    def using(self, usable: int) -> Site:
        """A copy of the site in which only these resources may be used."""
        site = copy(self)
        site.usable = usable
        return site

    # -- ids and bits

    def mask(self, ids: Iterable[int]) -> int:
        """The set of these resources. Raises `BadInput` if one is unknown."""
        found = 0
        for id in ids:
            bit = self._bit.get(id)
            if bit is None:
                raise BadInput(
                    f"there is no resource {id}", hint=f"there are {self.spans(self.everything) or 'none'}"
                )
            found |= 1 << bit
        return found

    def knows(self, id: int) -> bool:
        return id in self._bit

    def ids(self, mask: int) -> list[int]:
        """The ids of a set, ascending."""
        resources = self.resources
        return sorted(resources[bit].id for bit in positions(mask))

    def spans(self, mask: int) -> str:
        """A set as text: ``1-8,17``."""
        if self._in_order is None:
            self._in_order = all(one.id < other.id for one, other in pairwise(self.resources))
        if not self._in_order:
            return spans_of(self.ids(mask))
        resources, parts = self.resources, []
        for first, last in runs(mask):
            low, high = resources[first].id, resources[last].id
            if high - low == last - first:
                parts.append(str(low) if low == high else f"{low}-{high}")
            else:
                parts.append(spans_of(resources[bit].id for bit in range(first, last + 1)))
        return ",".join(parts)

    def hosts_of(self, mask: int) -> list[str]:
        """The hosts on which these resources lie, in order of preference."""
        found: dict[str, None] = {}
        for bit in positions(mask):
            host = self.resources[bit].values.get("host")
            if host is not None:
                found[str(host)] = None
        return list(found)

    # -- names

    def level(self, name: str) -> str:
        """The property that a level's name stands for."""
        return ALIASES.get(name, name) if name not in self.levels else name

    def is_level(self, name: str) -> bool:
        return self.level(name) in self.levels or self.level(name) in self.kinds

    def in_pool(self, pool: str) -> int:
        """The resources of the hosts of a pool."""
        found = 0
        for host, mask in self.hosts.items():
            if host in self.figures and self.figures[host].pool == pool:
                found |= mask
        return found

    def matching(self, where: str, pool: str = "") -> int:
        """The resources, of this pool if one is named, that satisfy an expression. A bad expression is an error,
        never a wider match."""
        if pool:
            return self.matching(where) & self.in_pool(pool)
        found = self._matching.get(where)
        if found is None:
            expression = parse(where)
            check(expression, self.kinds)
            found = self._sets.of(expression)
            if len(self._matching) > 10_000:
                self._matching = {"": self.everything}
            self._matching[where] = found
        return found

    def still_matching(self, where: str, pool: str = "") -> int:
        """The same for a job that was taken in before: nothing if the expression fits this site no more."""
        return 0 if self.misfit(where) else self.matching(where, pool)

    def misfit(self, where: str) -> str:
        """Why an expression does not fit this site, as when a property was removed; empty: it does."""
        try:
            self.matching(where)
        except BadInput as error:
            return error.message
        return ""

    def on_hosts_with(self, cores: int) -> int:
        """The resources of the hosts that have at least so many."""
        key = ("on hosts with", cores)
        found = self.made.get(key)
        if not isinstance(found, int):
            each = Counter(self.column("host"))
            found = 0
            for position, host in enumerate(self.column("host")):
                if host is not None and each[host] >= cores:
                    found |= 1 << position
            self.made[key] = found
        return found

    def column(self, level: str) -> list[Value | None]:
        """The value of a level or property for each resource; None: the resource has none."""
        name = self.level(level)
        found = self._columns.get(name)
        if found is None:
            unit = name == self.unit
            found = [each.values.get(name, each.id if unit else None) for each in self.resources]
            self._columns[name] = found
        return found


def _preference(resource: Resource, prefer: Sequence[str]) -> tuple[object, ...]:
    """Sort key: the properties to prefer by (``-name``: larger first), then the id."""
    key: list[object] = []
    for word in prefer:
        name = word.removeprefix("-")
        value = resource.values.get(name)
        if isinstance(value, int):
            key.append((0, -value if word != name else value, ""))
        else:
            key.append((1, 0, "" if value is None else value))
    return (*key, resource.id)


def kinds_of(resources: Iterable[Resource]) -> dict[str, Kind]:
    """The kind of each property, derived from its values."""
    seen: dict[str, set[type]] = {}
    for resource in resources:
        for name, value in resource.values.items():
            seen.setdefault(name, set()).add(type(value))
    kinds: dict[str, Kind] = {}
    for name, types in seen.items():
        kinds[name] = "yesno" if types == {bool} else "integer" if types == {int} else "text"
    return kinds
