"""Requests about the condition of machines and their use by hand."""

from __future__ import annotations

from rota.wire.greeting import Message


class SetMachine(Message, frozen=True, tag="set-machine"):
    """Change machines; what is None stays as it is. The answer: their names."""

    n: int
    hosts: list[str]
    condition: str | None = None
    reason: str | None = None
    owner: str | None = None
    groups: list[str] | None = None
    provision_cmd: str | None = None
    now: bool = False


class ReserveMachine(Message, frozen=True, tag="reserve-machine"):
    """Reserve a machine for use by hand. The answer: until when, or None: when it is free."""

    n: int
    host: str
    seconds: float
    when_free: bool = False


class ReturnMachine(Message, frozen=True, tag="return-machine"):
    """Return a machine that was reserved by hand, or give up waiting for it."""

    n: int
    host: str
