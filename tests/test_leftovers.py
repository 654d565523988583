"""The check at the end of a run can fail: real runs of pytest that leave something behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests import leftovers
from tests.deployment import is_alive, wait_until

_TOP = Path(__file__).parents[1]
#: Tests of the inner run. What they start has no parent that would end it.
_TESTS = """
import os, subprocess, time

def note(what):
    with open(os.environ["NOTE"], "a") as file:
        print(what, file=file)

def test_leaves_a_process():
    if "process" in os.environ["LEAVE"]:
        note(subprocess.Popen(["sleep", "100000"], start_new_session=True).pid)

def test_leaves_a_process_that_forgot_its_environment():
    if "forgetful" in os.environ["LEAVE"]:
        note(subprocess.Popen(["sleep", "100001"], start_new_session=True, env={}, cwd="/").pid)

def test_leaves_a_control_group():
    if "group" in os.environ["LEAVE"]:
        group = os.environ["GROUP"] + f"/rota-left-{os.getpid()}-0123abcd-1.1"
        os.mkdir(group)
        note(group)

def test_lasts():
    time.sleep(1 if "group" in os.environ["LEAVE"] else 0)  # as a runner does, for longer than a moment
"""


def _run(
    top: Path, *options: str, leave: str, **environ: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """A run of pytest with the check, and what its tests left."""
    (top / "test_inner.py").write_text(_TESTS)
    note = top / "note"
    note.touch()
    env = os.environ | {"LEAVE": leave, "NOTE": str(note), "PYTHONPATH": str(_TOP), leftovers.PATIENCE: "0.5"}
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environ
    env.pop("PYTEST_XDIST_WORKER", None)
    command = [sys.executable, "-m", "pytest", "-p", "tests.leftovers", "-p", "no:cacheprovider"]
    command += ["--rootdir", str(top), "-c", os.devnull, *options, str(top / "test_inner.py")]
    done = subprocess.run(command, cwd=top, env=env, capture_output=True, text=True, timeout=120, check=False)
    return done, note.read_text().split()


def test_a_run_that_leaves_nothing_passes_whatever_others_run_meanwhile(tmp_path: Path) -> None:
    mine = subprocess.Popen(["sleep", "1000"], start_new_session=True)  # of another run than the inner one
    try:
        done, _ = _run(tmp_path, leave="")
        assert done.returncode == 0, done.stdout
        assert "left behind" not in done.stdout
        assert mine.poll() is None
    finally:
        mine.kill()
        mine.wait()


def test_a_process_that_is_left_fails_the_run_and_is_ended(tmp_path: Path) -> None:
    done, (pid,) = _run(tmp_path, leave="process")
    assert done.returncode == 1, done.stdout
    assert f"process {pid} of test_inner.py::test_leaves_a_process (call): 'sleep 100000'" in done.stdout
    wait_until(lambda: not is_alive(int(pid)), "it is ended")


def test_what_workers_leave_fails_the_run_and_is_removed(tmp_path: Path) -> None:
    parent = next((path for path in _parents() if _can_make(path)), None)
    leave = "process forgetful" + (" group" if parent else "")
    done, left = _run(tmp_path, "-p", "xdist", "-n", "1", leave=leave, GROUP=parent or "")
    assert done.returncode == 1, done.stdout
    assert "4 passed" in done.stdout
    for pid, command in zip(left[:2], ("sleep 100000", "sleep 100001"), strict=True):
        assert f"process {pid} of " in done.stdout
        assert command in done.stdout
        wait_until(lambda pid=pid: not is_alive(int(pid)), "it is ended")
    for group in left[2:]:
        assert f"control group {group}" in done.stdout
        assert not os.path.exists(group)


def _parents() -> list[str]:
    """Where control groups of Rota may be."""
    top = str(leftovers.CONTROL_GROUPS)
    return [f"{top}/unified", *sorted({os.path.dirname(path) for path in leftovers.groups()}), top]


def _can_make(parent: str) -> bool:
    path = f"{parent}/rota-try-{os.getpid()}"
    try:
        os.mkdir(path)
        os.rmdir(path)
    except OSError:
        return False
    return True
