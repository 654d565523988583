"""Which worker runs what: real runs of pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.groups import computes

_TOP = Path(__file__).parents[1]
#: Writes down who runs it, and goes on when all workers are at work.
_TEST = """
import os, time
from pathlib import Path

def test_runs():
    with open(os.environ["NOTE"], "a") as file:
        file.write(f"{os.environ['PYTEST_XDIST_WORKER']} {Path(__file__).name}\\n")
    while len({line.split()[0] for line in open(os.environ["NOTE"])}) < 3:
        time.sleep(0.01)
"""


@pytest.mark.parametrize("dist", ["loadfile", "load"])
def test_some_workers_begin_with_what_computes_and_all_is_run_once(tmp_path: Path, dist: str) -> None:
    names = {folder: [f"test_{folder}_{n}.py" for n in range(8)] for folder in ("core", "system")}
    for folder, files in names.items():
        (tmp_path / "tests" / folder).mkdir(parents=True)
        for name in files:
            (tmp_path / "tests" / folder / name).write_text(_TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    note = tmp_path / "note"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "xdist",
        "-p",
        "tests.groups",
        "-c",
        str(tmp_path / "pytest.ini"),
    ]
    env = os.environ | {"PYTHONPATH": str(_TOP), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "NOTE": str(note)}
    env.pop("PYTEST_XDIST_WORKER", None)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        str(tmp_path / "pytest.ini"),
        "-p",
        "xdist",
        "-p",
        "tests.groups",
    ]
    command += ["-n", "3", "--dist", dist, "tests"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
    ran = defaultdict(list)
    for line in note.read_text().splitlines():
        worker, name = line.split()
        ran[worker].append(name)
    assert sorted(name for each in ran.values() for name in each) == sorted(names["core"] + names["system"])
    if dist == "loadfile":
        assert ran["gw0"][0] in names["core"]
        assert ran["gw2"][0] in names["system"]


def test_the_group_of_a_file_is_that_of_its_folder() -> None:
    assert computes("tests/core/jobs/test_x.py")
    assert computes("tests/test_units.py")
    assert not computes("tests/system/test_x.py")
