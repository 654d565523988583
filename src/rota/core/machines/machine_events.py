"""Events about the condition of machines and their use by hand."""

from __future__ import annotations

from rota.core.events import Asker, Event


class MachineSet(Event, frozen=True):
    """A user changed machines; fields that are None stay as they are."""

    by: Asker
    operator: bool  #: may the asker change every machine?
    hosts: list[str]
    condition: str | None = None
    reason: str | None = None
    owner: str | None = None
    groups: list[str] | None = None
    provision_cmd: str | None = None
    now: bool = False  #: abort what runs there


class MachineReserved(Event, frozen=True):
    """A user reserved a machine for use by hand."""

    by: Asker
    operator: bool
    host: str
    seconds: float
    when_free: bool = False  #: wait until nothing runs there


class MachineReturned(Event, frozen=True):
    """A user returned a machine."""

    by: Asker
    operator: bool
    host: str
