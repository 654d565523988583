"""`rota status`: counts by group and state, progress, rates, expected ends."""

from __future__ import annotations

import sys

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.input.selectors import selectors
from rota.cli.render.printing import print_out


@command("status")
@selectors(required=False)
@click.option("--watch", is_flag=True, help="Show it again every second, until Ctrl-C.")
@click.option("--until-done", is_flag=True, help="Watch until no job is left that could still run.")
def status(call: Invocation, selectors: tuple[str, ...], watch: bool, until_done: bool) -> int:
    """Count jobs by group and state, with progress, rate and expected end where they are known.

    Rates are those of the last minute. The expected end is that of the jobs that will run without anybody's
    doing: held and blocked ones are left out of it, and named. Where it is not known, it is said why.

    \b
    Examples:
      rota status
      rota status @work --watch
      rota status last --until-done
      rota status --json
    """
    with call.connect() as client:
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
