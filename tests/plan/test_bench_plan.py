"""The benchmark of the planner runs: a small dose of it, with the plans compared that it compares."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench" / "plan.py"


def test_the_benchmark_of_the_planner_runs_and_its_plans_are_those_of_the_naive_planner() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH), "--quick", "--dry"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "200 whole-node jobs" in done.stdout
    assert "same plan" in done.stdout
    assert "priority change" in done.stdout
