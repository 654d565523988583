"""Clock steps: when an attempt ran, whatever clocks say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.core.attempts.reported_times import SLACK_S, in_lease, timed
from rota.core.jobs.job import Lease
from rota.core.jobs.outcome import Outcome

NOW = 1_800_000_000.0
YEAR = 366 * 86_400.0

moments = st.floats(-YEAR, NOW + 10 * YEAR) | st.just(0.0)
ages = st.floats(0.0, YEAR)


def lease_of(age: float, started: float | None) -> Lease:
    return Lease(token=1, runner="r", leased_at=NOW - age, started_at=started)


def test_an_honest_end_is_left_as_it_is() -> None:
    outcome = Outcome(exit_code=0, started_at=NOW - 5, ended_at=NOW - 1)
    assert timed(lease_of(10.0, None), outcome, NOW) is outcome
    assert timed(lease_of(10.0, NOW - 5), outcome, NOW) is outcome


def test_a_runner_whose_clock_is_years_off_still_tells_how_long_a_job_took() -> None:
    for off in (-2 * YEAR, 2 * YEAR):
        told = Outcome(started_at=NOW + off - 5, ended_at=NOW + off - 1)
        found = timed(lease_of(10.0, None), told, NOW)
        assert found.started_at is not None
        assert abs(found.ended_at - found.started_at - 4) < 1e-3
        known = timed(lease_of(10.0, NOW - 6), told, NOW)
        assert known.started_at == NOW - 6
        assert abs(known.ended_at - (NOW - 2)) < 1e-3


@given(age=ages, known=st.none() | moments, told=st.none() | moments, ended=moments)
def test_whatever_is_told_an_attempt_lies_within_its_lease(
    age: float, known: float | None, told: float | None, ended: float
) -> None:
    lease = lease_of(age, None if known is None else in_lease(lease_of(age, None), known, NOW))
    found = timed(lease, Outcome(started_at=told, ended_at=ended), NOW)
    earliest, latest = lease.leased_at - SLACK_S, NOW + SLACK_S
    assert earliest <= found.ended_at <= latest
    if found.started_at is not None:
        assert earliest <= found.started_at <= found.ended_at
        assert found.ended_at - found.started_at <= age + 2 * SLACK_S
    if lease.started_at is not None:
        assert found.started_at == lease.started_at
    assert timed(lease, found, NOW) == found, "what was made possible stays as it is"
