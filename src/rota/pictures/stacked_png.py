"""Stacked bars as a PNG file with a palette."""

from __future__ import annotations

from typing import Final

from rota.pictures.font import ADVANCE, HEIGHT, width_of
from rota.pictures.png import Canvas
from rota.pictures.stacked import COLOURS, GREY, Bars, StackedBars, colour_of

_INK: Final = 1
_SOFT: Final = 2
_LINE: Final = 3
_FRAME: Final = 4
_PALETTE: Final = ("#ffffff", "#222a33", "#69727b", "#d5dade", "#8a939b", *COLOURS.values(), GREY)
_SIZE: Final = 2


def stacked_png(picture: StackedBars) -> bytes:
    """The picture as a PNG file."""
    bars = Bars(picture)
    canvas = Canvas(bars.width, bars.height)
    left, width, height = bars.left, bars.plot_width, bars.panel_height
    canvas.text(left, 18, picture.title, size=3)
    canvas.text(left, 48, picture.note, colour=_SOFT)
    x = left
    for part in bars.legend():
        canvas.fill(x, 76, 14, 14, _FRAME)
        canvas.fill(x + 1, 77, 12, 12, _index(part))
        canvas.text(x + 20, 76, part, colour=_SOFT)
        x += 20 + len(part) * ADVANCE * _SIZE + 18
    for number, panel in enumerate(picture.panels):
        top = bars.top(number)
        canvas.text(left, top - 22, panel.title)
        for percent in (0, 50, 100):
            y = top + round(height * (1 - percent / 100))
            canvas.fill(left - 5, y, width + 5, 1, _LINE)
            text = f"{percent}%"
            canvas.text(left - 8 - _SIZE * width_of(text), y - HEIGHT, text, colour=_SOFT)
        for each in bars.segments(number):
            low, high = round(each.y + each.height), round(each.y)
            across = round(each.x + each.width) - round(each.x)
            canvas.fill(round(each.x), high, max(across, 1), low - high, _index(each.part))
        for label in bars.labels(number, letter=ADVANCE * _SIZE):
            canvas.text(round(label.x) - width_of(label.text), top + height + 12, label.text, colour=_SOFT)
        for x_, y_, across, down in (
            (0, 0, width + 1, 1), (0, height, width + 1, 1), (0, 0, 1, height), (width, 0, 1, height),
        ):  # fmt: skip
            canvas.fill(left + x_, top + y_, across, down, _FRAME)
    if not picture.panels:
        canvas.text(left, bars.top(0), "nothing is known of this time", colour=_SOFT)
    return canvas.png(list(_PALETTE))


def _index(part: str) -> int:
    return _PALETTE.index(colour_of(part), _FRAME + 1)
