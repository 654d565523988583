"""Sanitises the messages of runners: numbers and texts that cannot be true must not reach the database.

Agents are not trusted. A field that cannot be true is brought within its bounds, and the rest of the report
counts. A report is never refused: the runner would send it again, and its jobs would never end. Times of the
runner's clock become those of the manager's; `core.attempts.reported_times` checks them against the lease.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Final

from msgspec.structs import replace

from rota.core.attempts.leases import Finished, HeldLease, JobProgress, NodeFault, PartOpened, Paused, Started
from rota.core.attempts.progress_lines import sane_progress
from rota.core.jobs.outcome import Behaved, Outcome, Returned
from rota.core.output.output_report import NOT_SENT, OutputReport
from rota.errors import WireError
from rota.wire import messages as m

#: No clock shows more: the end of the year 9999.
_LATEST: Final = 253_402_300_799.0
#: No number in a report is larger.
_MOST: Final = 1 << 62
_MOST_SEATS: Final = 100_000
_LONGEST: Final = 64 * 1024
_BEHAVIOURS: Final = 1000
#: The most that a result has in characters.
_RESULT: Final = 1 << 20
_BLOCKS: Final = 4096
_MOST_TOLD: Final = 100_000
_NOT_KEPT: Final = OutputReport(missing=NOT_SENT, message="what its runner said about its output cannot be true")
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}", re.ASCII)
#: Reason codes are for programs; a newer runner may know more of them.
_CODE: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}", re.ASCII)
_UNKNOWN: Final = "unknown"


def check_join(join: m.Join) -> None:
    """Raise `WireError` for a malformed join: the identity of a runner must be certain."""
    if not _NAME.fullmatch(join.runner):
        raise WireError("a join without a proper name")
    fine = (
        0 <= join.pid < _MOST
        and 0 <= join.start_time < _MOST
        and len(join.boot_id) <= _LONGEST
        and len(join.seats) <= _MOST_SEATS
        and all(abs(seat) < _MOST for seat in join.seats)
        and (join.left_s is None or (isfinite(join.left_s) and abs(join.left_s) < _MOST))
        and all(0 <= each.pid < _MOST and abs(each.seat) < _MOST for each in join.held)
    )
    if not fine:
        raise WireError("a join with impossible numbers")


def sane_name(text: str) -> str:
    """The name of a machine, as far as it is one."""
    return "".join(c for c in text[:255] if c.isascii() and (c.isalnum() or c in "._-"))


def skew(join: m.Join, now: float) -> float:
    """Seconds by which a runner's clock is behind; 0 if that is not known."""
    return now - join.now if 0.0 < join.now <= _LATEST else 0.0


def sane_held(held: list[HeldLease], by: float) -> list[HeldLease]:
    """The leases of a join, with times of the manager's clock."""
    if not by and all(each.started_at is None or 0 <= each.started_at <= _LATEST for each in held):
        return held
    return [
        each if each.started_at is None else replace(each, started_at=_moment(each.started_at, by))
        for each in held
    ]


def sane_report(report: m.Report, *, runner: str, by: float) -> m.Report:
    """The report within bounds, its times shifted by so many seconds. A sane report is returned unchanged."""
    ended = sane_ends(report.ended, runner=runner, by=by)
    fine = (
        not by
        and all(_started(each) for each in report.started)
        and all(0 <= each.at <= _LATEST and len(each.message) <= _LONGEST for each in report.paused)
        and all(len(each.message) <= _LONGEST for each in report.opened)
        and all(_fault(each) for each in report.faults)
    )
    if fine:
        return report if ended is report.ended else replace(report, ended=ended)
    return replace(
        report,
        ended=ended,
        started=[_sane_start(each, by) for each in report.started if 0 < each.seat < _MOST],
        paused=[_sane_pause(each, by) for each in report.paused],
        opened=[_sane_part(each) for each in report.opened],
        faults=[each for each in report.faults if _fault(each)],
    )


def sane_told(progress: list[JobProgress]) -> list[JobProgress]:
    """What can be true of what attempts said about their progress."""
    return [sane for each in progress[:_MOST_TOLD] if (sane := sane_progress(each)) is not None]


def sane_ends(ended: list[Finished], *, runner: str, by: float = 0.0) -> list[Finished]:
    """The same for ends of attempts of this runner."""
    if not by and all(_outcome(each.outcome, runner) for each in ended):
        return ended
    return [replace(each, outcome=_sane_outcome(each.outcome, runner, by)) for each in ended]


def _moment(at: float, by: float) -> float:
    return min(max(0.0, at + by), _LATEST) if isfinite(at) else 0.0


