"""What the agent of a node says about its host. Imports little: runners start fast."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Figure = Annotated[int, Meta(ge=0, le=1 << 60)]


class NodeFacts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the agent of a host says that there is."""

    cores: Annotated[int, Meta(ge=1, le=65_536)]
    mem: Figure
    disk: Figure
    gpus: Annotated[int, Meta(ge=0, le=100_000)] = 0
    machine: str = ""  #: which machine it is, whatever it is called
    properties: dict[str, str | int | bool] = {}
    hours: str = ""  #: when it may be used; empty: always
