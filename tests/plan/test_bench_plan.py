"""The benchmarks of the planner run: a small dose of them, with the plans compared that they compare."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"


def test_the_benchmark_of_the_planner_runs_and_its_plans_are_those_of_the_naive_planner() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH / "plan.py"), "--quick", "--dry"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "200 whole-node jobs" in done.stdout
    assert "same plan" in done.stdout
    assert "priority change" in done.stdout


def test_the_benchmark_of_snapshots_runs() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH / "snapshot.py"), "--quick", "--dry"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "mixed 100" in done.stdout


def test_the_benchmark_of_machines_runs() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH / "machines.py"), "--quick", "--dry"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "a machine is repaired" in done.stdout
