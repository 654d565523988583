"""`rota accounting`: usage by user, project and queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.input import time_spans
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from datetime import tzinfo

    from rota.cli.render.text import SafeText
    from rota.wire.sums import AccountingView, AccountRow

_BY: Final = ("user", "project", "queue")


@command("accounting")
@time_spans.options("30 windows ago", "now")
@click.option(
    "--by", metavar="WHAT", default="user,project,queue", show_default=True,
    help="Group rows by these columns; 'none' for one row per window.",
)  # fmt: skip
@click.option(
    "--window", metavar="WINDOW",
    help="Length of a window: hour, day, week, month, all, or a duration such as 36h (default: day).",
)  # fmt: skip
@click.option(
    "--zone",
    metavar="ZONE",
    help="Time zone in which days begin, such as Europe/Paris or UTC (default: the local one).",
)
def accounting(
    call: Invocation,
    since: str | None,
    until: str | None,
    last: str | None,
    by: str,
    window: str | None,
    zone: str | None,
) -> int:
    """Show usage by user, project and queue: ended attempts and jobs, core hours used, given and asked for,
    waiting time.

    USED counts in every window in which an attempt ran, up to now for a running one. GIVEN is cores times the
    walltime of an attempt, or else its expected time. ASKED is the same for what the user asked for; '(+3)'
    counts three attempts without a time, and '-' means unknown. GIVEN and ASKED accrue while the attempt runs,
    and the rest is added when it ends. WHEN is like 2026-11-16, -2d or @1700000000.

    Days, weeks and months begin at midnight in that zone. Windows of a given duration begin at --from. With
    --last, the default is a single window. Sums are kept by the hour, so windows begin and end at full hours.

    \b
    Examples:
      rota accounting
      rota accounting --by user --from -7d
      rota accounting --by user --last 36h
      rota accounting --window week --zone Europe/Paris
      rota accounting --by project,queue --window hour --from 2026-11-16T08:00
      rota accounting --json
    """
    columns = _columns(by)
    first, end = time_spans.moments(since, until, last)
    window = window or ("day" if last is None else "all")
    zone = _zone(zone)
    with call.connect_to_read() as client:
        view = client.accounting(since=first, until=end, by=columns, window=window, zone=zone)
    if view.since is None:
        _as_of_old(view, window)
    if call.json:
        print_json(view)
    elif call.quiet:
        from rota.cli.render.text import side_by_side

        cells = ([str(getattr(row, name)) for name in columns] for row in view.rows)
        names = dict.fromkeys(side_by_side(row, gap="\t") for row in cells)
        print_out(*names)
    elif view.rows:
        print_out(_table(view, columns))
    else:
        print_out("nothing was used in this time")
    return 0


def _as_of_old(view: AccountingView, window: str) -> None:
    """Convert the answer of an older manager, whose `asked` is what was given. Raises `EnvironmentFault`."""
    if window != "day":
        from rota.errors import EnvironmentFault

        raise EnvironmentFault(
            "the manager is of an older version, which only accounts by days of UTC",
            hint="leave out --window and --last, or start it again with this version",
        )
    for row in view.rows:
        row.given_s, row.asked_s = row.asked_s or 0.0, None


def _zone(name: str | None) -> str:
    """The name of the time zone, checked. Raises `BadInput`."""
    from rota.errors import BadInput
    from rota.time_zones import local_zone_name, zone_of

    if name is None:
        return local_zone_name()
    try:
        zone_of(name)
    except BadInput as error:
        raise error.at(field="zone", label="--zone") from None
    return name


def _columns(by: str) -> list[str]:
    from rota.errors import BadInput

    words = [word for word in (word.strip() for word in by.split(",")) if word]
    if words == ["none"]:
        return []
    for word in words:
        if word not in _BY:
            raise BadInput(f"--by: there is no '{word[:40]}'", hint=f"use some of {', '.join(_BY)}, or none")
    return [name for name in _BY if name in words]


def _table(view: AccountingView, columns: list[str]) -> SafeText:
    from rota.cli.render.text import table

    head = ["WINDOW", *(name.upper() for name in columns)]
    figures = ["ATTEMPTS", "JOBS", "FAILED", "USED", "GIVEN", "ASKED", "CPU", "WAIT/ATTEMPT"]
    rows = [[_window(row, view), *_names(row, columns), *_figures([row])] for row in view.rows]
    if len(rows) > 1:
        rows.append(["all", *([""] * len(columns)), *_figures(view.rows)])
    return table([*head, *figures], rows, right="l" * len(head) + "r" * len(figures))


def _told_zone(view: AccountingView) -> tzinfo:
    """The time zone of the answer; UTC if this machine does not know it."""
    from datetime import UTC

    from rota.errors import BadInput
    from rota.time_zones import zone_of

    try:
        return zone_of(view.zone)
    except BadInput:
        return UTC


def _window(row: AccountRow, view: AccountingView) -> str:
    """The start of a window in the zone of the answer; for a window without a name also its end."""
    zone = _told_zone(view)
    at = row.at.astimezone(zone)
    if view.window == "month":
        return f"{at:%Y-%m}"
    if view.window in ("day", "week", ""):
        return f"{at:%Y-%m-%d}"
    # With the offset, since an hour comes twice when summer time ends.
    offset = "Z" if not at.utcoffset() else f"{at:%z}"
    if view.window == "hour" or row.until is None:
        return f"{at:%Y-%m-%d %H:%M}{offset}"
    until = row.until.astimezone(zone)
    ends = "Z" if not until.utcoffset() else f"{until:%z}"
    if not row.at.timestamp():  # the beginning of all time
        return f"until {until:%Y-%m-%d %H:%M}{ends}"
    return f"{at:%Y-%m-%d %H:%M}{offset} to {until:%Y-%m-%d %H:%M}{ends}"


def _names(row: AccountRow, columns: list[str]) -> list[str]:
    from rota.cli.render.text import harmless

    return [harmless(str(getattr(row, name))) or "-" for name in columns]


def _figures(rows: list[AccountRow]) -> list[str]:
    from rota.cli.render.text import core_hours
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
    """Core hours asked for, as far as known, and the number of attempts without a time."""
    from rota.cli.render.text import core_hours

    known = [row.asked_s for row in rows if row.asked_s is not None]
    if not known:
        return "-"
    unasked = sum(row.unasked or 0 for row in rows)
    least = "≥ " if len(known) < len(rows) else ""
    return f"{least}{core_hours(sum(known))}" + (f" (+{unasked:,})" if unasked else "")
