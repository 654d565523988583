"""Cells of a session that are ready and have no job yet: more became ready than one step makes jobs for."""

from __future__ import annotations

from heapq import heappop, heappush

from rota.plan.placement.queue import RankKey


class ReadyCells:
    """The first in rank comes out first; of equal ranks the one that was put in first."""

    __slots__ = ("_cells", "_heap", "_put")

    def __init__(self) -> None:
        self._cells: set[int] = set()
        self._heap: list[tuple[RankKey, int, int]] = []  #: those of cells that were dropped are passed over
        self._put = 0

    def put(self, cell: int, rank: RankKey) -> None:
        self._put += 1
        self._cells.add(cell)
        heappush(self._heap, (rank, self._put, cell))

    def drop(self, cell: int) -> bool:
        """It is not wanted any more. False: it is not here."""
        if cell not in self._cells:
            return False
        self._cells.remove(cell)
        return True

    def take(self) -> int:
        """The first, which must exist."""
        while True:
            cell = heappop(self._heap)[2]
            if self.drop(cell):
                return cell

    def __contains__(self, cell: int) -> bool:
        return cell in self._cells

    def __len__(self) -> int:
        return len(self._cells)
