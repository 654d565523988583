"""`rota accounting`: who used what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from rota.cli import spans
from rota.cli.command import Invocation, command, print_json
from rota.cli.printing import say

if TYPE_CHECKING:
    from rota.cli.terminal import Shown
    from rota.wire.sums import AccountingView, AccountRow

_BY: Final = ("user", "project", "queue")
_WINDOWS: Final = {"day": 86_400, "hour": 3600}


@command("accounting")
@spans.options("30 windows ago", "now")
@click.option(
    "--by", metavar="WHAT", default="user,project,queue", show_default=True,
    help="Tell rows apart by these; 'none' for one row a window.",
)  # fmt: skip
@click.option(
    "--window", type=click.Choice(list(_WINDOWS)), default="day", show_default=True,
    help="How much time a row is about. Days begin at midnight UTC.",
)  # fmt: skip
def accounting(call: Invocation, since: str | None, until: str | None, by: str, window: str) -> int:
    """Show who used what: attempts and jobs that ended, core hours used, given and asked for, time waited.

    What is used counts in every window in which an attempt ran; those that run are counted up to now. Given is
    what the walltime with which attempts were started, or else their expected time, would have taken. Asked is the
    same for what was asked for: '(+3)' are three attempts for which nobody gave a time, '-' that it is not known.
    Both count while the attempt runs, and what is left of them when it ends counts then. WHEN is like 2026-11-16,
    -2d or @1700000000; windows are whole.

    \b
    Examples:
      rota accounting
      rota accounting --by user --from -7d
      rota accounting --by project,queue --window hour --from 2026-11-16T08:00
      rota accounting --json
    """
    columns = _columns(by)
    first, last = spans.moments(since, until)
    with call.connect() as client:
        view = client.accounting(since=first, until=last, by=columns, window_s=_WINDOWS[window])
    if call.json:
        print_json(view)
    elif call.quiet:
        from rota.cli.terminal import side_by_side

        cells = ([str(getattr(row, name)) for name in columns] for row in view.rows)
        names = dict.fromkeys(side_by_side(row, gap="\t") for row in cells)
        say(*names)
    elif view.rows:
        say(_table(view, columns))
    else:
        say("nothing was used in this time")
    return 0


def _columns(by: str) -> list[str]:
    from rota.errors import BadInput

    words = [word for word in (word.strip() for word in by.split(",")) if word]
    if words == ["none"]:
        return []
    for word in words:
        if word not in _BY:
            raise BadInput(f"--by: there is no '{word[:40]}'", hint=f"use some of {', '.join(_BY)}, or none")
    return [name for name in _BY if name in words]


def _table(view: AccountingView, columns: list[str]) -> Shown:
    from rota.cli.terminal import table

    head = ["WINDOW", *(name.upper() for name in columns)]
    figures = ["ATTEMPTS", "JOBS", "FAILED", "USED", "GIVEN", "ASKED", "CPU", "WAIT/ATTEMPT"]
    rows = [[_window(row, view.window_s), *_names(row, columns), *_figures([row])] for row in view.rows]
    if len(rows) > 1:
        rows.append(["all", *([""] * len(columns)), *_figures(view.rows)])
    return table([*head, *figures], rows, right="l" * len(head) + "r" * len(figures))


def _window(row: AccountRow, window_s: int) -> str:
    # As the manager counts them: a day of UTC is no day elsewhere.
    return f"{row.at:%Y-%m-%d}" if window_s % 86_400 == 0 else f"{row.at:%Y-%m-%d %H:%M}Z"


def _names(row: AccountRow, columns: list[str]) -> list[str]:
    from rota.cli.terminal import harmless

    return [harmless(str(getattr(row, name))) or "-" for name in columns]


def _figures(rows: list[AccountRow]) -> list[str]:
    from rota.units import about_duration

    attempts = sum(row.attempts for row in rows)
    waited = sum(row.wait_s for row in rows)
    return [
        f"{attempts:,}",
        f"{sum(row.jobs for row in rows):,}",
        f"{sum(row.failed for row in rows):,}",
        core_hours(sum(row.used_s for row in rows)),
        core_hours(sum(row.given_s for row in rows)),
        _asked(rows),
        core_hours(sum(row.cpu_s for row in rows)),
        about_duration(waited / attempts) if attempts else "-",
    ]


def _asked(rows: list[AccountRow]) -> str:
    """What was asked for, as far as it is known, and how many attempts asked for no time."""
    known = [row.asked_s for row in rows if row.asked_s is not None]
    if not known:
        return "-"
    unasked = sum(row.unasked or 0 for row in rows)
    least = "≥ " if len(known) < len(rows) else ""
    return f"{least}{core_hours(sum(known))}" + (f" (+{unasked:,})" if unasked else "")


def core_hours(seconds: float) -> str:
    """Core hours, with as many digits as say something; what is less than a minute in seconds."""
    from rota.units import about_duration

    if seconds < 60:
        return about_duration(seconds)
    hours = seconds / 3600
    return f"{hours:,.{0 if hours >= 100 else 1 if hours >= 10 else 2}f} h"
