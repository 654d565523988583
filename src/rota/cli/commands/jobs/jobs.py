"""`rota jobs`: list jobs, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.input.numbers import WholeNumber
from rota.cli.input.selectors import selectors
from rota.cli.render.printing import print_err, print_out

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from rota.cli.render.text import SafeText
    from rota.wire.views import JobView


@command("jobs")
@selectors(required=False)
@click.option(
    "--limit", type=WholeNumber(1, 100_000), metavar="N", default=1000, show_default=True, help="How many at most."
)
@click.option(
    "--cursor", default="0", metavar="CURSOR", help="Start of the page: the value of 'next' on the page before."
)
def jobs(call: Invocation, selectors: tuple[str, ...], limit: int, cursor: str) -> int:
    """List jobs, one line each, oldest first.

    \b
    Examples:
      rota jobs
      rota jobs state=failed
      rota jobs @work,state=running 12-20
      rota jobs --json --limit 100 all
    """
    from rota.client.calls import place_of

    begin = place_of(cursor)
    with call.connect_to_read() as client:
        page = client.jobs(*selectors, limit=limit, cursor=begin)
    if call.json:
        print_json(page)
        return 0
    if call.quiet:
        print_out(*(str(job.id) for job in page.jobs))
        return 0
    if page.jobs:
        print_out(_table(page.jobs))
    elif not cursor.strip("0"):
        print_err("no jobs")
    if page.next:
        print_err(f"{page.total:,} jobs in all; go on with: --cursor {page.next}")
    return 0


def _table(found: list[JobView]) -> SafeText:
    from datetime import UTC, datetime

    from rota.cli.render.job_text import exit_text
    from rota.cli.render.text import brief_command, harmless, table

    now = datetime.now(UTC)
    own = _telling(found)
    head = ["ID", "STATE", "GROUP", *own, "TRY", "EXIT", "TIME", "COMMAND"]
    rows = [
        [
            str(job.id),
            job.state,
            harmless(", ".join(job.groups) or job.group),
            *(harmless(text(job)) for text in own.values()),
            str(job.attempt),
            exit_text(job),
            _time(job, now),
            brief_command(job.cmd),
        ]
        for job in found
    ]
    return table(head, rows, right="rll" + "l" * len(own) + "rrr", state=1)


def _telling(found: list[JobView]) -> dict[str, Callable[[JobView], str]]:
    """Optional columns in which these jobs differ, or that only some jobs have."""
    from socket import gethostname

    from rota.plan.language.hostlist import fold
    from rota.pool_names import PLANNED

    columns: dict[str, Callable[[JobView], str]] = {}
    if any(job.array_id is not None for job in found):
        columns["ARRAY"] = lambda job: "" if job.array_id is None else f"{job.array_id}_{job.array_index}"
    if any(job.name for job in found):
        columns["NAME"] = lambda job: job.name
    if len({job.user for job in found}) > 1:
        columns["USER"] = lambda job: job.user
    if len({job.queue for job in found}) > 1:
        columns["QUEUE"] = lambda job: job.queue
    if {job.pool for job in found} - {"", *PLANNED}:
        columns["POOL"] = lambda job: job.pool
    if {host for job in found for host in job.hosts} - {gethostname()}:
        columns["HOST"] = lambda job: fold(job.hosts)
    return columns


def _time(job: JobView, now: datetime) -> str:
    from rota.cli.render.job_text import ran_s
    from rota.units import about_duration

    seconds = ran_s(job, now)
    return "-" if seconds is None else about_duration(seconds)
