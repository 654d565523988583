"""How commands print: lines to stdout and stderr, in which everything but `SafeText` is escaped.

The output of jobs does not come through here: `session` and `rota logs` pass it on byte for byte.
"""

from __future__ import annotations

import sys
from typing import Final, Literal

from rota.cli.render.text import SafeText, block, harmless, literal

_CLEARED: Final = literal("\r\x1b[K")

End = Literal["\n", "\r\n", ""]


def print_out(*lines: str) -> None:
    """Print lines on stdout. A plain `str` is one line, with line ends escaped; `SafeText` may have several."""
    if lines:
        sys.stdout.write(block(lines) + literal("\n"))


def print_err(*lines: str, end: End = "\n") -> None:
    """Print lines on stderr: warnings, progress and errors, which are not part of the result."""
    sys.stderr.write(str(block(lines)) + end)


def confirmed(question: str) -> bool:
    """Ask a yes-or-no question on the terminal; no is the default."""
    import click

    return click.confirm(harmless(question), default=False, err=True)


def redraw(line: str) -> None:
    """Replace the line drawn before on stderr, which must be a terminal."""
    sys.stderr.write(_CLEARED + harmless(line))
    sys.stderr.flush()


def wipe() -> None:
    """Erase what `redraw` has drawn."""
    sys.stderr.write(_CLEARED)
    sys.stderr.flush()


def draw(picture: SafeText) -> None:
    """Write a whole screen, with its control sequences, to stdout."""
    sys.stdout.write(picture)
    sys.stdout.flush()
