"""Lower bounds from past searches: so many resources for so long are not free before some moment.

They hold while resources are only taken. When some become free, the bounds must be dropped.
"""

from __future__ import annotations

from math import inf
from typing import Final

_NUMBERS: Final = 128
_LENGTHS: Final = 256


def _rounded_down(value: int) -> int:
    """The position of a number on a scale of eight steps per octave, rounded down."""
    octave = value.bit_length() - 4
    return value if octave < 0 else (octave << 3) + (value >> octave)


def _rounded_up(value: int) -> int:
    octave = value.bit_length() - 4
    if octave <= 0:
        return value
    place = (octave << 3) + (value >> octave)
    return place if value & ((1 << octave) - 1) == 0 else place + 1


class Bounds:
    """Lower bounds of starts, for requests that differ only in number and length."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        #: a two-dimensional Fenwick tree of maxima, over both scales
        self._rows: list[list[float] | None] = [None] * (_NUMBERS + 1)

    def start(self, number: int, length: float) -> float:
        """No start before this is possible."""
        found = -inf
        row = min(_rounded_down(number) + 1, _NUMBERS)
        last = min(_rounded_down(int(length)) + 1, _LENGTHS)
        rows = self._rows
        while row:
            values = rows[row]
            if values is not None:
                at = last
                while at:
                    if values[at] > found:
                        found = values[at]
                    at &= at - 1
            row &= row - 1
        return found

    def proved(self, number: int, length: float, start: float) -> None:
        """A search has proved that no earlier start is possible."""
        row = _rounded_up(number) + 1
        whole = int(length)
        first = _rounded_up(whole if whole == length else whole + 1) + 1
        while row <= _NUMBERS:
            values = self._rows[row]
            if values is None:
                values = self._rows[row] = [-inf] * (_LENGTHS + 1)
            at = first
            while at <= _LENGTHS:
                if values[at] < start:
                    values[at] = start
                at += at & -at
            row += row & -row
