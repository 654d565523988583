"""What `make bench-guard` concludes from its pairs."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module", autouse=True)
def _bench_on_path() -> Iterator[None]:
    sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
    yield
    sys.path.pop(0)


def _pairs(
    true: float, *, count: int, noise: float, seed: int, outliers: float = 0.0
) -> list[tuple[float, float]]:
    """The machine's speed drifts by half; each measurement has noise of its own, and some are far out."""
    chance = random.Random(seed)
    found = []
    for n in range(count):
        drift = 1 + 0.5 * math.sin(n / 5)
        one, other = (math.exp(chance.gauss(0, noise)) * drift for _ in range(2))
        found.append((true * one, other * (0.3 if chance.random() < outliers else 1)))
    return found


def test_intervals_hold_the_truth_despite_drift_and_outliers() -> None:
    from ratios import ratio

    hits, runs = 0, 200
    for seed in range(runs):
        known = ratio(_pairs(0.97, count=30, noise=0.03, seed=seed, outliers=0.1))
        hits += known.low <= 0.97 <= known.high
        assert abs(known.value - 0.97) < 0.06
    assert hits > 0.8 * runs  # outliers on one side only bend it a little


def test_intervals_without_outliers_hold_the_truth_as_often_as_they_say_and_grow_narrower() -> None:
    from ratios import ratio

    for count, widest in ((15, 0.03), (60, 0.013), (200, 0.007)):
        runs = [ratio(_pairs(1.02, count=count, noise=0.03, seed=seed)) for seed in range(60)]
        assert sum(known.low <= 1.02 <= known.high for known in runs) >= 51
        assert sorted(known.half_width for known in runs)[30] < widest


def test_few_pairs_say_nothing() -> None:
    from ratios import LEAST, ratio

    assert ratio([(2.0, 1.0)] * (LEAST - 1)).half_width == math.inf
    exact = ratio([(2.0, 1.0)] * LEAST)
    assert (exact.value, exact.low, exact.high) == pytest.approx((2.0, 2.0, 2.0))


def test_above_one_is_better_for_rates_and_for_costs() -> None:
    import guard

    assert guard.better(guard.WARM, [(100.0, 110.0)] * 15).value == pytest.approx(1.1)
    assert guard.better(guard.CPU, [(110.0, 100.0)] * 15).value == pytest.approx(1.1)


def test_figures_get_more_pairs_until_they_are_known_or_there_are_enough() -> None:
    import guard

    options = guard.parse(["HEAD"])
    assert (options.pairs, options.within, options.floor) == (15, 0.01, 0.95)
    sure, noisy = [(100.0, 100.0)], _pairs(1.0, count=79, noise=0.2, seed=3)
    pairs = dict.fromkeys(guard.UNITS, sure * 15) | {guard.PLAN: noisy, guard.ONE: sure * 14}
    assert guard.unsettled(pairs, options) == {guard.PLAN, guard.ONE}
    pairs[guard.PLAN] = [*noisy, noisy[0]]
    assert guard.unsettled(pairs, options) == {guard.ONE}


def test_a_ratio_below_the_floor_is_told_with_figures_that_were_not_known_well_enough() -> None:
    import guard

    pairs = {figure: [(100.0, 100.0)] * 15 for figure in guard.UNITS}
    pairs |= {guard.WARM: [(100.0, 94.0)] * 15, guard.PLAN: _pairs(1.0, count=80, noise=0.2, seed=3)}
    rows = guard.summary(pairs, 0.01)
    assert guard.below(rows, 0.95) == [guard.WARM]
    assert [row["figure"] for row in rows if not row["reached"]] == [guard.PLAN]
