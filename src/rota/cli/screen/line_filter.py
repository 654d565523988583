"""The last check of every line before it is drawn: no text in `rota top` can control the terminal.

Widgets get text that was escaped visibly; this filter removes what was missed.
"""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from rota.cli.render.text import unsafe


class HarmlessLines(LineFilter):
    """Removes unsafe characters, which have no width, so the layout stays."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        if all(text.isprintable() for text, _, _ in segments):
            return segments
        return [Segment(unsafe().sub("", text), style, control) for text, style, control in segments]
