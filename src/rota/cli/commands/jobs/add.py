"""`rota add`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from rota.cli.command import Invocation, command
from rota.cli.input.job_options import (
    call_options,
    given,
    given_call,
    input_option,
    job_options,
    lines_option,
    script_option,
)
from rota.cli.input.selectors import files
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from rota.cli.session.submission import Submission
    from rota.client.session import Added
    from rota.wire.client_messages import NewSpec


@command("add", takes_command=True)
@click.argument("file", required=False, metavar="[FILE|-]", shell_complete=files)
@job_options
@click.option("--sync", is_flag=True, help="Wait for the jobs; the exit status is as with 'rota run'.")
@script_option
@lines_option
@call_options
@input_option
@click.option("--dry-run", is_flag=True, help="Check the input and show what would be added; add nothing.")
@click.option("--no-start", is_flag=True, help="Do not start a manager if there is none.")
def add(
    call: Invocation,
    file: str | None,
    command: list[str] | None,
    sync: bool,
    dry_run: bool,
    no_start: bool,
    source: str | None,
    script: str | None,
    lines: bool,
    **options: Any,
) -> int:
    """Add jobs and print their ids.

    FILE (or stdin) holds one command a line, one JSON object a line, a command followed by a tab and a JSON
    object, or one JSON array of objects. Blank lines and lines that begin with # are skipped. A command after --
    is one job: several words are executed directly, a single word by the shell. A script is one job with
    --script: its text is stored with the job, lines like "#ROTA --mem 4G" at its top are options, and the command
    line overrides them.

    A file can be added again: jobs that are complete are skipped, and failed ones are retried. Jobs that failed,
    were cancelled or are blocked are replaced if their line was corrected or removed in between. If any line is
    bad, nothing is added.

    \b
    Examples:
      rota add commands.txt
      seq 100 | sed 's/.*/work &/' | rota add --mem 2G --time 10m -g work
      rota add --after 12,13 -- ./report.sh --all
      rota add --script job.sh --mem 8G -- input.dat
      rota add --call model:fit --args '["a.csv"]' --kwargs '{"depth": 3}'
      rota add --array 1-100%5 -- 'simulate --seed $ROTA_ARRAY_INDEX'
      rota add --array-file parameters.txt --limit licence -- ./simulate
      rota add - <<< '{"cmd": "big", "cpus": 8, "mem": "20G", "retries": 1}'
    """
    from rota.cli.session.interrupts import explain_interrupt
    from rota.cli.session.submission import Submission

    function = given_call(options)
    how = {"may_start": not no_start, "check": dry_run, "idle": dry_run}
    with explain_interrupt(lambda: "nothing was added"):
        jobs = Submission(
            call,
            file=file,
            command=command,
            fields=given(options),
            script=script,
            lines=lines,
            function=function,
            retries=3,
            input=source,
            **how,
        )
    if dry_run:
        return preview(call, jobs)
    return finish(call, jobs, sync=sync)


def finish(call: Invocation, jobs: Submission, *, sync: bool) -> int:
    """Upload the jobs and print their ids; with `sync`, wait for them."""
    from rota.cli.session.interrupts import explain_interrupt

    with explain_interrupt(jobs.when_interrupted):
        added = jobs.upload()
    if not sync:
        _print(call, added)
        return 0
    with explain_interrupt(lambda: "the jobs go on; wait for them with 'rota wait last'"):
        return _wait(call, jobs, added)


def preview(call: Invocation, jobs: Submission) -> int:
    """Print what would be added."""
    added = jobs.upload()
    _print(call, added, would=True)
    if not call.json and not call.quiet and not added.existing and not added.retried:
        from rota.cli.render.text import command_text

        told = ""
        for cmd, index, spec in jobs.sample:
            print_out(f"  {'' if index is None else f'[{index}] '}{command_text(cmd)}")
            asks = _asks(spec)
            if asks != told:
                print_out(f"    {asks or 'asks for nothing special'}")
                told = asks
        if len(added.added) > len(jobs.sample):
            print_out(f"  … and {len(added.added) - len(jobs.sample):,} more")
    return 0


def _asks(spec: NewSpec) -> str:
    """What a job asks of the planner, in one line; empty for most jobs."""
    from datetime import datetime

    from rota.cli.render.job_text import types_text
    from rota.cli.render.text import harmless

    parts = {
        "request": "  or  ".join(spec.request),
        "where": spec.where,
        "type": types_text(spec.types) if spec.types else "",
        "queue": "" if spec.queue == "default" else spec.queue,
        "project": spec.project,
        "retried on": "" if spec.retry_on is None else ", ".join(spec.retry_on) or "nothing",
        "reserved for": "" if spec.at is None else f"{datetime.fromtimestamp(spec.at):%Y-%m-%d %H:%M:%S}",
    }
    return harmless("; ".join(f"{name} {text}" for name, text in parts.items() if text))


def _wait(call: Invocation, jobs: Submission, added: Added) -> int:
    from rota.cli.session.waiting import wait_for_jobs

    if not call.json:
        _print(call, added)
        sys.stdout.flush()
    return wait_for_jobs(call, jobs.connect(), [f"submission={jobs.id}"])


def _print(call: Invocation, added: Added, *, would: bool = False) -> None:
    if call.json:
        import json

        names = ("added", "existing", "retried", "replaced", "changed", "kept")
        body = {name: getattr(added, name) for name in names}
        print_out(json.dumps(body))
        return
    if call.quiet:
        if added.ids:
            print_out(*map(str, added.ids))
        return
    from rota.cli.render.text import count, few_ranges
    from rota.cli.session.submission import touched_text

    parts = []
    if added.added or not (added.existing or added.retried):
        ids = f": {few_ranges(added.added)}" if added.added and not would else ""
        parts.append(f"{'would add' if would else 'added'} {count(len(added.added), 'job')}{ids}")
    if added.retried:
        verb = "would retry" if would else "retried"
        parts.append(f"{verb} {count(len(added.retried), 'job')}: {few_ranges(added.retried)}")
    live = len(added.existing) - len(added.complete)
    if live:
        parts.append(f"{live:,} already there")
    if added.complete:
        parts.append(f"{len(added.complete):,} already complete (skipped)")
    if touched := touched_text(added, would=would):
        parts.append(touched)
    print_out("; ".join(parts))
