"""`rota gantt`: the plan drawn in the terminal, as JSON, or as a picture."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.input.numbers import WholeNumber
from rota.cli.input.selectors import files
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from rota.cli.render.chart_style import ChartStyle
    from rota.wire.gantt import GanttView

#: At most this many jobs without a planned start are listed.
_LISTED: Final = 10


@command("gantt")
@click.option("--from", "since", metavar="WHEN", help="Start of the chart; it may lie in the past (default: now).")
@click.option("--to", "until", metavar="WHEN", help="End of the chart (default: the last planned end).")
@click.option("--width", type=WholeNumber(40, 1000), metavar="N", help="Columns (default: those of the terminal).")
@click.option(
    "--rows", type=WholeNumber(0, 1_000_000), metavar="N", default=50, show_default=True,
    help="Maximum number of rows; 0 for all.",
)  # fmt: skip
@click.option(
    "--limit", type=WholeNumber(1, 100_000), metavar="N", default=10_000, show_default=True,
    help="Maximum number of jobs, earliest start first.",
)  # fmt: skip
@click.option(
    "--picture",
    metavar="FILE",
    shell_complete=files,
    help="Write the chart to this file instead: .svg, .png or .html.",
)
def gantt(
    call: Invocation,
    since: str | None,
    until: str | None,
    width: int | None,
    rows: int,
    limit: int,
    picture: str | None,
) -> int:
    """Draw a Gantt chart of past, running and planned jobs, with a row for each host or group of its cores.

    Hosts with the same schedule share a row. Jobs without a planned start are listed below, with the reason. The
    past shows attempts on the cores they had, where these are known, and when hosts were drained, down, asleep
    or closed. If there are more attempts than --limit, they are merged into the load of each host. Times are
    local; WHEN is like 2026-11-16T08:00, now+10m, -15m or @1700000000.

    \b
    Examples:
      rota gantt
      rota gantt --from -15m
      rota gantt --from -2d --to now
      rota gantt --from now+1h --to now+3h
      rota gantt --picture plan.html
      rota gantt --json
    """
    from rota.cli.render.chart_style import chart_style
    from rota.cli.render.gantt_text import span_of
    from rota.cli.render.text import harmless
    from rota.core.fields.moments import parse_moment
    from rota.errors import BadInput
    from rota.time_zones import local_seconds

    now = time.time()
    first = None if since is None else _parsed("--from", lambda: parse_moment(since, now=now, local=local_seconds))
    last = None if until is None else _parsed("--to", lambda: parse_moment(until, now=now, local=local_seconds))
    if last is not None and last <= (now if first is None else first):
        hint = "say from when on: --from -1h" if first is None else "give a later one, such as now+2h"
        raise BadInput("--to: the time is not after the beginning", hint=hint)
    if picture is not None:
        from rota.cli.render.picture_file import check_writable

        check_writable(picture)
    with call.connect_to_read() as client:
        view = client.gantt(since=first, until=last, limit=limit)
        begin, end = span_of(view, first, last)
        if first is None and not call.json and not call.quiet:
            # A little of the past is drawn as well: since when do jobs run?
            view = client.gantt(since=begin, until=last, limit=limit)
    if picture is not None:
        _write(view, picture, begin, end)
    if call.json:
        print_json(view)
    elif call.quiet:
        print_out(*(str(job.id) for job in view.jobs))
    elif picture is not None:
        print_out(f"drawn into {harmless(picture)}")
    else:
        print_out(*_lines(view, begin, end, chart_style(width, rows), whole=last is not None))
    return 0


def _parsed(option: str, read: object) -> float:
    from rota.errors import BadInput

    try:
        return read()  # type: ignore[operator, no-any-return]
    except BadInput as error:
        raise error.at(field=option.lstrip("-"), label=option) from None


def _lines(view: GanttView, begin: float, end: float, look: ChartStyle, *, whole: bool) -> list[str]:
    """`whole`: --to was given, so the window is drawn to its end."""
    from datetime import datetime

    from rota.cli.render.gantt_text import chart, last_end, without_resources
    from rota.cli.render.text import count, few_ranges
    from rota.wire.gantt import KEEPS

    kept = sum(job.state == KEEPS for job in view.jobs)
    planned = sum(job.state == "ready" for job in view.jobs)
    said = f"{len(view.jobs) - planned - kept:,} running, {planned:,} planned"
    if kept:
        said += f", {kept:,} kept"
    if view.past is not None and view.past.total:
        said = f"{view.past.total:,} ended, {said}"
    if view.later:
        said += f", {view.later:,} later"
    if view.earlier:
        said += f", {view.earlier:,} over before"
    if view.waiting_total:
        said += f", {view.waiting_total:,} without a planned start"
    lines = [f"{view.now.astimezone():%a %d %b %Y, %H:%M:%S %Z}: {said}", ""]
    lines += chart(view, begin, end, look)
    if not whole and (last := last_end(view)) > end:
        lines.append(f"it goes on until {datetime.fromtimestamp(last):%a %d %b %Y, %H:%M}; see it with --to")
    if not view.hosts:
        lines.append("there are no resources yet; see 'rota manager status'")
    if bare := without_resources(view.jobs):
        lines.append(f"on no resources of their own: {few_ranges([job.id for job in bare])}")
    if view.left_out:
        lines.append(f"{count(view.left_out, 'job')} that begin later are not drawn (--limit)")
    lines += _about_past(view)
    if not view.plan:
        lines.append("no job has a request, so there is no plan")
    return [*lines, *_in_danger(view), *_waiting(view, look)]


def _in_danger(view: GanttView) -> list[str]:
    from rota.cli.render.text import harmless

    some = [job for job in view.jobs if job.danger]
    lines = [f"reservation {job.id} is in danger: {harmless(job.danger)}" for job in some[:_LISTED]]
    return lines + ([f"and {len(some) - _LISTED:,} more reservations"] if len(some) > _LISTED else [])


def _about_past(view: GanttView) -> list[str]:
    """Notes about what the chart leaves out of the past."""
    from rota.cli.render.text import count, few_ranges
    from rota.units import about_duration

    past, lines = view.past, []
    if past is None:
        return []
    if past.slice_s is not None:
        lines.append(
            f"{count(past.total, 'attempt')} ended, too many to draw: it shows how much of each host was in use,"
            f" {about_duration(past.slice_s)} at a time; a shorter time or a higher --limit shows them"
        )
    if bare := [attempt.id for attempt in past.attempts if not attempt.lines]:
        lines.append(f"ended, and drawn nowhere because others had all lines: {few_ranges(bare)}")
    if past.removed:
        lines.append(f"{count(past.removed, 'attempt')} of these hours are not drawn: their jobs were removed")
    return lines


def _waiting(view: GanttView, look: ChartStyle) -> list[str]:
    from rota.cli.render.text import count, cut, harmless, is_terminal

    if not view.waiting_total:
        return []
    lines = ["", "without a planned start:"]
    for job in view.waiting[:_LISTED]:
        line = f"  {job.id:<6} {harmless(job.message)}"
        lines.append(cut(line, look.width) if is_terminal(sys.stdout) else line)
    more = view.waiting_total - len(view.waiting[:_LISTED])
    if more > 0:
        rest = (
            f"{count(more, 'job')} {'waits' if more == 1 else 'wait'}"
            if not view.waiting
            else f"and {more:,} more"
        )
        lines.append(f"  {rest}; 'rota why ID' says what for")
    return lines


def _write(view: GanttView, path: str, begin: float, end: float) -> None:
    """Times in a picture count from now."""
    from rota.cli.render.gantt_bars import items, owned
    from rota.cli.render.gantt_text import numbers
    from rota.cli.render.picture_file import write_picture
    from rota.pictures.schedule import Drawn, Picture

    now = view.now.timestamp()
    drawn = []
    jobs = [*view.jobs, *(view.past.attempts if view.past is not None else ())]
    many = len({job.user for job in jobs}) > 1  # colours are then those of users
    known = {job.id: job for job in jobs}
    for bar in items(view, owned(view)):
        job = known[bar.id]
        start, stop = max(bar.start, begin), min(bar.end, end)
        if bar.runs and start < stop:
            label = ", ".join(word for word in (job.name, job.user, job.state) if word)
            drawn.append(Drawn(bar.id, label, start - now, stop - now, bar.runs, job.user if many else ""))
    ids = [number for host in view.hosts for number in numbers(host.resources)]
    note = f"{len(drawn):,} jobs; time counts from {view.now.astimezone():%Y-%m-%d %H:%M:%S %Z}"
    made = Picture(
        title="Plan", note=note, drawn=drawn, rows=(min(ids, default=1), max(ids, default=1)), row_title="resource"
    )
    write_picture(made, path)
