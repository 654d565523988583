"""Tables whose last column moves below its row if the terminal is too narrow."""

from __future__ import annotations

import io
import sys
import textwrap
from collections.abc import Sequence

from rota.cli.render.text import SafeText, block, cells, harmless, table_lines, width

_INDENT = "    "


def wrapped(text: str, *, indent: str = "") -> list[str]:
    """The text in lines that fit the terminal; elsewhere one line."""
    room = width(sys.stdout)
    if room is None:
        return [indent + harmless(text)]
    return textwrap.wrap(harmless(text), room, initial_indent=indent, subsequent_indent=indent or _INDENT)


def fitted(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, right: str = "", kept: int, notes: Sequence[str]
) -> SafeText:
    """The table if it fits; otherwise its first `kept` columns, with a note below each row."""
    room = width(sys.stdout)
    whole = table_lines(head, rows, right=right, stream=io.StringIO())
    if room is None or all(cells(line) <= room for line in whole):
        return block(table_lines(head, rows, right=right))
    top, *short = table_lines(head[:kept], [row[:kept] for row in rows], right=right)
    lines: list[str] = [top]
    for row, note in zip(short, notes, strict=True):
        lines += [row, *wrapped(note, indent=_INDENT)]
    return block(lines)
