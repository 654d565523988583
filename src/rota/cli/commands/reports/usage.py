"""`rota usage`: how machines spent their time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rota.cli.command import Invocation, command, print_json
from rota.cli.input import time_spans
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from rota.cli.render.text import SafeText
    from rota.wire.sums import HostUsage, UsageView

_BAR: Final = 30


@command("usage")
@time_spans.options("a day ago", "now")
def usage(call: Invocation, since: str | None, until: str | None, last: str | None) -> int:
    """Show how hosts spent their time: busy with jobs, idle, down (away, drained or suspected) or asleep.

    These add up to the time for which the host was observed, that is, while a manager was running. BUSY % is
    relative to the time in which jobs could run: asleep counts as capacity, down does not. WHEN is like
    2026-11-16, -2d or @1700000000.

    \b
    Examples:
      rota usage
      rota usage --from -7d
      rota usage --last 36h
      rota usage --from 2026-11-01 --to 2026-11-16 --json
    """
    first, end = time_spans.moments(since, until, last)
    with call.connect_to_read() as client:
        view = client.usage(since=first, until=end)
    if call.json:
        print_json(view)
    elif call.quiet:
        print_out(*(each.host for each in view.hosts))
    elif view.hosts:
        print_out(_table(view))
    else:
        print_out("nothing is known of any host in this time")
    return 0


def _table(view: UsageView) -> SafeText:
    from rota.cli.render.text import harmless, table

    rows = [[harmless(each.host), *_figures([each], each.utilisation)] for each in view.hosts]
    if len(rows) > 1:
        rows.append(["all", *_figures(view.hosts, view.utilisation)])
    return table(["HOST", "BUSY", "IDLE", "DOWN", "ASLEEP", "BUSY %", ""], rows, right="lrrrrrl")


def _figures(hosts: list[HostUsage], utilisation: float | None) -> list[str]:
    from rota.units import about_duration

    names = ("busy_s", "idle_s", "down_s", "asleep_s")
    sums = [sum(getattr(each, name) for each in hosts) for name in names]
    shown = "-" if utilisation is None else f"{100 * utilisation:.0f} %"
    return [*map(about_duration, sums), shown, "█" * round(_BAR * (utilisation or 0.0))]
