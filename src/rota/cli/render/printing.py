"""The one way in which commands print: lines to stdout and stderr. Whatever is not `Shown` is escaped.

What jobs print is passed on byte for byte elsewhere, on purpose (`output`, `logs`, `joining`, `interactive`).
"""

from __future__ import annotations

import sys
from typing import Final, Literal

from rota.cli.render.text import Shown, block, fixed, harmless

_CLEARED: Final = fixed("\r\x1b[K")

End = Literal["\n", "\r\n", ""]


def say(*lines: str) -> None:
    """Print lines on stdout. A plain text is one line whatever is in it; only what is `Shown` may have several."""
    if lines:
        sys.stdout.write(block(lines) + fixed("\n"))


def aside(*lines: str, end: End = "\n") -> None:
    """The same on stderr: what is said beside the result."""
    sys.stderr.write(str(block(lines)) + end)


def confirmed(question: str) -> bool:
    """Ask on the terminal. No, unless yes was said."""
    import click

    return click.confirm(harmless(question), default=False, err=True)


def redraw(line: str) -> None:
    """Draw a line of stderr over the one before. Only for a terminal."""
    sys.stderr.write(_CLEARED + harmless(line))
    sys.stderr.flush()


def wipe() -> None:
    """Take away what `redraw` has drawn."""
    sys.stderr.write(_CLEARED)
    sys.stderr.flush()


def draw(picture: Shown) -> None:
    """Put a screen, with its control sequences, on stdout at once."""
    sys.stdout.write(picture)
    sys.stdout.flush()
