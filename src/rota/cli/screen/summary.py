"""The lines above the tables: jobs by state, progress, expected end."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from rich.text import Text

from rota.cli.render.status_text import done, left_text, rate_text
from rota.cli.screen.rows import STYLES, YELLOW, two_coloured
from rota.core.states import State

if TYPE_CHECKING:
    from rota.wire.views import StatusView

_ORDER: Final = [State.RUNNING, State.READY, State.COMPLETE, State.FAILED]
_STATES: Final = [state.label for state in [*_ORDER, *(state for state in State if state not in _ORDER)]]


def summary(found: StatusView, now: datetime, *, room: int) -> Text:
    """Two lines."""
    counts = found.counts
    total = sum(counts.values())
    ended = done(counts)
    share = ended / total if total else 0.0
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append("rota", "bold").append("  ")
    if not total:
        text.append("no jobs", "dim")
    for state in _STATES:
        if n := counts.get(state):
            text.append(f"{n:,}", f"bold {STYLES.get(state, '')}").append(f" {state}  ")
    text.append("\n")
    size = 20 if room >= 100 else 10
    if total:
        text.append_text(two_coloured(counts, size))
        text.append(f" {int(100 * share)}%", "bold").append(f" of {total:,}   ")
    if found.cores:
        text.append("cores ", "dim").append(f"{found.cores_in_use:g}/{found.cores:g}")
    if found.paused or found.draining:
        text.append("   paused" if found.paused else "   draining", f"bold {YELLOW}").append(": nothing starts")
    elif ended < total:
        text.append("   rate ", "dim").append(rate_text(found.rate) if found.rate else "-")
        text.append("   ends in ", "dim").append(left_text(found.expected_end, now))
        if found.expected_end and room >= 80:
            local = found.expected_end.astimezone()
            today = local.date() == now.astimezone().date()
            text.append(f" ({local:%H:%M:%S})" if today else f" ({local:%Y-%m-%d %H:%M})", "dim")
    return text
