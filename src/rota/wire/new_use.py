"""A use of a limit in messages."""

from __future__ import annotations

from rota.wire.greeting import Message


class NewUse(Message, frozen=True):
    """A use of a limit as a client sends it. Depending on the limit, the number after the colon is the units to
    take, or the capacity of a limit that only jobs declare."""

    name: str
    number: int | None = None
    exclusive: bool = False
    declare: bool = False  #: without a number: if the limit is undeclared, any number of jobs may run
