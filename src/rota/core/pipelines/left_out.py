"""What a session with selected elements knows of the others in its file, for the session after it. Data only."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Final

from rota.core.pipelines.graph import NamedElement
from rota.core.pipelines.session_records import LeftOutRow

#: They are stored in rows of so many: they are written once, when the session begins.
ROW: Final = 1000


class LeftOut:
    """Elements that were not selected, with the marks of their cells and how long they take."""

    __slots__ = ("changed", "depends", "marks", "measured_s", "names", "stored", "width")

    def __init__(self, elements: Sequence[NamedElement], stages: int, *, stored: int = 0) -> None:
        self.width = stages
        self.names = [element.name for element in elements]
        #: What each depends on, by name; empty once the session has begun.
        self.depends = [element.depends for element in elements]
        self.marks = array("Q", bytes(8 * len(elements) * stages))  #: element by element, as in `Progress`
        self.measured_s = array("f", bytes(4 * len(elements)))
        self.changed = True  #: it must be written
        self.stored = stored  #: rows of it

    def rows(self) -> Iterator[LeftOutRow]:
        """As it is stored."""
        for first in range(0, len(self.names), ROW):
            last = first + ROW
            marks = self.marks[first * self.width : last * self.width]
            yield LeftOutRow(
                self.names[first:last], [[*each] for each in self.depends[first:last]],
                marks.tobytes(), self.measured_s[first:last].tobytes(),
            )  # fmt: skip


def read_left_out(rows: Sequence[LeftOutRow], stages: int) -> LeftOut:
    """From what was stored."""
    left = LeftOut((), stages, stored=len(rows))
    for row in rows:
        left.names += row.names
        left.depends += [tuple(each) for each in row.depends]
        left.marks.frombytes(row.marks)
        left.measured_s.frombytes(row.measured)
    left.changed = False
    return left
