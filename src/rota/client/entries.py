"""Maps the lines of an input to the entries of its submission."""

from __future__ import annotations

from bisect import bisect_right


class Entries:
    """Runs of lines with one entry each are stored compactly; the line of an array has many entries."""

    def __init__(self) -> None:
        self._runs: list[tuple[int, int, int]] = []  #: (first line, first entry, how many)
        self.arrays: dict[int, range] = {}  #: line → its entries

    def extend(self, line: int, entry: int, many: int) -> None:
        """Add `many` consecutive lines with one entry each."""
        if self._runs and self._runs[-1][0] + self._runs[-1][2] == line:
            start, first, before = self._runs[-1]
            self._runs[-1] = (start, first, before + many)
        else:
            self._runs.append((line, entry, many))

    def of(self, line: int) -> range:
        """The entries of a line; empty if it has none."""
        if line in self.arrays:
            return self.arrays[line]
        at = bisect_right(self._runs, line, key=lambda run: run[0]) - 1
        if at >= 0:
            start, entry, many = self._runs[at]
            if line < start + many:
                return range(entry + line - start, entry + line - start + 1)
        return range(0)
