"""What a manager starts from: the store's snapshot, and what no store knows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, tzinfo

from msgspec import Struct

from rota.core.accounts.sums import HourAccount
from rota.core.stored import StoreSnapshot
from rota.core.world import World
from rota.plan.size import Capacity


class Restart(Struct, frozen=True, kw_only=True):
    """The circumstances of a start."""

    snapshot: StoreSnapshot
    wall: float
    mono: float
    generation: int  #: grows with every start of this deployment
    hosts: dict[str, Capacity]  #: of the pool; empty: hosts come with their runners
    zone: tzinfo = UTC
    version: str = ""  #: of Rota
    #: account rows of the hours in `fair_share_usage.kept_hours`
    usage: list[HourAccount] = []


#: Restores one part of an empty world. May rely on what the steps before it have restored.
Restore = Callable[[World, Restart], None]


def first_seat(generation: int) -> int:
    """The first seat number of a manager. An old number never means a new seat."""
    return (generation << 32) + 1
