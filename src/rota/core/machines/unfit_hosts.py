"""Hosts whose agent cannot start jobs, for example on a full disk: they are suspected until it can again.

An agent takes back only its own report: a state set by an administrator or a hook stays.
"""

from __future__ import annotations

from typing import Final

from rota.core.machines.suspected_hosts import set_state, suspect
from rota.core.turn import Turn
from rota.core.world import World
from rota.plan.site.site_builder import host_record

_BY: Final = "agent"
#: Characters kept of an agent's reason.
_LONGEST: Final = 500


def take_fitness(world: World, turn: Turn, host: str, unfit: str) -> None:
    """Take an agent's report why it can start nothing; empty: it can start jobs."""
    if unfit:
        suspect(world, turn, host, by=_BY, why=unfit[:_LONGEST])
        return
    record = host_record(world.site, host)
    if record.state == "suspected" and record.by == _BY:
        set_state(world, turn, host, "alive", by=_BY, why="its agent can start jobs again")
