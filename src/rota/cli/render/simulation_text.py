"""The results of a simulation as tables, and a progress line while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rota.cli.render.printing import print_out, redraw, wipe
from rota.cli.render.text import count, cut, harmless, is_terminal, table, width
from rota.sim.metrics import Metrics
from rota.units import about_duration

if TYPE_CHECKING:
    from rota.sim.replay import ReplayResult

_REDRAW_S: Final = 0.1
_BAR: Final = 20
_SKIPPED_SHOWN: Final = 5
_HEAD: Final = ["POLICY", "JOBS", "SLOWDOWN", "FLOW", "WAIT", "MAKESPAN", "UTILISATION"]


class ReplayLine:
    """The progress line of a replay, erased at its end; never printed to a pipe."""

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self._shown = is_terminal(sys.stderr)
        self._last = time.monotonic()  # what is done at once needs no line
        self._drawn = False

    def __enter__(self) -> ReplayLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            wipe()

    def tell(self, started: int, total: int) -> None:
        """Take the number of started jobs, and draw if it is time."""
        now = time.monotonic()
        if not self._shown or now - self._last < _REDRAW_S:
            return
        self._last = now
        filled = _BAR * started // total if total else 0
        line = f"{self._policy} [{'#' * filled}{'.' * (_BAR - filled)}] {started:,}/{total:,}"
        redraw(cut(line, (width(sys.stderr) or 80) - 1))
        self._drawn = True


def note(jobs: int, metrics: Metrics) -> str:
    """The metrics in one line."""
    return (
        f"{count(jobs, 'job')} · average wait {about_duration(metrics.avg_wait_s)} · average bounded slowdown "
        f"{metrics.avg_bounded_slowdown:.2f} · utilisation {metrics.utilisation:.1%}"
    )


def _row(policy: str, jobs: int, metrics: Metrics) -> list[str]:
    times = (metrics.avg_flow_s, metrics.avg_wait_s, metrics.makespan_s)
    slowdown = f"{metrics.avg_bounded_slowdown:.2f}"
    return [policy, f"{jobs:,}", slowdown, *map(about_duration, times), f"{metrics.utilisation:.1%}"]


def tell_replays(name: str, processors: int, results: Mapping[str, ReplayResult]) -> None:
    """One trace, a row for each policy."""
    first = next(iter(results.values()))
    print_out(f"{harmless(name)} on {count(processors, 'processor')}")
    rows = [_row(policy, len(each.ran), each.metrics) for policy, each in results.items()]
    print_out(table(_HEAD, rows, right="lrrrrrr"))
    if first.skipped:
        shown = "; ".join(f"job {job.id}: {reason}" for job, reason in first.skipped[:_SKIPPED_SHOWN])
        more = len(first.skipped) - _SKIPPED_SHOWN
        print_out(
            f"skipped {count(len(first.skipped), 'job')}: {shown}{f'; and {more:,} more' if more > 0 else ''}"
        )


# ------------------------------------------------------------------ a whole site


def jobs_of(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The jobs of a simulated site."""
    jobs: list[dict[str, Any]] = result["jobs"]
    return jobs


def metrics_of(result: Mapping[str, Any]) -> Metrics:
    """The metrics of a simulated site."""
    return msgspec.convert(result["metrics"], Metrics)


def tell_sites(results: Mapping[str, Mapping[str, Any]]) -> None:
    """One trace, a row for each policy."""
    rows = [_row(policy, len(jobs_of(each)), metrics_of(each)) for policy, each in results.items()]
    print_out(table(_HEAD, rows, right="lrrrrrr"))


def tell_site(result: Mapping[str, Any], *, plan_only: bool) -> None:
    """Every job, and the metrics if time has passed."""
    rows = []
    for job in jobs_of(result):
        reason = (job["reason"] or {}).get("message", "")
        cells = (job["id"], job["state"], job["submit"], job["start"], job["end"], job["resources"], reason)
        rows.append([harmless("-" if cell is None else str(cell)) for cell in cells])
    head = ["ID", "STATE", "SUBMIT", "START", "END", "RESOURCES", "REASON"]
    print_out(table(head, rows, right="rlrrrll", state=1) if rows else "no jobs")
    if not plan_only:
        print_out("", note(len(rows), metrics_of(result)))
