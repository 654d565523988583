"""Output that exceeds the configured age or space."""

from __future__ import annotations

from rota.core.effects import RemoveSegments
from rota.core.events import OutputOutdated
from rota.core.turn import Turn
from rota.core.world import World


def on_output_outdated(_world: World, turn: Turn, event: OutputOutdated) -> None:
    """Remove segments of output."""
    # The record comes first: otherwise pruned output would look like lost output.
    turn.changes.pruned += event.segments
    turn.effects.append(RemoveSegments(event.segments))
