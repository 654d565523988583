"""Agents of other releases: a launcher that speaks an unknown version is left alone, with its jobs."""

from __future__ import annotations

from pathlib import Path

import msgspec

from rota.launcher import blocks, journal
from tests.deployment import is_alive
from tests.runner.launch.test_succession import again, begin, exists, kill, launchers, touch
from tests.runner.manager import FakeManager

_LATER = 9


def _say_version(manager: FakeManager, version: int) -> None:
    """Let its launchers speak this version, as far as anybody can tell."""
    for path in manager.runners.glob("*/launcher-*/journal"):
        data = path.read_bytes()
        began = journal.read(str(path.parent)).began
        assert began is not None
        old, new = (blocks.pack([msgspec.structs.replace(began, version=n)]) for n in (began.version, version))
        assert data.startswith(old)
        assert len(old) == len(new)
        with path.open("r+b") as file:
            file.write(new)


def test_a_launcher_of_an_unknown_version_and_its_jobs_are_left_alone(manager: FakeManager) -> None:
    first = manager.begin()
    wait = f"until test -e {manager.home}/go; do sleep 0.02; done; echo out; exit 7"
    begin(manager, f"echo $$ > {manager.home}/pid; {wait}")
    exists(manager, "pid")
    pid = int((manager.home / "pid").read_text())
    (launcher,) = launchers(manager)
    before = manager.joins[-1].runner
    kill(manager, first)
    _say_version(manager, _LATER)

    second = manager.spawn()
    joined = manager.accept()
    assert joined.runner != before
    assert not joined.held
    (other,) = manager.run("echo also")
    assert manager.output(other)[0] == b"also\n"
    assert is_alive(pid)
    assert is_alive(launcher)
    assert not manager.settles
    assert f"speaks version {_LATER}, and this release only 1: its jobs are left running" in manager.log()

    kill(manager, second)
    for path in manager.runners.glob("*/launcher-*/journal"):
        if Path(f"/proc/{launcher}").exists() and path.parent.parent.name == before:
            _say_version(manager, 1)
    touch(manager, "go")
    third = again(manager)
    assert third.runner == before
    (done,) = manager.wait_for([1])
    assert done.outcome.exit_code == 7
    assert manager.output(done)[0] == b"out\n"
