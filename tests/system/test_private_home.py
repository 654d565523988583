"""Everything in a home that was used is private to its owner, whatever the umask is."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment import Deployment, deployment, wait_until


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A home in which a little of everything was done under a lax umask."""
    before = os.umask(0o000)
    try:
        with deployment(tmp_path_factory.mktemp("used"), cores="2", http="on") as made:
            # Not by a process that was warmed under another umask.
            made.ok("manager", "start", stdin=subprocess.DEVNULL)
            with made.client() as client:
                client.add(["echo hello", {"cmd": "sleep 1000", "scratch": True}, "seq 1 200000"])
                client.add_token("ann", "user")
                client.ui_link()
                client.backup(str(made.work / "backup.db"))
                wait_until(lambda: "running" in made.states().values(), "a job runs")
                wait_until(lambda: "complete" in made.states().values(), "another has ended")
            made.ok("manager", "stop")  # the runner goes on
            (made.home / "tls.port").chmod(0o644)  # as the last release left it
            made.ok("manager", "start", stdin=subprocess.DEVNULL)
            wait_until(lambda: _runners_are_back(made), "the runner, whose job is to be ended, is back")
            yield made
            made.ok("manager", "stop", "--kill")
    finally:
        os.umask(before)


def _runners_are_back(rota: Deployment) -> bool:
    runners = rota.json("manager", "status")["runners"]
    return bool(runners) and all(each["connected"] for each in runners)


def _open_to_others(top: Path) -> list[str]:
    """What others may read, write or enter, but for what lies in the private directories of jobs."""
    found = []
    for directory, names, files in os.walk(top):
        for name in (*names, *files):
            path = Path(directory, name)
            facts = path.lstat()
            if not stat.S_ISLNK(facts.st_mode) and facts.st_mode & 0o077:
                found.append(f"{path.relative_to(top)} {stat.filemode(facts.st_mode)}")
    return found


def test_tls_port_and_all_other_files_are_private(used: Deployment) -> None:
    assert stat.S_IMODE(used.home.stat().st_mode) == 0o700
    assert (used.home / "tls.port").exists()
    assert _open_to_others(used.home) == []


def test_a_backup_is_private(used: Deployment) -> None:
    assert stat.S_IMODE((used.work / "backup.db").stat().st_mode) == 0o600
