"""The last look at every line before it is drawn: no text on the screen of `rota top` can control the terminal.

Widgets are given text that was made harmless, so that it is seen what is in it; this is for whatever was not.
"""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from rota.cli.render.text import unsafe


class HarmlessLines(LineFilter):
    """Takes out what takes no room on the screen, and so changes no width."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        if all(text.isprintable() for text, _, _ in segments):
            return segments
        return [Segment(unsafe().sub("", text), style, control) for text, style, control in segments]
