"""`rota limit`: list named capacities, or set one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from rota.cli.render.text import SafeText
    from rota.wire.views import LimitView


@command("limit")
@click.argument("limits", metavar="[NAME[:N]…]", nargs=-1)
@click.option("--host", metavar="HOST", help="Set the units of this host, which count only there.")
def limit(call: Invocation, limits: tuple[str, ...], host: str | None) -> int:
    """List limits with their capacity, use and waiting jobs, or set them.

    NAME:N lets jobs have N units at once; 0 stops them. NAME:any lets them have any number, and NAME:unlimited
    removes the limit. NAME@22:00-06:00 lets jobs start only in these hours (local time; seconds may follow, as
    in 22:00:30), and NAME@always at any time again. A change applies at once; running jobs continue. Jobs use a
    limit with --limit NAME. A job with --limit NAME:N declares the limit if it was not set here; the last such job
    decides. The limit stays until NAME:unlimited removes it.

    \b
    Examples:
      rota limit
      rota limit blast:5
      rota limit blast:unlimited
      rota limit night@22:00-06:00
      rota limit night@always
      rota limit bigmem:3 --host node7
    """
    from rota.errors import BadInput, NotFound

    wanted = [text for text in limits if ":" in text or "@" in text]
    shown = [text for text in limits if text not in wanted]
    if host is not None and not wanted:
        raise BadInput("--host goes with NAME:N", hint="see 'rota limit --help'")
    _check(wanted)
    named = {text.partition("@")[0].partition(":")[0] for text in wanted}
    names = {*shown, *named}
    with call.connect() if wanted else call.connect_to_read() as client:
        known = named | ({each.name for each in client.limits()} if shown else set())
        for name in shown:
            if name not in known:
                raise NotFound(f"there is no limit '{name}'", hint=f"declare it with 'rota limit {name}:N'")
        for text in wanted:
            client.set_limit(text, host=host or "")
        found = client.limits()
    if names:
        found = [each for each in found if each.name in names]
    if call.json:
        print_json({"limits": found})
    elif call.quiet:
        print_out(*(each.name for each in found))
    elif found:
        print_out(_table(found))
    elif not wanted:
        print_out("no limits; declare one with 'rota limit NAME:N'")
    else:
        print_out(f"removed: {', '.join(sorted(names))}")
    return 0


def _check(wanted: list[str]) -> None:
    """Check all limits before any is set. Raises `BadInput`."""
    if len(wanted) > 1:
        from rota.core.site.limits import parse_limit

        for text in wanted:
            parse_limit(text)


def _table(limits: list[LimitView]) -> SafeText:
    from rota.cli.render.text import harmless, table

    rows = []
    for each in limits:
        capacity = "any" if each.capacity is None else f"{each.capacity:,}"
        state = "alone" if each.exclusive else "closed" if not each.open else "by jobs" if each.by_jobs else ""
        if each.array is not None and state == "by jobs":
            state = f"of array {each.array}"
        window = each.window or ""
        rows.append([harmless(each.name), capacity, f"{each.used:,}", f"{each.waiting:,}", window, state])
        if each.scope == "host":
            rows[-1][1] = "per host"
            rows += [
                [f"  {harmless(host)}", f"{part['capacity']:,}", f"{part['used']:,}", "", "", ""]
                for host, part in sorted(each.hosts.items())
            ]
    return table(["LIMIT", "CAPACITY", "IN USE", "WAITING", "HOURS", "STATE"], rows, right="lrrr")
