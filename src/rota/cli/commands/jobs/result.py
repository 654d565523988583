"""`rota result`: what the call of a function returned."""

from __future__ import annotations

import click

from rota.cli.command import Invocation, command
from rota.cli.input.selectors import one_job
from rota.cli.render.printing import print_err, print_out


@command("result")
@click.argument("id", metavar="ID")
def result(call: Invocation, id: str) -> int:
    """Print what the call of a function returned, as JSON.

    If it failed, its traceback is printed on stderr and the exit status is 1; if it has not ended, the exit status
    is 3.

    \b
    Examples:
      rota result 17
      rota result 17 --json
    """
    from rota.cli.render.text import harmless
    from rota.client.results import as_json

    with call.connect_to_read() as client:
        found = client.results(one_job(client, id))[0]
    ended = found.result is not None or found.error is not None
    status = 1 if found.error is not None else 0 if ended else 3
    if call.json:
        print_out(as_json(found).decode())
        return status
    if found.error is not None:
        error = found.error
        text = error.traceback.rstrip() or f"{error.type}: {error.message}".removesuffix(": ")
        for line in text.split("\n"):
            print_err(harmless(line))
    elif found.result is not None:
        print_out(found.result)
    else:
        print_err(f"rota: job {found.id} has no result yet: it is {found.state}")
    return status
