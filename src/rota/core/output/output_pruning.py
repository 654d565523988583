"""Old output goes: first that is recorded, then it is removed, so that nobody takes it for lost."""

from __future__ import annotations

from rota.core.effects import RemoveSegments
from rota.core.events import OutputOutdated
from rota.core.turn import Turn
from rota.core.world import World


def on_output_outdated(_world: World, turn: Turn, event: OutputOutdated) -> None:
    """Have segments removed."""
    turn.changes.pruned += [(segment,) for segment in event.segments]
    turn.effects.append(RemoveSegments(event.segments))
