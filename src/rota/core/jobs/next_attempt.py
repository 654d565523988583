"""When a delayed job is tried again, for people: a time of day, which stays true however long ago it was said."""

from __future__ import annotations

from datetime import UTC, datetime

from rota.core.world import World


def next_attempt(world: World, due_at: float, wall: float) -> str:
    """`tried again at 14:05:30`, by the manager's clock; with the date if that is not today."""
    due, now = (datetime.fromtimestamp(each, UTC).astimezone(world.zone) for each in (due_at, wall))
    return (
        f"tried again at {due:%H:%M:%S}" if due.date() == now.date() else f"tried again at {due:%Y-%m-%d %H:%M:%S}"
    )
