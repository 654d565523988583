"""Granted reservations: stored, so that they survive a restart."""

from __future__ import annotations

import msgspec

from rota.core.feature import Feature
from rota.core.restart import Restart
from rota.core.turn import Turn
from rota.core.world import World
from rota.plan.placement.leases import Reserved

#: Key of `Changes.meta` for granted reservations.
RESERVED = "reserved"


class Reservations:
    """State of the feature `reservations`."""

    __slots__ = ("granted",)

    def __init__(self) -> None:
        self.granted: dict[int, Reserved] = {}  #: by job


def granted(world: World, job: int) -> Reserved | None:
    """What was granted to this reservation, if anything."""
    found = world.find(Reservations)
    return found.granted.get(job) if found is not None else None


def remember_reservations(world: World, turn: Turn, changed: dict[int, Reserved | None]) -> None:
    """Store granted reservations; None: withdrawn."""
    state = world.use(Reservations)
    for id, what in changed.items():
        job = world.jobs.get(id)
        if what is not None and job is not None:
            turn.note(id, job.attempt, "granted", f"its reservation has resources {what.resources}")
    state.granted = {
        id: what for id, what in (state.granted | changed).items() if what is not None and id in world.jobs
    }
    world.placement.tell_reservations(state.granted)
    turn.changes.meta[RESERVED] = msgspec.json.encode(state.granted).decode()


def _restore(world: World, restart: Restart) -> None:
    """Load what `remember_reservations` stored."""
    found = msgspec.json.decode(restart.snapshot.meta.get(RESERVED) or "{}", type=dict[int, Reserved])
    kept = {id: what for id, what in found.items() if id in world.jobs}
    if kept:
        world.use(Reservations).granted = kept
        world.placement.tell_reservations(kept)


FEATURE = Feature(name="reservations", state=Reservations, restore=_restore)
