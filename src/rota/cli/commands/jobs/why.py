"""`rota why`: what keeps a job from running, which jobs are in the way, and what would help."""

from __future__ import annotations

import sys

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.input.selectors import one_job
from rota.cli.render.printing import print_out


@command("why")
@click.argument("id", metavar="ID")
def why(call: Invocation, id: str) -> int:
    """Explain why a job is not running: what it waits for, which jobs are in the way, and what would help.

    \b
    Examples:
      rota why 17
      rota why 12_3 --json
    """
    with call.connect_to_read() as client:
        found = client.why(one_job(client, id))
    if call.json:
        print_json(found)
        return 0
    from rota.cli.render.text import coloured, few_ranges, paint

    colour = coloured(sys.stdout)
    print_out(f"job {found.id} is " + paint(found.state, found.state, on=colour))
    for reason in found.reasons:
        print_out(f"  {reason.message}")
        if reason.blockers:
            print_out(f"    held up by   {few_ranges(reason.blockers)}")
        if reason.hint:
            print_out(f"    try          {reason.hint}")
    if found.expected_start:
        print_out(f"  expected start: {found.expected_start.astimezone():%Y-%m-%d %H:%M:%S}")
    if found.expected_end:
        print_out(f"  expected end:   {found.expected_end.astimezone():%Y-%m-%d %H:%M:%S}")
    elif found.expected_reason is not None:
        waits = not found.expected_start and found.state in ("dependent", "ready", "delayed", "held", "blocked")
        what = "expected start:" if waits else "expected end:  "
        print_out(f"  {what} not known: {found.expected_reason.message}")
    return 0
