"""Stacked bars over time, in one panel for each key: content and layout, independent of the format.

Each bar is 100 % of the time of its window, so that panels of few and of many machines can be compared. The same
content always gives the same picture, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

#: Part → its colour. A part without one is grey.
COLOURS: Final = {
    "busy": "#3f83b8", "installing": "#8f74bd", "idle": "#bfe0c2", "down": "#e08a7d", "asleep": "#a9b7c0",
    "manual": "#edb95e", "broken": "#c2413b", "removed": "#d5dade", "unknown": "#eef0f2",
}  # fmt: skip
GREY: Final = "#8a939b"

_PANEL_HEIGHT: Final = 150
_GAP: Final = 64  #: between panels: labels of the bars, and the title of the next panel
_TOP: Final = 118
_LEFT: Final = 70
_RIGHT: Final = 40


class Stack(Struct, frozen=True, gc=False):
    """One bar: its label, and part → amount."""

    label: str
    amounts: dict[str, float]


class Panel(Struct, frozen=True, gc=False):
    """The bars of one key."""

    title: str
    stacks: list[Stack]


class StackedBars(Struct, frozen=True, kw_only=True):
    """A picture of stacked bars."""

    title: str
    panels: Sequence[Panel]
    parts: Sequence[str]  #: from the bottom of a bar to its top
    note: str = ""
    width: int = 1200


class Segment(Struct, frozen=True, gc=False):
    """A part of a bar as a rectangle, in points from the upper left corner of the picture."""

    part: str
    x: float
    y: float
    width: float
    height: float
    about: str


class Label(Struct, frozen=True, gc=False):
    """The text below a bar, in its middle."""

    x: float
    text: str


class Bars:
    """The positions of everything in a picture."""

    def __init__(self, picture: StackedBars) -> None:
        self.picture = picture
        self.width = picture.width
        self.left = _LEFT
        self.plot_width = picture.width - _LEFT - _RIGHT
        self.panel_height = _PANEL_HEIGHT
        self.height = _TOP + max(len(picture.panels), 1) * (_PANEL_HEIGHT + _GAP)

    def top(self, panel: int) -> int:
        """The upper edge of a panel's plot."""
        return _TOP + 24 + panel * (_PANEL_HEIGHT + _GAP)

    def legend(self) -> list[str]:
        """The parts in the picture, in order."""
        seen = {
            part
            for panel in self.picture.panels
            for stack in panel.stacks
            for part, its in stack.amounts.items()
            if its
        }
        return [part for part in self.picture.parts if part in seen]

    def segments(self, number: int) -> Iterator[Segment]:
        """All rectangles of a panel. Heights come from rounded edges, so that neighbours touch."""
        stacks = self.picture.panels[number].stacks
        top = self.top(number)
        step = self.plot_width / max(len(stacks), 1)
        gap = min(step * 0.15, 6.0)
        for at, stack in enumerate(stacks):
            total = sum(stack.amounts.values())
            below = 0.0
            for part in self.picture.parts:
                amount = stack.amounts.get(part, 0.0)
                if not amount or total <= 0:
                    continue
                low = top + self.panel_height * (1 - below / total)
                below += amount
                high = top + self.panel_height * (1 - below / total)
                about = f"{stack.label}: {part} {100 * amount / total:.1f} %"
                x = self.left + at * step + gap / 2
                yield Segment(part, x, high, max(step - gap, 1.0), low - high, about)

    def labels(self, number: int, *, letter: float) -> Iterator[Label]:
        """As many labels of a panel as there is room for."""
        stacks = self.picture.panels[number].stacks
        step = self.plot_width / max(len(stacks), 1)
        wide = max((len(stack.label) for stack in stacks), default=1) * letter + 14
        each = max(1, -int(-wide // step))
        for at in range(0, len(stacks), each):
            yield Label(self.left + (at + 0.5) * step, stacks[at].label)


def colour_of(part: str) -> str:
    return COLOURS.get(part, GREY)
