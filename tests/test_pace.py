"""The order of a run, and what it says of its files: real runs of pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pace import name_of

_TOP = Path(__file__).parents[1]
_PASSES = "def test_passes(): pass\n"
_SLOW = "import time\ndef test_waits(): time.sleep(0.3)\n"


def _run(top: Path, *options: str) -> list[str]:
    """The lines that a run of the tests in `top` printed."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.pace", "-v", "-c", str(top / "pytest.ini"), *options]
    env = os.environ | {"PYTHONPATH": str(_TOP), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    env.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(command, cwd=top, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


def _order(lines: list[str]) -> list[str]:
    return [line.partition("::")[0].removeprefix("tests/") for line in lines if line.split(" ")[1:2] == ["PASSED"]]


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_a.py").write_text(_PASSES)
    (folder / "test_b.py").write_text(_SLOW)
    return tmp_path


def test_a_run_names_its_slowest_files_and_the_next_one_begins_with_them(top: Path) -> None:
    lines = _run(top)
    assert _order(lines) == ["test_a.py", "test_b.py"]
    assert "the 2 slowest files" in "\n".join(lines)
    assert [line.split()[1] for line in lines if line.endswith(".py")] == ["tests/test_b.py", "tests/test_a.py"]
    assert _order(_run(top)) == ["test_b.py", "test_a.py"]


def test_no_more_than_ten_are_named(top: Path) -> None:
    for number in range(20):
        (top / "tests" / f"test_more_{number}.py").write_text(_PASSES)
    assert len([line for line in _run(top) if line.endswith(".py")]) == 10


def test_workers_have_the_same_order_and_are_summed_up(top: Path) -> None:
    _run(top)
    lines = _run(top, "-p", "xdist", "-n", "2")
    assert [line.split()[1] for line in lines if line.endswith(".py")] == ["tests/test_b.py", "tests/test_a.py"]


def test_a_part_of_the_suite_tells_nothing_of_the_next_run(top: Path) -> None:
    _run(top)
    (top / "tests" / "test_b.py").write_text(_PASSES)
    (top / "tests" / "test_a.py").write_text(_SLOW)
    _run(top, "tests/test_a.py")
    _run(top, "-k", "waits")
    assert _order(_run(top)) == ["test_b.py", "test_a.py"]
    assert _order(_run(top)) == ["test_a.py", "test_b.py"]


def test_without_a_cache_files_are_named_as_well(top: Path) -> None:
    assert "the 2 slowest files" in "\n".join(_run(top, "-p", "no:cacheprovider"))


def test_a_file_that_moves_within_its_folder_is_still_known() -> None:
    assert name_of("tests/core/test_x.py::test_y[a/b]") == "core/test_x.py"
    assert name_of("tests/core/jobs/test_x.py") == "core/test_x.py"
    assert name_of("tests/test_x.py") == "test_x.py"
