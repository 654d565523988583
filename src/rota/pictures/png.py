"""A schedule as a PNG file with a palette. Needs only zlib."""

from __future__ import annotations

import struct
from typing import Final
from zlib import compress, crc32

from rota.pictures.font import ADVANCE, HEIGHT, rows_of, width_of
from rota.pictures.schedule import COLOURS, Box, Drawn, Layout, Picture, colour_of

_WHITE: Final = 0
_INK: Final = 1
_GREY: Final = 2
_LINE: Final = 3
_FRAME: Final = 4
_FIXED: Final = ("#ffffff", "#222a33", "#69727b", "#d5dade", "#8a939b")
_FIRST: Final = len(_FIXED)  #: palette index of the first job colour; border colours follow the job colours
_BORDERED: Final = 4  #: smaller boxes have no border, which would hide the colour


class Canvas:
    """Rows of points; each is an index into the palette. Drawing outside is ignored."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self.rows = [bytearray(width) for _ in range(height)]

    def fill(self, x: int, y: int, width: int, height: int, colour: int) -> None:
        low, high = max(x, 0), min(x + width, self.width)
        if high <= low:
            return
        points = bytes((colour,)) * (high - low)
        for row in self.rows[max(y, 0) : max(y + height, 0)]:
            row[low:high] = points

    def text(self, x: int, y: int, text: str, *, colour: int = _INK, size: int = 2, upwards: bool = False) -> None:
        """Write text to the right of (x, y), or upwards from it."""
        for place, letter in enumerate(text):
            along = place * ADVANCE * size
            for down, bits in enumerate(rows_of(letter)):
                for across in range(5):
                    if bits >> (4 - across) & 1:
                        if upwards:
                            self.fill(x + down * size, y - along - (across + 1) * size, size, size, colour)
                        else:
                            self.fill(x + along + across * size, y + down * size, size, size, colour)

    def png(self, palette: list[str]) -> bytes:
        """The canvas as a PNG file."""
        head = struct.pack(">IIBBBBB", self.width, self.height, 8, 3, 0, 0, 0)
        colours = b"".join(bytes.fromhex(colour.removeprefix("#")) for colour in palette)
        points = b"".join(b"\0" + row for row in self.rows)  # filter type 0 (none) before each row
        chunks = [(b"IHDR", head), (b"PLTE", colours), (b"IDAT", compress(points, 9)), (b"IEND", b"")]
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc32(name + data))
            for name, data in chunks
        )


def png(picture: Picture) -> bytes:
    """The picture as a PNG file."""
    layout = Layout(picture)
    canvas = Canvas(layout.width, layout.height)
    left, top = round(layout.left), round(layout.top)
    width, height = round(layout.plot_width), round(layout.plot_height)
    room = (layout.width - left - 20) // ADVANCE
    canvas.text(left, 20, _cut(picture.title, room // 3), size=3)
    if picture.note:
        canvas.text(left, 52, _cut(picture.note, room // 2), colour=_GREY)
    for tick in layout.time_ticks():
        x = left + round(tick.at)
        canvas.fill(x, top, 1, height + 6, _LINE)
        canvas.text(x - width_of(tick.text), top + height + 12, tick.text, colour=_GREY)
    for tick in layout.row_ticks():
        y = top + round(tick.at)
        canvas.text(left - 8 - 2 * width_of(tick.text), y - HEIGHT, tick.text, colour=_GREY)
    canvas.text(left + width // 2 - width_of("time"), top + height + 38, "time", colour=_GREY)
    canvas.text(10, top + height // 2 + width_of(picture.row_title), picture.row_title, colour=_GREY, upwards=True)
    for job in picture.drawn:
        _draw(canvas, job, layout, left, top)
    for x, y, across, down in (
        (0, 0, width + 1, 1),
        (0, height, width + 1, 1),
        (0, 0, 1, height),
        (width, 0, 1, height),
    ):
        canvas.fill(left + x, top + y, across, down, _FRAME)
    if not picture.drawn:
        canvas.text(left + width // 2 - width_of("no jobs"), top + height // 2, "no jobs", colour=_GREY)
    return canvas.png([*_FIXED, *COLOURS, *map(_darker, COLOURS)])


def _draw(canvas: Canvas, job: Drawn, layout: Layout, left: int, top: int) -> None:
    colour = _FIRST + colour_of(job)
    boxes = layout.boxes(job)
    for box in boxes:
        x, y, across, down = _points(box, left, top)
        if across >= _BORDERED and down >= _BORDERED:
            canvas.fill(x, y, across, down, colour + len(COLOURS))
            canvas.fill(x + 1, y + 1, across - 1, down - 1, colour)
        else:
            canvas.fill(x, y, across, down, colour)
    if not boxes:
        return
    x, y, across, down = _points(max(boxes, key=lambda each: each.height), left, top)
    name = str(job.id)
    for size in (2, 1):
        if down >= HEIGHT * size + 4 and across >= width_of(name) * size + 6:
            wide = width_of(name) * size
            canvas.text(x + (across - wide + 1) // 2, y + (down - HEIGHT * size + 1) // 2, name, size=size)
            break


def _points(box: Box, left: int, top: int) -> tuple[int, int, int, int]:
    """A box in whole points, at least one wide and high: neighbours touch, and no job vanishes."""
    x, y = round(box.x), round(box.y)
    return left + x, top + y, max(round(box.x + box.width) - x, 1), max(round(box.y + box.height) - y, 1)


def _darker(colour: str) -> str:
    parts = bytes.fromhex(colour.removeprefix("#"))
    return "#" + "".join(f"{part * 2 // 3:02x}" for part in parts)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"
