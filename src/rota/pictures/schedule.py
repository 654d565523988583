"""The content and layout of a schedule's picture, independent of the format.

Time runs to the right, resources run down, and a job is a rectangle on each run of its resources. The same jobs
always give the same picture, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from zlib import crc32

from msgspec import Struct

from rota.units import format_duration

#: Calm, distinguishable colours, on white and below dark text.
COLOURS: Final = (
    "#7fb3d5", "#f0b27a", "#82c995", "#e59a9a", "#b8a2d9", "#c9b28f", "#f1aed0", "#a9b7c0", "#d4d36e", "#6fcad1",
    "#9fb8f0", "#f5cf7a", "#a5d6a0", "#f2a98f", "#cda4de", "#b0c46a", "#e6b8b0", "#8fc7b8", "#d9c3ee", "#9ccbe8",
)  # fmt: skip

_DAY_S: Final = 86400
#: Steps of the time axis, from a second to a hundred days; longer ones are powers of ten of the last.
STEPS_S: Final = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
    *(days * _DAY_S for days in (1, 2, 5, 10, 20, 50, 100)),
)  # fmt: skip


class Drawn(Struct, frozen=True, gc=False):
    """One job in a picture."""

    id: int | str
    label: str  #: shown in the tooltip
    start: float
    end: float
    rows: list[tuple[int, int]]  #: runs of resources, first and last
    group: str = ""  #: jobs of one group, such as a user's, share a colour; empty: by the id


class Picture(Struct, frozen=True, kw_only=True):
    """A schedule to be drawn."""

    title: str
    drawn: Sequence[Drawn]
    rows: tuple[int, int]  #: first and last resource
    row_title: str = "processor"
    note: str = ""  #: a line below the title
    width: int = 1600
    height: int = 0  #: 0: derived from the number of rows


class Box(Struct, frozen=True, gc=False):
    """A rectangle, in points of the picture."""

    x: float
    y: float
    width: float
    height: float


class Tick(Struct, frozen=True, gc=False):
    """A mark on an axis: where, and its text."""

    at: float
    text: str


class Layout:
    """The positions of everything in a picture, in points from the upper left corner."""

    def __init__(self, picture: Picture) -> None:
        first, last = picture.rows
        self.row_count = max(last - first + 1, 1)
        self._first_row = first
        starts = [each.start for each in picture.drawn]
        ends = [each.end for each in picture.drawn]
        self.begin = min(starts, default=0.0)
        self.end = max([*ends, self.begin + 1e-3]) if ends else self.begin + 60.0
        self.width = picture.width
        self.height = picture.height or int(min(max(self.row_count * 22.0, 240.0), 800.0)) + 150
        self.left = 30.0 + 12 * max(len(f"{last:,}"), 3) + 20
        self.top = 86.0 if picture.note else 62.0
        self.plot_width = self.width - self.left - 40
        self.plot_height = self.height - self.top - 64
        self._x_scale = self.plot_width / (self.end - self.begin)
        self._y_scale = self.plot_height / self.row_count

    def x(self, moment: float) -> float:
        """The position of a moment, from the left edge of the plot."""
        return (moment - self.begin) * self._x_scale

    def boxes(self, job: Drawn) -> list[Box]:
        """The rectangles of a job, from the upper left corner of the plot. Indistinguishable runs are merged."""
        x = self.x(job.start)
        width = max(self.x(job.end) - x, 0.1)
        found: list[Box] = []
        for first, last in job.rows:
            y = (first - self._first_row) * self._y_scale
            height = (last - first + 1) * self._y_scale
            if found and 0 <= y - (found[-1].y + found[-1].height) < 0.25:
                upper = found.pop()
                y, height = upper.y, y + height - upper.y
            found.append(Box(x, y, width, height))
        return found

    def time_ticks(self) -> list[Tick]:
        step = _step_of(self.end - self.begin, most=max(int(self.plot_width / 130), 2))
        number = -int(-self.begin // step)
        found = []
        while (moment := number * step) <= self.end:
            found.append(Tick(self.x(moment), time_text(moment)))
            number += 1
        return found

    def row_ticks(self) -> Iterator[Tick]:
        """Labels of the rows, in the middle of each."""
        most = max(int(self.plot_height / 22), 1)
        step = next(
            n * 10**power for power in range(12) for n in (1, 2, 5) if self.row_count / (n * 10**power) <= most
        )
        last = self._first_row + self.row_count - 1
        first = self._first_row if step == 1 else -(-self._first_row // step) * step
        numbers = list(range(first, last + 1, step))
        if step > 1 and (not numbers or numbers[0] - self._first_row >= 0.6 * step):
            numbers.insert(0, self._first_row)
        for number in numbers:
            yield Tick((number - self._first_row + 0.5) * self._y_scale, str(number))


def _step_of(span: float, *, most: int) -> float:
    """The smallest usual step with at most `most` steps in a span of time."""
    usual = [step for step in STEPS_S if span / step <= most] if span >= 1 else []
    if usual:
        return usual[0]
    step = 1e-9 if span < 1 else float(STEPS_S[-1])
    while span / step > most:
        step *= 10
    return step


def time_text(seconds: float) -> str:
    """The label of a moment, counted from the start of the trace."""
    return f"-{format_duration(-seconds)}" if seconds < 0 else format_duration(seconds)


def colour_of(job: Drawn) -> int:
    """The index of its colour in `COLOURS`, the same in every picture."""
    return crc32((job.group or str(job.id)).encode("utf-8", "backslashreplace")) % len(COLOURS)


def about(job: Drawn) -> str:
    """The text of a job's tooltip."""
    count = sum(last - first + 1 for first, last in job.rows)
    label = f" ({job.label})" if job.label else ""
    times = f"{time_text(job.start)} – {time_text(job.end)}, {time_text(job.end - job.start)} on {count}"
    return f"{job.id}{label}: {times}"


def runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Runs of consecutive numbers as (first, last), of ascending numbers."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
