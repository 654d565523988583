"""The benchmarks of the planner run: a small dose of them, with the plans compared that they compare."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("plan.py", ["200 whole-node jobs", "same plan", "priority change"]),
        ("snapshot.py", ["mixed 100"]),
        ("machines.py", ["a machine is repaired"]),
    ],
)
def test_a_benchmark_of_the_planner_runs(script: str, told: list[str]) -> None:
    words = [sys.executable, str(BENCH / script), "--quick", "--dry"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert [each for each in told if each not in done.stdout] == []
