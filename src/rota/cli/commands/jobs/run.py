"""`rota run`: add jobs, show what they print and how far they are, wait for them."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

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
from rota.cli.render.printing import print_err, print_out

if TYPE_CHECKING:
    from rota.cli.session.job_output import Printer
    from rota.cli.session.submission import Submission
    from rota.client.session import Added
    from rota.wire.views import SettledView

_TICK_S: Final = 0.2
#: How long to wait for a manager that this command did not start.
_AWAY_S: Final = 300.0
#: How long to wait for a manager that was stopped on purpose and may be restarted.
_STOPPED_S: Final = 30.0
_REVIVALS: Final = 5
#: Words of one request: they are compared with each job that they name.
_WORDS_AT_ONCE: Final = 500
_RESUME: Final = "go on with 'rota manager start' and 'rota wait'"


@command("run", takes_command=True)
@click.argument("file", required=False, metavar="[FILE|-]", shell_complete=files)
@job_options
@click.option(
    "--output",
    type=click.Choice(["grouped", "line", "none"]),
    help="How output is printed: per job when it has ended, line by line as it comes, or not at all.",
)
@click.option("--keep-order", is_flag=True, help="Print outputs in the order of the input.")
@script_option
@lines_option
@call_options
@input_option
@click.option("--dry-run", is_flag=True, help="Check the input and show what would be added; add nothing.")
@click.option("--no-start", is_flag=True, help="Do not start a manager if there is none.")
@click.option(
    "-I",
    "--interactive",
    is_flag=True,
    help="Run one job in this terminal: a shell, or the command after --. It ends with the terminal.",
)
def run(
    call: Invocation,
    file: str | None,
    command: list[str] | None,
    output: str | None,
    keep_order: bool,
    dry_run: bool,
    no_start: bool,
    source: str | None,
    script: str | None,
    lines: bool,
    interactive: bool,
    **options: Any,
) -> int:
    """Run commands and wait for them.

    FILE (or stdin) holds one command a line, one JSON object a line, a command followed by a tab and a JSON
    object, or one JSON array of objects. Blank lines and lines that begin with # are skipped. A command after --
    is one job: several words are executed directly, a single word by the shell. A script is one job with
    --script: its text is stored with the job, lines like "#ROTA --mem 4G" at its top are options, and the command
    line overrides them.

    The output of the jobs goes to stdout and stderr, one job after the other; that of a single job is shown
    live. Output is passed on in full, even beyond the setting keep_output. If the reader is slow, output is
    buffered on disk (setting output_spool), and then the jobs block. If bytes are missing all the same, a line
    in their place says so, and the exit status is not 0.

    The exit status is 0 if all jobs complete and 1 otherwise; for a single job it is the job's own. Running the
    same file again resumes it: complete jobs are skipped, failed ones run again, and lines may be corrected,
    added or removed in between. Ctrl-C asks whether to detach or to cancel. TERM cancels the jobs; HUP and KILL
    let them go on.

    \b
    Examples:
      rota run commands.txt
      ls *.dat | sed 's/.*/gzip &/' | rota run --mem 200M
      rota run --cpus 4 -- make -j4
      rota run --script analysis.py
      rota run --call math:hypot --args '[3, 4]'
      rota run --keep-order --output grouped commands.txt > results
    """
    from rota.cli.session.submission import Submission
    from rota.errors import BadInput

    function = given_call(options)
    if interactive:
        from rota.cli.session.interactive import run_interactive

        if script or lines or function:
            raise BadInput("--script, --lines and --call do not go with -I", hint="give the command after --")
        if dry_run:
            raise BadInput("--dry-run does not go with -I", hint="see when it would start: rota plan")

        return run_interactive(call, file=file, command=command, fields=given(options), may_start=not no_start)
    if keep_order and output == "line":
        raise BadInput("--keep-order needs whole outputs", hint="use it with --output grouped")
    how = {"may_start": not no_start, "check": dry_run, "idle": True}
    jobs = Submission(
        call,
        file=file,
        command=command,
        fields=given(options),
        script=script,
        lines=lines,
        function=function,
        retries=0,
        input=source,
        **how,
    )
    if dry_run:
        from rota.cli.commands.jobs.add import preview

        return preview(call, jobs)
    return Run(call, jobs, output=output, keep_order=keep_order).status()


class _Left(Exception):
    """We leave in the middle of what jobs print, and let them go on."""


class Run:
    """One `rota run` from its submission to its end."""

    def __init__(self, call: Invocation, jobs: Submission, *, output: str | None, keep_order: bool) -> None:
        from rota.cli.render.progress import ProgressLine
        from rota.cli.session.interrupts import Interrupts
        from rota.cli.session.waiting import FailedJobs

        self._call = call
        self._jobs = jobs
        self._output = output or ("none" if call.json else None)
        self._keep_order = keep_order
        self._failures = FailedJobs()
        self._interrupts = Interrupts()
        self._revivals = 0
        self._status: int | None = None
        self._incomplete = False
        self._begun = time.monotonic()
        self._line = ProgressLine(show=not call.quiet and not call.json)

    def status(self) -> int:
        """Run it; what the command exits with."""
        try:
            return self._to_the_end()
        except BrokenPipeError:
            print_err("rota: the output has no reader any more; the jobs go on; see 'rota status last'")
            raise

    def _to_the_end(self) -> int:
        from rota.cli.session.submission import touched_text
        from rota.cli.session.waiting import exit_status, print_summary

        with self._interrupts:
            added = self._jobs.upload(attach=self._output != "none")
            if (touched := touched_text(added)) and not self._call.quiet and not self._call.json:
                print_err(f"rota: {touched}")
            settled = self._settled(added)
        if settled is None:
            return self._status or 0
        status = exit_status(settled) if self._status is None else self._status
        if self._jobs.function is not None and status == 0:
            self._print_result(added)
        if self._incomplete:
            print_err("rota: not all that the jobs printed could be shown; what is missing is marked in its place")
            status = status or 1
        if self._jobs.single_command and status == 0 and not self._call.json and not added.complete:
            return 0  # its output says it all
        print_summary(
            self._call,
            settled,
            self._failures,
            elapsed=time.monotonic() - self._begun,
            skipped=len(added.complete),
            again=not self._jobs.single_command,
            also={"replaced": added.replaced, "changed": added.changed, "kept": added.kept},
        )
        return status

    def _print_result(self, added: Added) -> None:
        """Print what the function returned, after all that it printed."""
        for view in self._jobs.connect().results(*added.ids):
            if view.result is not None and not self._call.json:
                print_out(view.result)

    def _settled(self, added: Added) -> SettledView | None:
        """Wait until all is settled; None when we leave before that, with `_status`."""
        from rota.client.session import Disconnected
        from rota.errors import NotDone

        waiting = len(added.ids) - len(added.complete)
        self._line.expect({"ready": waiting, "complete": len(added.complete)}, skipped=len(added.complete))
        printer = self._printer(added)
        printer.before = self._line.clear
        try:
            while True:
                try:
                    return self._watch(added, printer)
                except (Disconnected, NotDone):
                    self._line.clear()
                    print_err("rota: the connection to the manager was lost; the jobs are kept; waiting")
                    self._reconnect()
                    printer.reconnected(self._jobs.connect())
        finally:
            self._line.clear()

    def _printer(self, added: Added) -> Printer:
        from rota.cli.session.job_output import LivePrinter, Printer

        client = self._jobs.connect()
        # With --json stdout belongs to the result.
        stdout = sys.stderr.buffer if self._call.json else None
        fresh = sorted([*added.added, *added.retried])
        if self._output == "none":
            return Printer(client)
        if self._output == "line":
            return LivePrinter(client, lines=True, stdout=stdout)
        if self._output is None and len(added.ids) == 1:
            self._line.shown = False
            return LivePrinter(client, lines=False, stdout=stdout)
        from rota.cli.session.grouped_output import GroupedPrinter

        return GroupedPrinter(client, order=fresh if self._keep_order else None, stdout=stdout)

    def _watch(self, added: Added, printer: Printer) -> SettledView | None:
        client = self._jobs.connect()
        outputs = self._output != "none"
        which = f"submission={self._jobs.id}"

        def look() -> None:
            if self._signalled(added):
                raise _Left

        with (
            contextlib.suppress(_Left),
            client.watch(which, outputs=outputs, follow=printer.follow, attach=outputs) as watching,
        ):
            printer.took, printer.waiting = watching.took, look
            while watching.settled is None:
                if self._signalled(added):
                    return None
                progress = watching.poll(_TICK_S)
                if progress is None:
                    self._line.refresh(lambda: self._counts(added))
                    continue
                for ended in progress.ended:
                    self._failures.note(ended)
                printer.take(progress)
                self._line.update(progress.counts)
            printer.finish()
            self._incomplete = printer.incomplete
            return watching.settled
        return None

    def _counts(self, added: Added) -> dict[str, int]:
        """All jobs of this run by state, including ones that existed before; empty if one was removed."""
        from rota.errors import NotFound

        counts: dict[str, int] = {}
        with contextlib.suppress(NotFound):
            for words in _selectors(added.ids):
                for state, number in self._jobs.connect().status(*words).counts.items():
                    counts[state] = counts.get(state, 0) + number
            return counts
        return {}

    # -- signals

    def _signalled(self, added: Added) -> bool:
        """Act on a signal; True if we are to leave at once."""
        number = self._interrupts.take()
        if number is None:
            return False
        self._line.clear()
        choice = "cancel"
        if number == signal.SIGHUP:
            choice = "detach"
        elif number == signal.SIGINT and not self._interrupts.cancelling:
            from rota.cli.session.interrupts import ask

            choice = ask()
        if choice == "keep":
            return False
        if choice == "detach":
            self._status = 128 + number
            if number != signal.SIGHUP:
                print_err("rota: detached; the jobs go on; wait for them with 'rota wait last'")
            return True
        self._status = 128 + number
        self._cancel(added)
        return False

    def _cancel(self, added: Added) -> None:
        """Cancel all jobs that this run waits for, including ones that existed before.

        They are waited for, unless a second signal comes.
        """
        from rota.errors import NotFound

        self._interrupts.cancelling = True
        print_err("rota: cancelling the jobs of this run; again to leave at once")
        client = self._jobs.connect()
        for words in _selectors(sorted({*added.ids} - {*added.complete})):
            try:
                client.kill(*words)
            except NotFound:  # a job that was removed; the others are still meant
                for word in words:
                    with contextlib.suppress(NotFound):
                        client.kill(word)

    # -- a manager that went away

    def _reconnect(self) -> None:
        """Until there is a manager again: ours is started anew, another's is waited for."""
        from rota.errors import NoManager

        begun = time.monotonic()
        wait = 0.05
        while True:
            if self._interrupts.take() is not None:
                raise NoManager("interrupted while no manager was running; the jobs are kept", hint=_RESUME)
            try:
                # A manager that was stopped on purpose is not started again.
                stopped = not self._jobs.call.home.manager_file.exists()
                self._jobs.connect_again(start=self._jobs.started and not stopped and self._revivals < _REVIVALS)
            except NoManager:
                if time.monotonic() - begun > (_STOPPED_S if stopped else _AWAY_S):
                    what = "was stopped" if stopped else "has not come back"
                    raise NoManager(f"the manager {what}; the jobs are kept", hint=_RESUME) from None
            else:
                self._revivals += 1
                return
            time.sleep(wait)
            wait = min(wait * 2, 2.0)


def _selectors(ids: list[int]) -> Iterator[list[str]]:
    """Words that name these jobs, in requests of a bearable size."""
    from rota.cli.render.text import ranges

    words = ranges(ids).split(",") if ids else []
    for first in range(0, len(words), _WORDS_AT_ONCE):
        yield words[first : first + _WORDS_AT_ONCE]
