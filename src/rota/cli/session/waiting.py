"""Wait until jobs have ended or can never run, then print a summary: the end of `run`, `wait` and `add --sync`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

from rota.cli.command import Invocation, print_json
from rota.cli.render.printing import print_err
from rota.cli.render.progress import ProgressLine
from rota.cli.render.text import cut, harmless, width
from rota.core.states import State
from rota.errors import TimedOut
from rota.units import about_duration
from rota.wire.client_messages import Ended
from rota.wire.views import SettledView

if TYPE_CHECKING:
    from rota.client.blocking import Client

_NAMED: Final = 10
_ORDER: Final = ("complete", "failed", "cancelled", "blocked", "lost")
_BAD: Final = ("failed", "cancelled", "blocked", "lost")


def wait_for_jobs(call: Invocation, client: Client, selectors: list[str], *, timeout: float | None = None) -> int:
    """Wait for jobs, with a progress line on a terminal, and print the result; returns the exit status."""
    line = ProgressLine(show=not call.quiet and not call.json)
    failures = FailedJobs()
    limit = None if timeout is None else time.monotonic() + timeout
    if line.shown:
        line.expect(client.status(*selectors).counts)
    try:
        with client.watch(*selectors) as watching:
            while watching.settled is None:
                if limit is not None and time.monotonic() >= limit:
                    raise TimedOut("the jobs have not all ended in time", hint="wait again, or see 'rota status'")
                left = 0.25 if limit is None else max(0.0, min(0.25, limit - time.monotonic()))
                progress = watching.poll(left)
                if progress is not None:
                    for ended in progress.ended:
                        failures.note(ended)
                    line.update(progress.counts)
                else:
                    line.refresh(lambda: client.status(*selectors).counts)
            settled = watching.settled
    finally:
        line.clear()
    print_summary(call, settled, failures, elapsed=time.monotonic() - line.begun)
    return exit_status(settled)


class FailedJobs:
    """The first jobs that did not end well, for the summary."""

    def __init__(self) -> None:
        self._found: dict[int, Ended] = {}

    def note(self, ended: Ended) -> None:
        if ended.state == State.COMPLETE:
            self._found.pop(ended.job, None)
        elif len(self._found) < 4 * _NAMED or ended.job in self._found:
            self._found[ended.job] = ended

    def lines(self) -> list[str]:
        """The lines of the summary: failed jobs first, then jobs that were only blocked by a failure."""
        ordered = sorted(self._found.values(), key=lambda e: (e.state == State.BLOCKED, e.job))
        room = width(sys.stderr)
        lines = []
        for ended in ordered[:_NAMED]:
            state = State(ended.state).label
            head = f"  job {ended.job} {state} ({_reason(ended)}): "
            tail = "" if ended.state == State.BLOCKED else f"  → rota logs {ended.job}"
            command = harmless(ended.cmd)
            fits = 200 if room is None else max(20, room - len(head) - len(tail))
            lines.append(head + cut(command, fits) + tail)
        return lines


def _reason(ended: Ended) -> str:
    if ended.message and ended.reason != "exit":
        return harmless(ended.message)
    if ended.exit_code:
        return f"exit {ended.exit_code}"
    from rota.core.jobs.reason_texts import sentence

    return harmless(sentence(ended.reason, ended.message) or "no reason given")


def print_summary(
    call: Invocation,
    settled: SettledView,
    failures: FailedJobs,
    *,
    elapsed: float,
    skipped: int = 0,
    again: bool = False,
    also: dict[str, list[int]] | None = None,
) -> None:
    """Print the result: JSON on stdout, or a summary on stderr."""
    if call.json:
        body = {"counts": settled.counts, "failed": settled.failed, **(also or {})}
        print_json(body)
        return
    if call.quiet:
        return
    counts = dict(settled.counts)
    if skipped:
        counts["complete"] = counts.get("complete", 0) - skipped
    parts = [f"{counts[state]:,} {state}" for state in _ORDER if counts.get(state)]
    parts += [f"{number:,} {state}" for state, number in counts.items() if state not in _ORDER and number]
    if skipped:
        parts.append(f"{skipped:,} already complete (skipped)")
    lines = [f"rota: {', '.join(parts) or 'no jobs'} in {about_duration(elapsed)}"]
    bad = [state for state in _BAD if counts.get(state)]
    if bad:
        lines += failures.lines()
        if sum(counts[state] for state in bad) > _NAMED:
            lines.append(f"  see all: rota jobs {' '.join(f'last,state={state}' for state in bad)}")
        if again:
            lines.append("  run again: the same command resumes with what has not completed")
    print_err(*lines)


def exit_status(settled: SettledView) -> int:
    """0 if all jobs completed; a single job's own exit code; otherwise 1."""
    bad = any(settled.counts.get(state) for state in _BAD)
    if settled.single is not None and (settled.single or not bad):
        return settled.single & 0xFF
    return 1 if bad or settled.failed else 0
