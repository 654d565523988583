"""Text for people: hostile text made harmless, tables, colours. Pure, but for asking about the terminal.

On a terminal tables fit its width; piped, nothing is ever cut and nothing is coloured.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Final, TextIO

#: What could move the cursor, change colours, reorder or hide text.
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
_SHORT: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\x1b": "\\e"}

_COLOURS: Final = {
    "running": "36",
    "starting": "36",
    "finishing": "36",
    "scheduled": "36",
    "complete": "32",
    "failed": "31",
    "lost": "35",
    "blocked": "35",
    "cancelled": "33",
    "delayed": "33",
    "held": "33",
    "bold": "1",
    "dim": "2",
}


def harmless(text: str) -> str:
    """The text with everything unprintable shown as an escape."""
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _SHORT.get(character) or character.encode("unicode_escape", "surrogatepass").decode("ascii")


def command_text(cmd: str | list[str]) -> str:
    """A command on one line, a list quoted as a shell would need it."""
    if isinstance(cmd, str):
        return harmless(cmd)
    from shlex import join

    return harmless(join(cmd))


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:
        return False


def width(stream: TextIO) -> int | None:
    """Columns of the terminal; None when it is not one, and nothing may be cut."""
    if not is_terminal(stream):
        return None
    if os.environ.get("COLUMNS", "").isdigit():
        return max(20, int(os.environ["COLUMNS"]))
    try:
        return max(20, os.get_terminal_size(stream.fileno()).columns or 80)
    except OSError:
        return 80


def coloured(stream: TextIO) -> bool:
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, kind: str, *, on: bool) -> str:
    code = _COLOURS.get(kind)
    return f"\x1b[{code}m{text}\x1b[0m" if on and code else text


def cells(text: str) -> int:
    """How many columns a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, room: int) -> str:
    """The text in at most so many columns."""
    if cells(text) <= room:
        return text
    while text and cells(text) > room - 1:
        text = text[: max(room - 1, 0)] if cells(text) == len(text) else text[:-1]
    return text + "…"


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    stream: TextIO | None = None,
    right: str = "",
    state: int = -1,
) -> str:
    """Columns, the last one as wide as there is room. `right` has an `r` for columns aligned right;
    `state` is the column coloured by its text. Cells must be harmless already."""
    stream = stream or sys.stdout
    widths = [cells(title) for title in head]
    for row in rows:
        for column, text in enumerate(row):
            size = cells(text)
            if size > widths[column]:
                widths[column] = size
    room = width(stream)
    colour = coloured(stream)
    last = len(head) - 1
    lines = []
    for number, row in enumerate([head, *rows]):
        parts = []
        used = 0
        for column, text in enumerate(row):
            aligned = right[column : column + 1] == "r"
            if column == last and not aligned:
                parts.append(text if room is None else cut(text, max(room - used, 8)))
                break
            pad = " " * (widths[column] - cells(text))
            used += widths[column] + 2
            shown = paint(text, text, on=colour and number > 0 and column == state)
            parts.append(pad + shown if aligned else shown + pad)
        line = "  ".join(parts).rstrip()
        lines.append(paint(line, "bold", on=colour) if number == 0 else line)
    return "\n".join(lines)


def ranges(ids: Sequence[int]) -> str:
    """`12-14,17` from ids."""
    spans: list[list[int]] = []
    for number in sorted(ids):
        if spans and spans[-1][1] >= number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(f"{low}-{high}" if high > low else str(low) for low, high in spans)


def few_ranges(ids: Sequence[int], most: int = 12) -> str:
    """The same, with no more than some of them."""
    parts = ranges(ids).split(",")
    return ",".join(parts[:most]) + (f",… ({len(ids)} in all)" if len(parts) > most else "")


def count(number: int, noun: str) -> str:
    """`1 job`, `1,200 jobs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
