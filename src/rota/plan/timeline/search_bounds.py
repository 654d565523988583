"""What past searches proved: so many resources for so long can not begin before some moment.

It holds as long as resources are only taken; when some become free again it must be forgotten.
"""

from __future__ import annotations

from math import inf
from typing import Final

_NUMBERS: Final = 128
_LENGTHS: Final = 256


def _rounded_down(value: int) -> int:
    """A number's place on a scale of eight steps an octave."""
    octave = value.bit_length() - 4
    return value if octave < 0 else (octave << 3) + (value >> octave)


def _rounded_up(value: int) -> int:
    octave = value.bit_length() - 4
    if octave <= 0:
        return value
    place = (octave << 3) + (value >> octave)
    return place if value & ((1 << octave) - 1) == 0 else place + 1


class Bounds:
    """For requests that differ only in number and length: the latest start that is known to be too early."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        #: a tree over both scales (Fenwick), of the largest value so far
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
        """So many resources for so long can not begin before this."""
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
