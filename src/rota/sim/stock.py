"""Reads the machines of a trace and their groups, and gathers what is there at some time of the simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from rota.sim.lab import Machine, MachineGroup, Stock
from rota.sim.objects import read_object
from rota.sim.rows import HostRow, figures_of, kinds_of, levels_of
from rota.sim.site_events import EventReader, condition_named
from rota.sim.values import WrongField, did_you_mean, field, shown


class MachineFields(Struct, kw_only=True):
    """The fields of a machine in the document."""

    condition: str = "automated"
    groups: list[str] = []
    owner: str = ""


class GroupFields(Struct, kw_only=True):
    """The fields of a machine group in the document."""

    cap: int | None = None
    users: list[str] = []


def read_stock(
    events: EventReader,
    *,
    levels: Sequence[str] | None,
    hosts: Mapping[str, HostRow],
    machines: Mapping[str, Mapping[str, object]],
    groups: Mapping[str, Mapping[str, object]],
) -> Stock:
    """All that is there at some time; `events` have been read. Raises `BadInput` with the path of the field."""
    everything = events.known
    names = levels_of(levels, everything.values())
    return Stock(
        units=events.initial,
        levels=names,
        kinds=kinds_of(everything, names[-1]),
        figures=figures_of(hosts, set(events.machines)),
        machines={name: _machine(name, own, events) for name, own in machines.items()},
        groups={name: _group(name, own) for name, own in groups.items()},
    )


def _machine(name: str, own: Mapping[str, object], events: EventReader) -> Machine:
    if name not in events.machines:
        hint = did_you_mean(name, events.machines, "machines")
        raise WrongField(f"machines.{name}", f"no resource is on {shown(name)}", hint=hint)
    fields = read_object(own, MachineFields, f"machines.{name}", "fields of a machine")
    with field(f"machines.{name}.condition"):
        condition = condition_named(fields.condition)
    return Machine(condition, tuple(fields.groups), fields.owner)


def _group(name: str, own: Mapping[str, object]) -> MachineGroup:
    fields = read_object(own, GroupFields, f"machine_groups.{name}", "fields of a machine group")
    if fields.cap is not None and not 0 <= fields.cap <= 255:
        hint = "give a number from 0 to 255"
        raise WrongField(f"machine_groups.{name}.cap", f"{fields.cap} is out of range", hint=hint)
    return MachineGroup(fields.cap, frozenset(fields.users))
