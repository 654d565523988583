"""Text for people: escaping, tables, colours. Pure, apart from questions about the terminal.

A plain `str` counts as hostile: it may come from a job, an agent or another user. `SafeText` may go to a terminal
as it is. Only this module makes it, from text that was escaped or that is a constant in our code;
`rota.cli.render.printing` escapes everything else.

On a terminal, tables are fitted to its width. In a pipe nothing is cut and nothing is coloured.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, TextIO

if TYPE_CHECKING:
    from rota.core.jobs.command import Command

#: What could move the cursor, change colours, begin a line, reorder or hide text: every control, format and
#: separator character (categories Cc, Cf, Zl and Zp), and halves of pairs, which no encoding has.
_UNSAFE: Final = (
    "[\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e007f\ud800-\udfff]"
)
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


class SafeText(str):
    """Text that may be printed as it is.

    Plain text added with `+` is escaped; other operations return a plain `str`.
    """

    __slots__ = ()

    def __add__(self, other: str) -> SafeText:
        return SafeText(str.__add__(self, harmless(other)))

    def __radd__(self, other: str) -> SafeText:
        return SafeText(str.__add__(harmless(other), self))


@cache
def unsafe() -> re.Pattern[str]:
    """Characters that no terminal may get. Compiled on first use, since most commands print none."""
    return re.compile(_UNSAFE)


def harmless(text: str) -> SafeText:
    """The text with unprintable characters escaped, in one line."""
    if isinstance(text, SafeText):
        return text
    return SafeText(text if text.isprintable() else unsafe().sub(_escape, text))


def literal(text: str) -> SafeText:
    """Text that is a constant in our code, such as a control sequence; a test enforces that."""
    return SafeText(text)


def block(lines: Iterable[str]) -> SafeText:
    """Several lines as one text."""
    return SafeText("\n".join(map(harmless, lines)))


def side_by_side(parts: Iterable[str], *, gap: Literal["", "  ", "\t"] = "") -> SafeText:
    """Parts of one line."""
    return SafeText(gap.join(map(harmless, parts)).rstrip(" "))


def rows_ended(lines: SafeText, end: SafeText) -> SafeText:
    """The same lines with another end of each but the last."""
    return SafeText(lines.replace("\n", end))


def json_text(value: object) -> SafeText:
    """JSON in one line, with unsafe characters as \\u escapes, which programs read as the same value."""
    import msgspec

    text = msgspec.json.encode(value).decode()
    return SafeText(text if text.isprintable() else unsafe().sub(_json_escape, text))


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _SHORT.get(character) or character.encode("unicode_escape", "surrogatepass").decode("ascii")


def command_text(cmd: Command) -> SafeText:
    """A command in one line; a list is quoted for a shell."""
    from rota.core.jobs.command import shell_line

    return harmless(shell_line(cmd))


def brief_command(cmd: Command) -> SafeText:
    """A command for a row of a table, where the text of a script has no room."""
    from rota.core.jobs.command import brief

    return harmless(brief(cmd))


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:
        return False


def width(stream: TextIO) -> int | None:
    """Columns of the terminal; None if it is not one, and nothing may be cut."""
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


def paint(text: str, kind: str, *, on: bool) -> SafeText:
    code = _COLOURS.get(kind)
    return painted(text, code) if on and code else harmless(text)


def painted(text: str, code: str) -> SafeText:
    """The text in a colour, given as numbers between semicolons."""
    assert not code.strip("0123456789;")
    return SafeText(f"\x1b[{code}m{harmless(text)}\x1b[0m")


def cells(text: str) -> int:
    """The display width of a text."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, room: int) -> str:
    """The text cut to at most `room` columns."""
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
) -> SafeText:
    """Columns, the last one as wide as there is room. `right` has an `r` for columns aligned right;
    `state` is the column coloured by its text."""
    return block(table_lines(head, rows, stream=stream, right=right, state=state))


def table_lines(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    stream: TextIO | None = None,
    right: str = "",
    state: int = -1,
) -> list[SafeText]:
    """The lines of such a table: the head, then the rows."""
    stream = stream or sys.stdout
    shown = [[harmless(text) for text in row] for row in (head, *rows)]
    widths = [cells(title) for title in shown[0]]
    for row in shown[1:]:
        for column, text in enumerate(row):
            size = cells(text)
            if size > widths[column]:
                widths[column] = size
    room = width(stream)
    colour = coloured(stream)
    last = len(head) - 1
    lines = []
    for number, row in enumerate(shown):
        parts = []
        used = 0
        for column, text in enumerate(row):
            aligned = right[column : column + 1] == "r"
            if column == last and not aligned:
                parts.append(text if room is None else cut(text, max(room - used, 8)))
                break
            pad = " " * (widths[column] - cells(text))
            used += widths[column] + 2
            drawn = paint(text, text, on=colour and number > 0 and column == state)
            parts.append(str(pad + drawn if aligned else drawn + pad))
        line = SafeText("  ".join(parts).rstrip())  # of harmless parts
        lines.append(painted(line, _COLOURS["bold"]) if number == 0 and colour else line)
    return lines


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
    """The first `most` of these ranges, and the total number of ids."""
    parts = ranges(ids).split(",")
    return ",".join(parts[:most]) + (f",… ({len(ids)} in all)" if len(parts) > most else "")


def count(number: int, noun: str) -> str:
    """`1 job`, `1,200 jobs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def core_hours(seconds: float) -> str:
    """Core seconds as `12.5 h`, with three significant digits; below a minute in seconds."""
    from rota.units import about_duration

    if seconds < 60:
        return about_duration(seconds)
    hours = seconds / 3600
    return f"{hours:,.{0 if hours >= 100 else 1 if hours >= 10 else 2}f} h"
