"""`rota usage` and `rota node usage`: how machines spent their time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.input import time_spans
from rota.cli.input.selectors import files
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.cli.render.text import SafeText
    from rota.wire.usage_views import MachineUsageView

_BAR: Final = 30
#: Keys of one plot.
_MOST_PLOTS: Final = 50


@command("usage")
@click.argument("hosts", metavar="[HOST…]", nargs=-1)
@time_spans.options("a day ago", "now")
@click.option(
    "--by", metavar="WHAT",
    help="Group rows by host (default), group (of machines) or a property; without it, plots show all together.",
)  # fmt: skip
@click.option("--csv", is_flag=True, help="Print comma-separated values, with the state of the node.")
@click.option("--plot", is_flag=True, help="Draw stacked bars, one for each day, week or month.")
@click.option(
    "-o", "--output", "picture", metavar="FILE", shell_complete=files,
    help="Draw the bars into this file: .svg or .png.",
)  # fmt: skip
@click.option(
    "--window", metavar="WINDOW",
    help="Length of a window of --csv and plots: hour, day, week, month, or a duration such as 36h "
    "(default: all in one; in plots the shortest of day, week and month with at most 31 bars).",
)  # fmt: skip
def usage(
    call: Invocation,
    hosts: tuple[str, ...],
    since: str | None,
    until: str | None,
    last: str | None,
    by: str | None,
    csv: bool,
    plot: bool,
    picture: str | None,
    window: str | None,
) -> int:
    """Show how machines spent their time: busy with jobs, installing, idle, down (away, drained, suspected or
    closed), asleep, in manual use, broken.

    For each row these add up to the window exactly. A row of several machines (--by) has the sum of their times; a
    machine in several groups counts in each. Time before a machine joined, and while no manager was running, is
    unknown. BUSY % is relative to the time in which jobs could run: asleep counts as capacity, down, manual and
    broken do not. WHEN is like 2026-11-16, -2d or @1700000000.

    \b
    Examples:
      rota usage
      rota usage --from -7d --by group
      rota node usage n[1-4] --last 36h
      rota usage --from 2026-11-01 --to 2026-11-16 --json
      rota usage --from -30d --csv --window day
      rota usage --from -30d --plot
      rota usage --from -30d --by lab -o lab.svg
    """
    from rota.cli.render import usage_parts

    first, end = time_spans.moments(since, until, last)
    names = _hosts(hosts)
    draws = plot or picture is not None
    if picture is not None:
        _check_picture(picture)
    key = ("" if draws and not hosts else "host") if by is None else by.strip()
    if by is not None and not key:
        from rota.errors import BadInput

        raise BadInput("--by: it is empty", hint="use host, group or a property")
    window = window or (_window_of_plot(first, end) if draws else "")
    with call.connect_to_read() as client:
        view = client.machine_usage(
            since=first, until=end, hosts=names, by=key, window=window, zone=_zone() if window else ""
        )
    if picture is not None:
        _write(view, picture)
    if call.json:
        print_json({"from": view.since, "to": view.until, "rows": usage_parts.contract_rows(view)})
    elif call.quiet:
        print_out(*view.machines)
    elif csv:
        print_out(*_csv(view))
    elif not any(each.condition != usage_parts.UNKNOWN for each in view.rows):
        print_out("nothing is known of any host in this time")
    elif plot:
        print_out(*_plot(view))
    elif picture is not None:
        from rota.cli.render.text import harmless

        print_out(f"drawn into {harmless(picture)}")
    else:
        print_out(_table(view))
    return 0


def _hosts(words: tuple[str, ...]) -> list[str]:
    from rota.plan.language.hostlist import expand

    return expand(",".join(words)) if words else []


def _window_of_plot(first: float | None, end: float | None) -> str:
    import time

    from rota.cli.render.usage_plot import window_for

    now = time.time()
    end = now if end is None else min(end, now)
    return "day" if first is None else window_for(end - first)


def _zone() -> str:
    from rota.time_zones import local_zone_name

    return local_zone_name()


def _named(key: str, by: str) -> str:
    """A key as people read it."""
    if key:
        return key
    return "all" if not by else "(none)"


# ------------------------------------------------------------------ table and CSV


def _table(view: MachineUsageView) -> SafeText:
    from rota.cli.render import usage_parts
    from rota.cli.render.text import harmless, table

    found = usage_parts.by_key(view)
    shown = [
        part
        for part in usage_parts.PARTS
        if part in usage_parts.USUAL or any(part in seconds for seconds in found.values())
    ]
    many = any(number > 1 for number in view.machines.values())

    def row(name: str, number: int, seconds: dict[str, float]) -> list[str]:
        return [harmless(name), *([f"{number:,}"] if many else []), *_figures(seconds, shown)]

    rows = [row(_named(key, view.by), view.machines.get(key, 1), its) for key, its in found.items()]
    if len(rows) > 1 and view.by != "group":  # a machine may be in several groups
        rows.append(row("all", sum(view.machines.values()), usage_parts.parts(view.rows)))
    head = [view.by.upper() or "HOST", *(["MACHINES"] if many else []), *(part.upper() for part in shown)]
    return table([*head, "BUSY %", ""], rows, right="l" + "r" * len(head) + "l")


def _figures(seconds: dict[str, float], shown: list[str]) -> list[str]:
    from rota.cli.render.usage_parts import busy_share
    from rota.units import about_duration

    share = busy_share(seconds)
    said = "-" if share is None else f"{100 * share:.0f} %"
    return [*(about_duration(seconds.get(part, 0.0)) for part in shown), said, "█" * round(_BAR * (share or 0.0))]


def _csv(view: MachineUsageView) -> Iterator[SafeText]:
    """A row for each window, key, condition, usage and state."""
    import csv
    from io import StringIO

    from rota.cli.render.text import harmless

    ends = dict(zip(view.edges, view.edges[1:], strict=False))
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["from", "to", "host", "condition", "usage", "state", "seconds"])
    for row in view.rows:
        until = ends.get(row.at, view.until)
        seconds = f"{row.seconds:.6f}".rstrip("0").rstrip(".")
        key = harmless(row.host)
        writer.writerow([_iso(row.at), _iso(until), key, row.condition, row.usage, row.state, seconds])
    for line in text.getvalue().splitlines():
        yield harmless(line)


def _iso(at: object) -> str:
    from datetime import datetime

    assert isinstance(at, datetime)
    return at.isoformat().replace("+00:00", "Z")


# ------------------------------------------------------------------ plots


def _plot(view: MachineUsageView) -> list[str]:
    from rota.cli.render.chart_style import chart_style
    from rota.cli.render.usage_parts import windows_of
    from rota.cli.render.usage_plot import plot

    _refuse_many(view)
    names = {key: _title(view, key) for key in view.machines}
    return plot(windows_of(view), chart_style(None, 0), names=names)


def _title(view: MachineUsageView, key: str) -> str:
    from rota.cli.render.text import count

    number = count(view.machines.get(key, 1), "machine")
    if not view.by:
        return f"all: {number}"
    return key if view.by == "host" else f"{_named(key, view.by)}: {number}"


def _refuse_many(view: MachineUsageView) -> None:
    from rota.errors import BadInput

    if len(view.machines) > _MOST_PLOTS:
        raise BadInput(
            f"these are {len(view.machines):,} plots, and at most {_MOST_PLOTS} are drawn",
            hint="name some hosts, or use --by with a property that they share",
        )


def _check_picture(path: str) -> None:
    from rota.cli.render.picture_file import check_writable
    from rota.errors import BadInput

    if path.lower().endswith(".html"):
        raise BadInput(f"'{path}' is not the name of a picture file", hint="end it with .svg or .png")
    check_writable(path)


def _write(view: MachineUsageView, path: str) -> None:
    from rota.cli.render.picture_file import write_file
    from rota.cli.render.usage_parts import PARTS, windows_of
    from rota.cli.render.usage_plot import label
    from rota.pictures.rendering import rendered_bars, suffix_of
    from rota.pictures.stacked import Panel, Stack, StackedBars

    _refuse_many(view)
    panels = [
        Panel(_title(view, key), [Stack(label(each.at, each.until), dict(each.seconds)) for each in its])
        for key, its in windows_of(view).items()
    ]
    since, until = view.since.astimezone(), view.until.astimezone()
    note = f"{since:%Y-%m-%d %H:%M} to {until:%Y-%m-%d %H:%M %Z}"
    picture = StackedBars(title="Machine usage", note=note, panels=panels, parts=PARTS)
    write_file(rendered_bars(picture, suffix_of(path)), path)
