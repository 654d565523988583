"""What is expected of jobs is compared with what then happens to them, in a trace that is replayed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def estimates() -> Iterator[Any]:
    sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
    import estimates

    yield estimates
    sys.path.pop(0)


@pytest.mark.parametrize("policy", ["conservative", "easy"])
def test_expected_times_are_nearer_to_what_happens_than_walltimes_are(estimates: Any, policy: str) -> None:
    replay = estimates.Replay(estimates.trace(400, 32, load=0.85), 32, policy, 25)
    replay.run()
    for what in estimates.WHAT:
        ours, plan = (estimates.errors(replay, what, who) for who in ("estimator", "plan as asked"))
        assert ours["asked"] == plan["asked"] > 0
        assert ours["no_answer_percent"] == 0
        assert ours["mean_min"] < plan["mean_min"] or plan["no_answer_percent"] > 0, what
    for each in replay.asked:
        assert each.ours is None or each.ours >= each.at
