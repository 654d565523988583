"""`rota status`: counts by group and state, progress, rates, expected ends."""

from __future__ import annotations

import sys

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.input.selectors import selectors
from rota.cli.render.printing import print_out


@command("status")
@selectors(required=False)
@click.option("--watch", is_flag=True, help="Refresh every second, until Ctrl-C.")
@click.option("--until-done", is_flag=True, help="Watch until every job has ended or can never run.")
def status(call: Invocation, selectors: tuple[str, ...], watch: bool, until_done: bool) -> int:
    """Count jobs by group and state, with progress, rate and expected end where they are known.

    Rates are those of the last minute. The expected end leaves out jobs that wait for a person, such as held and
    blocked ones, and names them. If it is not known, the reason is given.

    \b
    Examples:
      rota status
      rota status @work --watch
      rota status last --until-done
      rota status --json
    """
    with call.connect_to_read() as client:
        if watch or until_done:
            from rota.cli.session.status_watch import watch_status

            return watch_status(client, selectors, as_json=call.json, until_done=until_done)
        found = client.status(*selectors)
    if call.json:
        print_json(found)
    else:
        from rota.cli.render.status_text import Canvas, status_text
        from rota.cli.render.text import coloured, width

        print_out(status_text(found, Canvas(width(sys.stdout), None, coloured(sys.stdout))))
    return 0
