"""`rota logs`: what a job printed, byte for byte."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Final

import click

from rota.cli.command import Invocation, command
from rota.cli.input.numbers import WholeNumber
from rota.cli.input.selectors import one_job
from rota.cli.render.printing import print_err, print_out

if TYPE_CHECKING:
    from rota.cli.session.job_output import LivePrinter
    from rota.client.blocking import Client
    from rota.client.printed import Absent
    from rota.wire.views import JobView

_RUNNING: Final = ("starting", "running", "suspended", "finishing")
#: Live output that is there arrives within this time; silence for so long means that there is no more.
_SILENCE_S: Final = 0.5


@command("logs")
@click.argument("id", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help="Keep printing until the job has ended.")
@click.option("--attempt", type=WholeNumber(1), metavar="N", help="Output of this attempt (default: the newest).")
@click.option("--err", is_flag=True, help="Only its stderr, printed to stdout.")
@click.option("--out", is_flag=True, help="Only its stdout.")
@click.option("--provision", is_flag=True, help="What was printed while its machines were provisioned.")
def logs(
    call: Invocation, id: str, follow: bool, attempt: int | None, err: bool, out: bool, provision: bool
) -> int:
    """Print the output of a job, exactly as it wrote it.

    Its stdout goes to stdout and its stderr to stderr; --out or --err selects one of them, printed to stdout.

    Where bytes are missing, a line '[rota: N bytes are missing here: ...]' says how many and why, and the exit
    status is 1. Output larger than the setting keep_output is kept only at its beginning and its end. Exit
    status 0 means that every byte was printed. Following never slows a job down: output that could not be shown
    in time is missing too.

    \b
    Examples:
      rota logs 17
      rota logs 17 --err --attempt 1
      rota logs -f 17
    """
    from rota.errors import BadInput

    if provision:
        return _provisioning(call, id, attempt or 0)
    if err and out:
        raise BadInput("--err and --out exclude each other", hint="without them both are printed")
    if follow and call.json:
        raise BadInput("--follow prints as it comes, which is not one JSON value", hint="leave --json out")
    if follow and attempt:
        raise BadInput("--follow shows the newest attempt", hint="leave --attempt out")
    with call.connect_to_read() as client:
        number = one_job(client, id)
        job = client.job(number)
        only = 2 if err else 1 if out else 0
        if follow and job.state not in ("complete", "failed", "cancelled"):
            _tell_why_nothing(job, only=only)
            return 0 if _to_its_end(client, number, only=only) else 1
        if job.state in _RUNNING and attempt in (None, job.attempt) and not call.json:
            whole = _so_far(client, number, only=only)
            _tell_why_nothing(job, only=only)
            return 0 if whole else 1
        if call.json:
            import json

            from msgspec.structs import asdict

            streams = {"stdout": False, "stderr": True}
            found = {
                name: client.output(number, attempt=attempt or 0, err=of_err) for name, of_err in streams.items()
            }
            texts = {name: text.decode("utf-8", "replace") for name, text in found.items()}
            gaps = [{"stream": name, **asdict(gap)} for name, text in found.items() for gap in text.absent]
            print_out(json.dumps({"id": number, "attempt": attempt or job.attempt, **texts, "missing": gaps}))
            return 1 if gaps else 0
        from rota.cli.session.interruptible_writer import InterruptibleWriter

        absent: list[Absent] = []
        if not err:
            stream = InterruptibleWriter(sys.stdout.buffer)
            for part in client.output_parts(number, attempt=attempt or 0, absent=absent):
                stream.write(part)
            stream.flush()
        if not out:
            stream = InterruptibleWriter(sys.stdout.buffer if err else sys.stderr.buffer)
            for part in client.output_parts(number, attempt=attempt or 0, err=True, absent=absent):
                stream.write(part)
            stream.flush()
        _tell_why_nothing(job, only=only)
    return 1 if absent else 0


def _provisioning(call: Invocation, id: str, attempt: int) -> int:
    """Print what provisioned the machines of a job has printed."""
    with call.connect_to_read() as client:
        number = one_job(client, id)
        found = client.provision_output(number, attempt=attempt)
    if call.json:
        from rota.cli.command import print_json

        print_json(
            {
                "id": number,
                "machines": [
                    {"attempt": each, "host": host, "output": text.decode("utf-8", "replace")}
                    for each, host, text in found
                ],
            }
        )
        return 0
    for _each, host, text in found:
        if len(found) > 1:
            sys.stdout.buffer.write(f"==> {host} <==\n".encode())
        sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()
    if not found:
        print_err(f"nothing was printed while machines were provisioned for job {number}")
    return 0


def _tell_why_nothing(job: JobView, *, only: int) -> None:
    """Print on stderr why there is no output: the job has not begun, or writes to files."""
    from rota.cli.commands.jobs.output_paths import output_file
    from rota.cli.render.text import harmless

    if not job.attempt:
        ended = job.state in ("complete", "failed", "cancelled")
        text = "never started" if ended else "has not started yet"
        print_err(f"rota: job {job.id} {text} ({job.state})")
    paths: dict[str, list[str]] = {}
    for number, name in ((1, "stdout"), (2, "stderr")):
        if only in (0, number) and (path := output_file(job, number)):
            paths.setdefault(path, []).append(name)
    for path, names in paths.items():
        verb = "go" if len(names) > 1 else "goes"
        print_err(f"rota: {' and '.join(names)} of job {job.id} {verb} to {harmless(path)}")


def _to_its_end(client: Client, number: int, *, only: int) -> bool:
    """What a job prints until it has ended; False if some of it is not there any more."""
    from rota.cli.session.job_output import LivePrinter
    from rota.errors import NotDone

    printer = LivePrinter(client, lines=False, only=only)
    while True:
        try:
            with client.watch(number, outputs=True, follow=True, paced=True) as watching:
                printer.took = watching.took
                for progress in watching:
                    printer.take(progress)
        except NotDone:  # the manager starts anew; what was printed before is not printed again
            client.connect()
            printer.reconnected(client)
        else:
            break
    _catch_up(client, number, printer)
    printer.finish()
    return not printer.incomplete


def _catch_up(client: Client, number: int, printer: LivePrinter) -> None:
    """Print the output of a job that had ended when the watch was opened: that tells nothing of its output."""
    from rota.errors import NotFound

    with contextlib.suppress(NotFound):  # it was removed at its end
        attempts = client.job(number).attempts
        if isinstance(attempts, list) and attempts:
            printer.catch_up(number, attempts[-1])


def _so_far(client: Client, number: int, *, only: int) -> bool:
    """What a running job has printed until now; False if some of it is not there any more."""
    from rota.cli.session.job_output import LivePrinter

    printer = LivePrinter(client, lines=False, only=only)
    with client.watch(number, outputs=True, follow=True, paced=True) as watching:
        printer.took = watching.took
        while (progress := watching.poll(_SILENCE_S)) is not None:
            printer.take(progress)
    if watching.settled is not None:
        _catch_up(client, number, printer)
    printer.finish()
    return not printer.incomplete
