"""What the agent of a node reports about its host. Imports little, because runners must start fast."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Figure = Annotated[int, Meta(ge=0, le=1 << 60)]


class NodeFacts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the agent of a node reports about its host."""

    cores: Annotated[int, Meta(ge=1, le=65_536)]
    mem: Figure
    disk: Figure
    gpus: Annotated[int, Meta(ge=0, le=100_000)] = 0
    machine: str = ""  #: the machine's id, independent of its name
    properties: dict[str, str | int | bool] = {}
    hours: str = ""  #: when it may be used; empty: always
