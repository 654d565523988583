"""Size and signs of charts in the terminal."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple


class ChartStyle(NamedTuple):
    """Size and signs of a chart."""

    width: int = 80
    rows: int = 50  #: maximum; 0 for all
    colours: int = 0  #: how many the screen has; 0: none
    plain: bool = False  #: only ASCII


def chart_style(width: int | None, rows: int) -> ChartStyle:
    """The style for standard output; `width`: that the user has asked for."""
    from rota.cli.render.text import coloured
    from rota.cli.render.text import width as columns_of

    there = columns_of(sys.stdout)
    if there is None:
        there = int(os.environ["COLUMNS"]) if os.environ.get("COLUMNS", "").isdigit() else 80
    columns = max(40, there if width is None else width)
    many = "256color" in os.environ.get("TERM", "") or bool(os.environ.get("COLORTERM"))
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return ChartStyle(
        width=columns,
        rows=rows,
        colours=(256 if many else 8) if coloured(sys.stdout) else 0,
        plain=not encoding.startswith("utf"),
    )
