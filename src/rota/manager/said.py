"""What runners say, checked at the door: numbers and texts that no honest one sends and no database should keep.

An agent may be anybody who has its token. What it says about its own jobs is believed; what would harm others,
or keep them from being told of their jobs, is refused, and the connection with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from rota.core.job import Outcome
from rota.core.leases import Finished, Held, Started
from rota.errors import WireError
from rota.wire import messages as m

#: Clocks of nodes may be wrong, but not by more than this.
_AHEAD_S: Final = 366 * 86_400.0
#: Numbers beyond this are nobody's.
_MOST: Final = 1 << 62
_MOST_SEATS: Final = 100_000
_LONGEST: Final = 64 * 1024
_BEHAVIOURS: Final = 1000
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}", re.ASCII)


def check_join(join: m.Join, *, now: float) -> None:
    """Raise `WireError` for a join that no runner sends."""
    if not _NAME.fullmatch(join.runner):
        raise WireError("a join without a proper name")
    fine = (
        0 <= join.pid < _MOST
        and 0 <= join.start_time < _MOST
        and len(join.boot_id) <= _LONGEST
        and len(join.seats) <= _MOST_SEATS
        and all(abs(seat) < _MOST for seat in join.seats)
        and all(_held(each, now) for each in join.held)
    )
    if not fine:
        raise WireError("a join with impossible numbers")


def check_report(report: m.Report, *, runner: str, now: float) -> None:
    """Raise `WireError` for a report that no runner sends."""
    latest = now + _AHEAD_S
    fine = (
        all(_started(each, latest) for each in report.started)
        and all(0 <= each.at < latest and len(each.message) <= _LONGEST for each in report.paused)
        and all(len(each.message) <= _LONGEST for each in report.opened)
        and all(0 <= each.attempt < _MOST and len(each.message) <= _LONGEST for each in report.faults)
    )
    if not fine:
        raise WireError("a report with impossible numbers")
    check_ends(report.ended, runner=runner, now=now)


def check_ends(ended: Iterable[Finished], *, runner: str, now: float) -> None:
    """The same of the ends of attempts that this runner had."""
    for finished in ended:
        if not _outcome(finished.outcome, runner, now + _AHEAD_S):
            raise WireError("a report with impossible numbers")


def _started(begun: Started, latest: float) -> bool:
    return 0 <= begun.started_at < latest and 0 <= begun.pid < _MOST and 0 < begun.seat < _MOST


def _held(held: Held, now: float) -> bool:
    return 0 <= (held.started_at or 0) < now + _AHEAD_S and 0 <= held.pid < _MOST and abs(held.seat) < _MOST


def _outcome(o: Outcome, runner: str, latest: float) -> bool:
    sizes = (o.peak_mem, o.most_mem, o.peak_disk, o.offset, o.out_len, o.err_len, o.out_total, o.err_total)
    return (
        0 <= o.ended_at < latest
        and 0 <= (o.started_at or 0) < latest
        and 0 <= o.cpu_s < _MOST
        and min(sizes) >= 0
        and max(sizes) < _MOST
        and -(1 << 31) <= (o.exit_code or 0) < 1 << 31
        and 0 <= (o.signal or 0) < 256
        and (not o.segment or o.segment.startswith(f"{runner}-"))
        and len(o.reason) <= _LONGEST
        and len(o.message) <= _LONGEST
        and len(o.behaviours) <= _BEHAVIOURS
        and sum(len(each.behaviour) + len(each.message) for each in o.behaviours) <= 16 * _LONGEST
    )
