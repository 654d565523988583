"""Times in tables: what is short can be told apart, and a suggested walltime still fits when it is typed."""

from __future__ import annotations

import pytest

from rota.cli.commands.reports.learn import _exact
from rota.plan.explain.cause_texts import _shorter
from rota.units import parse_duration


def test_bars_of_short_jobs_have_different_bounds() -> None:
    assert [_exact(seconds) for seconds in (0.101, 0.1083, 2.5, 75.0)] == ["0.101s", "0.108s", "2.5s", "1m15s"]


@pytest.mark.parametrize("length", [20.0, 61.0, 99.0, 112.0, 339.0, 4000.0])
def test_a_suggested_walltime_leaves_time_to_type_it(length: float) -> None:
    assert parse_duration(_shorter(length)) <= length - min(5.0, 0.1 * length)
