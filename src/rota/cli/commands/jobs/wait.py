"""`rota wait`: wait until jobs have ended."""

from __future__ import annotations

import click

from rota.cli.command import Invocation, command
from rota.cli.input.selectors import selectors


@command("wait")
@selectors(required=True)
@click.option("--timeout", metavar="TIME", help="Give up after this time, with exit status 6.")
def wait(call: Invocation, selectors: tuple[str, ...], timeout: str | None) -> int:
    """Wait until jobs have ended, or can never run.

    The exit status is 0 if all completed and 1 otherwise; for a single job it is the job's own; 6 after
    --timeout.

    \b
    Examples:
      rota wait 12
      rota wait @work --timeout 2h
      rota wait last --json
    """
    from rota.cli.session.waiting import wait_for_jobs
    from rota.errors import BadInput
    from rota.units import parse_duration

    limit = None
    if timeout is not None:
        try:
            limit = parse_duration(timeout)
        except BadInput as error:
            raise error.at(field="timeout", label="--timeout") from None
    with call.connect_to_read() as client:
        return wait_for_jobs(call, client, list(selectors), timeout=limit)
