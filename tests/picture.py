"""What a terminal shows after a program has written to it: a screen, and the lines that scrolled out of it above.

Knows the few control sequences that Rota draws with. Anything else is an error, so that a test sees it.
"""

from __future__ import annotations

import re

_SEQUENCE = re.compile(r"\x1b\[(\??)(\d*(?:;\d+)*)([A-Za-z])")
_IGNORED = "mhl"  #: colours, and whether the cursor is seen


class Picture:
    """A terminal of so many rows and columns, without colours."""

    def __init__(self, *, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.above: list[str] = []
        self._lines = [[" "] * cols for _row in range(rows)]
        self._row = self._col = 0
        self._rest = ""

    def write(self, text: str) -> None:
        """What a program has written; it may end in the middle of a sequence."""
        text, self._rest = self._rest + text, ""
        at = 0
        while at < len(text):
            character = text[at]
            if character == "\x1b":
                found = _SEQUENCE.match(text, at)
                if found is None:
                    assert len(text) - at < 12, f"not known: {text[at : at + 12]!r}"
                    self._rest = text[at:]
                    return
                self._control(found[2], found[3])
                at = found.end()
                continue
            self._put(character)
            at += 1

    def _control(self, number: str, what: str) -> None:
        line = self._lines[self._row]
        if what == "A":
            self._row = max(0, self._row - int(number or 1))
        elif what == "K":
            line[self._col :] = [" "] * (self.cols - self._col)
        elif what == "J":
            line[self._col :] = [" "] * (self.cols - self._col)
            for below in range(self._row + 1, self.rows):
                self._lines[below] = [" "] * self.cols
        else:
            assert what in _IGNORED, what

    def _put(self, character: str) -> None:
        if character == "\r":
            self._col = 0
        elif character == "\n":
            self._next()
        else:
            assert character.isprintable(), repr(character)
            if self._col == self.cols:
                self._col = 0
                self._next()
            self._lines[self._row][self._col] = character
            self._col += 1

    def _next(self) -> None:
        if self._row < self.rows - 1:
            self._row += 1
            return
        self.above.append("".join(self._lines.pop(0)).rstrip())
        self._lines.append([" "] * self.cols)

    @property
    def screen(self) -> list[str]:
        """The rows, without blanks at their ends and without empty rows at the end."""
        rows = ["".join(line).rstrip() for line in self._lines]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    @property
    def lines(self) -> list[str]:
        """Everything, with what has scrolled out."""
        return [*self.above, *self.screen]
