"""How far each element of a session has got: a status, a job and a mark for every cell, which is an element at a
stage. Data only, a few bytes a cell; the sums by stage are kept up to date.
"""

from __future__ import annotations

from array import array
from enum import IntEnum
from typing import Final

#: Cells are stored in rows of so many elements: one job that ends writes one small row.
ROW: Final = 8


class Status(IntEnum):
    """Where an element is, as one stage sees it. The numbers are stored."""

    AHEAD = 0  #: it has not come here yet
    PENDING = 1  #: here; it waits for a dependency
    CHECKING = 2  #: here; a condition is being looked at
    READY = 3  #: its job waits
    RUNNING = 4  #: its job has begun, and has not ended for good
    OK = 5
    SKIPPED = 6
    FAILED = 7  #: with a temporary error, and without a retry left
    FAILED_PERMANENTLY = 8
    BLOCKED = 9  #: it, or something that it depends on, has failed before
    TERMINATED = 10


#: From this status on an element has left the stage.
SETTLED: Final = Status.OK
PASSED: Final = frozenset((Status.OK, Status.SKIPPED))
FAILURES: Final = frozenset((Status.FAILED, Status.FAILED_PERMANENTLY))

#: A status → its word in events, for those that settle.
OUTCOMES: Final = {
    Status.OK: "ok",
    Status.SKIPPED: "skipped",
    Status.FAILED: "failed",
    Status.FAILED_PERMANENTLY: "failed-permanently",
    Status.BLOCKED: "blocked",
    Status.TERMINATED: "terminated",
}
#: How a status counts.
_SUMS: Final = {
    Status.AHEAD: "waiting",
    Status.PENDING: "waiting",
    Status.CHECKING: "waiting",
    Status.READY: "waiting",
    Status.RUNNING: "running",
    Status.OK: "processed",
    Status.SKIPPED: "skipped",
    Status.FAILED: "failed",
    Status.FAILED_PERMANENTLY: "failed",
    Status.BLOCKED: "blocked",
    Status.TERMINATED: "terminated",
}
SUMS: Final = ("processed", "skipped", "failed", "blocked", "terminated", "waiting", "running")
_BY_NUMBER: Final = tuple(Status)


class Progress:
    """The cells of a session, element by element. One more row of cells, after those of the elements, belongs to
    the stages that are for the session as a whole; it is in no sum."""

    __slots__ = ("counts", "dirty", "elements", "jobs", "marks", "statuses", "width")

    def __init__(self, elements: int, stages: int) -> None:
        self.elements = elements
        self.width = stages
        cells = (elements + 1) * stages
        self.statuses = bytearray(cells)
        self.jobs = array("Q", bytes(8 * cells))  #: the latest job of each cell; 0: none
        #: what was done there when it last was ok, as 8 bytes of its identity; 0: nothing
        self.marks = array("Q", bytes(8 * cells))
        #: stage → status → number of elements
        self.counts = [[elements, *[0] * (len(Status) - 1)] for _stage in range(stages)]
        self.dirty: set[int] = set()  #: rows to be written

    def cell(self, element: int, stage: int) -> int:
        return element * self.width + stage

    def status(self, element: int, stage: int) -> Status:
        return _BY_NUMBER[self.statuses[element * self.width + stage]]

    def set(self, element: int, stage: int, status: Status) -> None:
        cell = element * self.width + stage
        old = self.statuses[cell]
        if old != status:
            self.statuses[cell] = status
            if element < self.elements:
                counts = self.counts[stage]
                counts[old] -= 1
                counts[status] += 1
            self.dirty.add(element // ROW)

    def set_job(self, cell: int, job: int) -> None:
        self.jobs[cell] = job
        self.dirty.add(cell // self.width // ROW)

    def set_mark(self, cell: int, mark: int) -> None:
        if self.marks[cell] != mark:
            self.marks[cell] = mark
            self.dirty.add(cell // self.width // ROW)

    def sums(self, stage: int) -> dict[str, int]:
        """How many elements were processed, skipped … at a stage; they add up to all elements."""
        found = dict.fromkeys(SUMS, 0)
        for status, number in zip(_BY_NUMBER, self.counts[stage], strict=True):
            found[_SUMS[status]] += number
        return found

    def recount(self) -> None:
        """Count again, after the statuses came from elsewhere."""
        width, end = self.width, self.elements * self.width
        for stage in range(width):
            column = self.statuses[stage:end:width]
            self.counts[stage] = [column.count(status) for status in Status]

    def miscounted(self) -> list[int]:
        """Stages whose sums are not those of their cells."""
        width, end = self.width, self.elements * self.width
        return [
            stage
            for stage in range(width)
            if self.counts[stage] != [self.statuses[stage:end:width].count(status) for status in Status]
        ]
