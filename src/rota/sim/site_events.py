"""Reads the events of a simulated site: new conditions, added machines, use by hand, and cancelled jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from rota.core.machines.machine_states import Condition
from rota.errors import BadInput
from rota.sim.jobs import TraceJob
from rota.sim.objects import refusal
from rota.sim.rows import Row, Units, read_row
from rota.sim.values import Moments, WrongField, did_you_mean, field, shown

#: The field that names the event → the fields that go with it.
_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "condition": ("machine", "reason"),
    "add": (),
    "manual": ("user", "until"),
    "cancel": (),
}
_FORMS: Final = (
    'write it like {"at": 50, "machine": "A", "condition": "broken"}, '
    '{"at": 60, "add": {"ids": "9", "host": "D"}}, '
    '{"at": 70, "manual": "A", "user": "ann", "until": 300} or {"at": 80, "cancel": 3}'
)


class EventFields(Struct, kw_only=True):
    """The fields of an event in the document."""

    at: float | str
    machine: str | UnsetType = UNSET
    condition: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    add: Row | UnsetType = UNSET
    manual: str | UnsetType = UNSET
    user: str | UnsetType = UNSET
    until: float | str | UnsetType = UNSET
    cancel: int | UnsetType = UNSET


class ConditionSet(Struct, frozen=True):
    """A machine gets another condition."""

    at: float
    machine: str
    condition: Condition


class MachineAdded(Struct, frozen=True):
    """Resources are added."""

    at: float
    units: Units


class MachineReserved(Struct, frozen=True):
    """A user takes a machine for use by hand."""

    at: float
    machine: str
    user: str
    until: float


class JobCancelled(Struct, frozen=True):
    """A job is cancelled."""

    at: float
    job: int


Event = ConditionSet | MachineAdded | MachineReserved | JobCancelled


class EventReader:
    """Reads the events of one trace. `units`: the resources that exist from the beginning. Afterwards `known` and
    `machines` hold everything that exists at some time."""

    def __init__(self, units: Units, moments: Moments) -> None:
        self._moments = moments
        self.initial = units
        self.known = dict(units.values)  #: resources that exist at the moment of the present event
        self.machines = dict.fromkeys(units.hosts)  #: likewise
        self._cancels: list[tuple[int, JobCancelled]] = []

    def read(self, given: Sequence[object]) -> list[Event]:
        """The events, in the order in which they happen. Raises `BadInput` with the path of the field."""
        fields: list[tuple[int, float, EventFields]] = []
        for number, each in enumerate(given):
            with field(f"events[{number}]"):
                own = _fields(each)
                with field("at"):
                    at = self._moments.read(own.at)
                    if at < 0:
                        raise BadInput(f"{at:g} is before the beginning", hint="give a moment of 0 or later")
            fields.append((number, at, own))
        found: list[Event] = []
        for number, at, own in sorted(fields, key=lambda each: each[1]):
            with field(f"events[{number}]"):
                event = self._event(own, at)
            found.append(event)
            if isinstance(event, JobCancelled):
                self._cancels.append((number, event))
        return found

    def check_cancels(self, jobs: Mapping[int, TraceJob]) -> None:
        """Raise `BadInput` if an event cancels a job that does not exist, or not yet."""
        for number, event in self._cancels:
            job = jobs.get(event.job)
            with field(f"events[{number}]"):
                if job is None:
                    raise WrongField("cancel", f"there is no job {event.job}", hint="name a job of this trace")
                if job.submit > event.at:
                    message = f"job {job.id} is submitted only at {job.submit:g}"
                    raise WrongField("at", message, hint="cancel it later")

    def _event(self, own: EventFields, at: float) -> Event:
        kind = _kind(own)
        if kind == "add":
            assert not isinstance(own.add, UnsetType)
            return MachineAdded(at, self._added(own.add))
        if kind == "cancel":
            assert not isinstance(own.cancel, UnsetType)
            return JobCancelled(at, own.cancel)
        if kind == "manual":
            return self._reserved(own, at)
        with field("machine"):
            machine = self._machine(own.machine)
        with field("condition"):
            return ConditionSet(at, machine, condition_named(own.condition))

    def _added(self, row: Row) -> Units:
        with field("add"):
            units = read_row(row, self._moments, known=self.known)
        self.known |= units.values
        self.machines |= dict.fromkeys(units.hosts)
        return units

    def _reserved(self, own: EventFields, at: float) -> MachineReserved:
        with field("manual"):
            machine = self._machine(own.manual)
        if isinstance(own.until, UnsetType):
            raise WrongField("until", "missing", hint="say until when the machine is used by hand")
        with field("until"):
            until = self._moments.read(own.until)
            if until <= at:
                raise BadInput(f"{until:g} is not after {at:g}", hint="give a moment after 'at'")
        return MachineReserved(at, machine, "" if isinstance(own.user, UnsetType) else own.user, until)

    def _machine(self, name: str | UnsetType) -> str:
        if isinstance(name, UnsetType):
            raise BadInput("missing", hint="name a machine")
        if name not in self.machines:
            hint = did_you_mean(name, self.machines, "machines")
            raise BadInput(f"there is no machine {shown(name)}", hint=hint)
        return name


def condition_named(name: object) -> Condition:
    """The condition of this name. Raises `BadInput`."""
    try:
        return Condition(str(name))
    except ValueError:
        known = [str(each) for each in Condition]
        hint = did_you_mean(str(name), known, "conditions")
        raise BadInput(f"there is no condition {shown(name)}", hint=hint) from None


def _kind(own: EventFields) -> str:
    """The kind of the event: the name of its field."""
    given = {name for name in EventFields.__struct_fields__ if getattr(own, name) is not UNSET} - {"at"}
    kinds = [kind for kind in _KINDS if kind in given]
    if not kinds and "machine" in given:
        raise WrongField("condition", "missing", hint="say which condition the machine gets")
    if not kinds:
        raise BadInput("it does not say what happens", hint=_FORMS)
    for name in [*kinds[1:], *sorted(given - {*_KINDS, *_KINDS[kinds[0]]})]:
        raise WrongField(name, f"it does not go with {kinds[0]!r}", hint=_FORMS)
    return kinds[0]


def _fields(given: object) -> EventFields:
    if not isinstance(given, dict):
        raise BadInput("it is not an object", hint=_FORMS)
    known = EventFields.__struct_fields__
    for name in given:
        if name not in known:
            raise BadInput(f"there is no field {shown(name)}", hint=did_you_mean(str(name), known, "fields"))
    try:
        return msgspec.convert(given, EventFields)
    except msgspec.ValidationError as error:
        raise refusal(error) from None
