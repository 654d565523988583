"""Gangs as clients see them: the object behind `rota gang show --json`."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class GangMemberView(Struct, kw_only=True, gc=False):
    """A member of a gang."""

    id: int
    name: str  #: its role
    state: str
    hosts: list[str]  #: of its present or last attempt, the first one first; empty: it has none


class GangView(Struct, kw_only=True, gc=False):
    """The newest gang of a name."""

    gang: str
    state: str  #: the state that decides about all: of one that fails, runs or keeps the others from running
    members: list[GangMemberView]  #: in input order
    missing: list[int]  #: members that keep a waiting gang from beginning
    reserved_at: datetime | None  #: when it is planned to begin