def _within(number: int, most: int = _MOST - 1) -> int:
    return min(max(0, number), most)


# ------------------------------------------------------------------ checks


def _started(begun: Started) -> bool:
    return 0 <= begun.started_at <= _LATEST and 0 <= begun.pid < _MOST and 0 < begun.seat < _MOST


def _fault(fault: NodeFault) -> bool:
    return 0 <= fault.attempt < _MOST and len(fault.message) <= _LONGEST


def _outcome(o: Outcome, runner: str) -> bool:
    sizes = (o.peak_mem, o.most_mem, o.peak_disk, o.offset, o.out_len, o.err_len, o.out_total, o.err_total)
    return (
        0 <= o.ended_at <= _LATEST
        and 0 <= (o.started_at or 0) <= _LATEST
        and 0 <= o.cpu_s < _MOST
        and min(sizes) >= 0
        and max(sizes) < _MOST
        and -(1 << 31) <= (o.exit_code or 0) < 1 << 31
        and 0 <= (o.signal or 0) < 256
        and _own(o, runner)
        and _is_code(o.reason)
        and len(o.message) <= _LONGEST
        and len(o.behaviours) <= _BEHAVIOURS
        and sum(len(each.behaviour) + len(each.message) for each in o.behaviours) <= 16 * _LONGEST
        and _kept(o)
        and (o.returned is None or _returned(o.returned))
    )


def _returned(left: Returned) -> bool:
    told = "" if left.error is None else left.error.type + left.error.message + left.error.traceback
    return len(left.value) <= _RESULT and len(told) <= 4 * _LONGEST and len(left.note) <= _LONGEST


def _is_code(reason: str) -> bool:
    return not reason or _CODE.fullmatch(reason) is not None


def _own(o: Outcome, runner: str) -> bool:
    return not o.segment or o.segment.rpartition("-")[0] == runner


def _kept(o: Outcome) -> bool:
    kept = o.kept
    return kept is None or (
        len(kept.sums) <= _BLOCKS
        and 0 <= kept.out_head < _MOST
        and 0 <= kept.err_head < _MOST
        and all(0 <= each < 1 << 32 for each in kept.sums)
        and len(kept.missing) + len(kept.message) <= _LONGEST
    )


# ------------------------------------------------------------------ corrections


def _sane_start(begun: Started, by: float) -> Started:
    return replace(begun, started_at=_moment(begun.started_at, by), pid=_within(begun.pid))


def _sane_pause(pause: Paused, by: float) -> Paused:
    return replace(pause, at=_moment(pause.at, by), message=pause.message[:_LONGEST])


def _sane_part(part: PartOpened) -> PartOpened:
    return replace(part, message=part.message[:_LONGEST])


def _sane_outcome(o: Outcome, runner: str, by: float) -> Outcome:
    own = _own(o, runner) and _kept(o)
    code, number = o.exit_code, o.signal
    reason, message = o.reason, o.message
    if not _is_code(reason):
        reason, message = _UNKNOWN, message or f"the runner says {reason[:100]!a}"
    returned = o.returned
    if returned is not None and not _returned(returned):
        returned = None
        reason, message = reason or "result", message or "its runner sent a result that is too large"
    return replace(
        o,
        returned=returned,
        exit_code=code if code is None or -(1 << 31) <= code < 1 << 31 else 1,
        signal=number if number is None or 0 <= number < 256 else 0,
        reason=reason,
        message=message[:_LONGEST],
        started_at=None if o.started_at is None or not isfinite(o.started_at) else _moment(o.started_at, by),
        ended_at=_moment(o.ended_at, by),
        cpu_s=min(max(0.0, o.cpu_s), float(_MOST >> 1)) if isfinite(o.cpu_s) else 0.0,
        peak_mem=_within(o.peak_mem),
        most_mem=_within(o.most_mem),
        peak_disk=_within(o.peak_disk),
        segment=o.segment if own else "",
        offset=_within(o.offset) if own else 0,
        out_len=_within(o.out_len) if own else 0,
        err_len=_within(o.err_len) if own else 0,
        out_total=_within(o.out_total),
        err_total=_within(o.err_total),
        behaviours=_sane_behaviours(o.behaviours),
        kept=o.kept if own else _NOT_KEPT,
    )


def _sane_behaviours(behaved: tuple[Behaved, ...]) -> tuple[Behaved, ...]:
    few = behaved[:_BEHAVIOURS]
    if sum(len(each.behaviour) + len(each.message) for each in few) <= 16 * _LONGEST:
        return few
    most = 16 * _LONGEST // (2 * len(few))
    return tuple(replace(each, behaviour=each.behaviour[:most], message=each.message[:most]) for each in few)
