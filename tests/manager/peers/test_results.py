"""What a runner says that a call returned is taken only within bounds."""

from __future__ import annotations

from rota.core.attempts.leases import Finished
from rota.core.jobs.outcome import CallError, Outcome, Returned
from rota.manager.peers.report_checks import sane_ends


def _sane(left: Returned) -> Outcome:
    (found,) = sane_ends([Finished(1, 1, 1, 1, Outcome(0, ended_at=1.0, returned=left))], runner="r")
    return found.outcome


def test_a_result_within_bounds_is_left_alone() -> None:
    for left in (
        Returned("5"),
        Returned('"' + "x" * ((1 << 20) - 2) + '"'),
        Returned("", CallError("E", "m", "t")),
    ):
        assert _sane(left).returned is left


def test_what_is_too_large_fails_the_call_and_the_rest_of_the_end_counts() -> None:
    for left in (Returned("x" * ((1 << 20) + 1)), Returned("", CallError("E", "m", "t" * 300_000))):
        found = _sane(left)
        assert (found.returned, found.reason, found.ended_at) == (None, "result", 1.0)
