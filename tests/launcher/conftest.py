"""Every kind of launcher, for the conformance suite, and a launcher of its own process with its runner."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota.launcher.base import Launcher
from rota.launcher.inside import InsideLauncher
from tests.launcher.desk import Desk


@pytest.fixture(params=["inside", "process"])
def launcher(request: pytest.FixtureRequest) -> Iterator[Launcher]:
    """In this process, whose directory changes; and a process of its own, the same one for all tests of a file."""
    if request.param == "process":
        yield request.getfixturevalue("shared_desk").launcher
        return
    before = os.getcwd()
    try:
        yield InsideLauncher()
    finally:
        os.chdir(before)


@pytest.fixture
def place() -> Iterator[Path]:
    """Where a launcher can have its directory."""
    with tempfile.TemporaryDirectory(prefix="rota-") as top:
        yield Path(top) / "launcher-1"
    _reap_no_more()


@pytest.fixture(scope="module")
def shared_place() -> Iterator[Path]:
    """The same for all tests of a file."""
    with tempfile.TemporaryDirectory(prefix="rota-") as top:
        yield Path(top) / "launcher-1"
    _reap_no_more()


@pytest.fixture(scope="module")
def shared_desk(shared_place: Path) -> Iterator[Desk]:
    """The same runner and launcher for all tests of a file that do it no harm."""
    found = Desk.begin(shared_place)
    yield found
    found.end()


@pytest.fixture
def desk(place: Path) -> Iterator[Desk]:
    """A runner with a launcher of its own process."""
    found = Desk.begin(place)
    yield found
    found.end()


def _reap_no_more() -> None:
    """Make this process what it was: no sub-reaper, without children."""
    ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
