"""The machines of a simulated site as they change: conditions, use by hand, and machines that are added.

A machine is a host. The planner sees a new `Site` after every change; what a condition means is decided by
`core.machines.machine_states`, as in the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from rota.core.machines.machine_access import caps_of, may_use
from rota.core.machines.machine_states import Condition, NodeState, schedulable
from rota.plan.language.expression import Kind
from rota.plan.policy.priority_caps import Cap
from rota.plan.site.resources import HostFigures, Resource, Site
from rota.sim.rows import Units


class Machine(Struct, frozen=True):
    """A machine as the document describes it."""

    condition: Condition = Condition.AUTOMATED
    groups: tuple[str, ...] = ()
    owner: str = ""


class MachineGroup(Struct, frozen=True):
    """A machine group, with the highest priority that outsiders' jobs have there."""

    cap: int | None = None
    users: frozenset[str] = frozenset()


class Stock(Struct, frozen=True, kw_only=True):
    """What never changes: names and figures of everything that exists at some time."""

    units: Units  #: resources that exist from the beginning
    levels: tuple[str, ...]
    kinds: Mapping[str, Kind]  #: of all properties, also of machines that are added later
    figures: Mapping[str, HostFigures]
    machines: Mapping[str, Machine]
    groups: Mapping[str, MachineGroup]

    def machine(self, host: str) -> Machine:
        return self.machines.get(host) or Machine()


class ManualUse(Struct, frozen=True):
    """A machine that a user has for use by hand."""

    user: str
    until: float
    before: Condition  #: of the machine before, and again afterwards


class Lab:
    """The machines at one moment."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._units = stock.units
        self.conditions: dict[str, Condition] = {host: stock.machine(host).condition for host in stock.units.hosts}
        self.manual: dict[str, ManualUse] = {}

    # -- what happens

    def add(self, units: Units) -> None:
        """Add resources, on new machines or on known ones."""
        self._units |= units
        for host in units.hosts:
            self.conditions.setdefault(host, self._stock.machine(host).condition)

    def set_condition(self, host: str, condition: Condition) -> None:
        """Set the condition of a machine at once. Its user loses it unless it stays manual."""
        self.conditions[host] = condition
        use = self.manual.get(host)
        if use is None:
            return
        if condition is Condition.MANUAL:
            self.manual[host] = ManualUse(use.user, use.until, condition)
        else:
            del self.manual[host]

    def reserve(self, host: str, user: str, until: float) -> None:
        """Give a machine to a user; it is manual meanwhile."""
        self.manual[host] = ManualUse(user, until, self.conditions[host])
        self.conditions[host] = Condition.MANUAL

    def return_due(self, now: float) -> list[str]:
        """Return the machines whose time of use by hand is over; each gets its old condition back."""
        due = [host for host, use in self.manual.items() if use.until <= now]
        for host in due:
            self.conditions[host] = self.manual.pop(host).before
        return due

    def belongs(self, host: str) -> bool:
        """Has the machine an owner or a group?"""
        own = self._stock.machine(host)
        return bool(own.owner or own.groups)

    def may_use(self, host: str, user: str) -> bool:
        """May this user force jobs onto a machine, or use it by hand? A machine without owner and groups is open
        to all, and a user without a name is an operator."""
        return not user or not self.belongs(host) or may_use(self._records(), host, user)

    def caps(self) -> tuple[Cap, ...]:
        """The highest priorities that outsiders have on machines of groups, also on those that are added later."""
        return caps_of(self._records())

    def _records(self) -> dict[str, dict[str, Any]]:
        stock = self._stock
        return {
            "host": {name: {"owner": own.owner, "groups": own.groups} for name, own in stock.machines.items()},
            "machine_group": {
                name: {"cap": group.cap, "users": sorted(group.users)} for name, group in stock.groups.items()
            },
        }

    def next_return(self) -> float | None:
        return min([use.until for use in self.manual.values()], default=None)

    # -- what follows

    def site(self) -> Site:
        """The site as the planner may use it now: without removed machines, and only automated ones usable."""
        units, conditions = self._units, self.conditions
        there = {
            id: own
            for id, own in units.values.items()
            if conditions.get(str(own.get("host"))) is not Condition.REMOVED
        }
        away = {
            host: str(condition)
            for host, condition in conditions.items()
            if not schedulable(condition, NodeState.ALIVE) and condition is not Condition.REMOVED
        }
        alive = [id for id in there if id in units.usable]
        host_of = {id: str(own.get("host")) for id, own in there.items()}
        return Site(
            [Resource(id, own) for id, own in sorted(there.items())],
            levels=self._stock.levels,
            hosts=self._stock.figures,
            kinds=self._stock.kinds,
            usable=[id for id in alive if host_of[id] not in away],
            forceable=[id for id in alive if host_of[id] not in self.manual],
            until={id: moment for id, moment in units.until.items() if id in there},
            away=away,
        )
