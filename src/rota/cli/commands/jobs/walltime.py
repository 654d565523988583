"""`rota walltime`: give a running job more time, or less."""

from __future__ import annotations

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.input.selectors import one_job
from rota.cli.render.printing import print_out


@command("walltime", context_settings={"ignore_unknown_options": True})
@click.argument("job", metavar="ID")
@click.argument("time", metavar="[+|-]TIME")
@click.option(
    "--force", is_flag=True, help="Grant all of it now, even if promised starts are delayed (administrators)."
)
def walltime(call: Invocation, job: str, time: str, force: bool) -> int:
    """Change the walltime of a running job, by an amount (+ or -) or to a total.

    A job that has ended and keeps its machines (--reserve) keeps them for that time.

    An extension is granted as far as it delays no start that was promised to another job; the rest follows when
    that becomes possible.

    \b
    Examples:
      rota walltime 12 +1h
      rota walltime 12 -30m
      rota walltime 12 2h
    """
    from rota.units import format_duration

    with call.connect() as client:
        done = client.walltime(one_job(client, job), time, force=force)
    if call.json:
        body = {
            "id": done.job,
            "walltime_s": done.walltime_s,
            "pending_s": done.pending_s,
            "before_s": done.before_s,
        }
        print_json(body)
    elif call.quiet:
        print_out(str(done.job))
    else:
        rest = (
            f"; {format_duration(done.pending_s)} more as soon as no promise is broken" if done.pending_s else ""
        )
        what = "keeps its machines for" if done.keeps else "has a walltime of"
        print_out(f"job {done.job} {what} {format_duration(done.walltime_s)}{rest}")
    return 0
