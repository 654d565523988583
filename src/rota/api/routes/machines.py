"""Machines: their condition, and their use by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from rota.api.operations import ApiRequest, OperationTable
from rota.api.routes.accounts import OneHost
from rota.client import calls

table = OperationTable("machines")

Name = Annotated[str, Meta(max_length=200)]


class MachineChange(Struct, forbid_unknown_fields=True):
    condition: Literal["automated", "manual", "broken", "removed"] | None = None
    reason: Annotated[str, Meta(max_length=500)] | None = None
    owner: Annotated[Name, Meta(description="Owner of the machine; empty: none.")] | None = None
    groups: Annotated[list[Name], Meta(max_length=100, description="Machine groups of the machine.")] | None = None
    provision_cmd: Annotated[str, Meta(max_length=10_000)] | None = None
    now: Annotated[bool, Meta(description="Abort the jobs that run there.")] = False


class MachineReservation(Struct, forbid_unknown_fields=True):
    seconds: Annotated[float, Meta(gt=0, description="How long the machine is needed.")]
    when_free: Annotated[bool, Meta(description="If the machine is busy, get it as soon as it is free.")] = False


class MachineReservedView(Struct):
    host: str
    until: datetime | None  #: null: as soon as it is free


class MachineView(Struct):
    host: str


@table.patch("/nodes/{host}", "change_machine", place=OneHost, body=MachineChange, answer=MachineView)
async def change_machine(request: ApiRequest) -> MachineView:
    """Change the condition, owner or groups of a machine.

    A condition changes at once; a running job goes on unless `now` aborts it. For operators, and (condition and
    reason only) for its owner and the members of its machine groups.
    """
    change: MachineChange = request.body
    await request.call(
        calls.set_machines(
            [request.path.host],
            condition=change.condition,
            reason=change.reason,
            owner=change.owner,
            groups=change.groups,
            provision_cmd=change.provision_cmd,
            now=change.now,
        )
    )
    return MachineView(request.path.host)


@table.post(
    "/nodes/{host}/reserve", "reserve_machine", place=OneHost, body=MachineReservation, answer=MachineReservedView
)
async def reserve_machine(request: ApiRequest) -> MachineReservedView:
    """Reserve a machine for use by hand: it gets no jobs until it is returned or the time is over."""
    host, wanted = request.path.host, request.body
    until = await request.call(calls.reserve_machine(host, seconds=wanted.seconds, when_free=wanted.when_free))
    return MachineReservedView(host, None if until is None else datetime.fromtimestamp(until, UTC))


@table.post("/nodes/{host}/return", "return_machine", place=OneHost, answer=MachineView)
async def return_machine(request: ApiRequest) -> MachineView:
    """Return a machine that was reserved by hand, or give up waiting for it."""
    return MachineView(await request.call(calls.return_machine(request.path.host)))
