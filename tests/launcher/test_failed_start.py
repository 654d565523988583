"""A launcher that cannot be started leaves nothing: an agent tries again every second, perhaps for days."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import pytest

from rota.launcher.client.processes import start_launcher


def test_a_launcher_that_ends_at_once_leaves_no_directory(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError, match="the launcher does not begin"):
        start_launcher(str(place), 1)
    assert not place.exists()
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("room", range(5))
def test_without_descriptors_it_leaves_neither_a_directory_nor_descriptors(place: Path, room: int) -> None:
    before = os.listdir("/proc/self/fd")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Descriptors get the lowest free number, so this is room for so many if there is no gap.
    gaps = [os.dup(0) for _ in range(64)]
    first = os.dup(0)
    os.close(first)
    resource.setrlimit(resource.RLIMIT_NOFILE, (first + room, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            start_launcher(str(place), 1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in gaps:
            os.close(each)
    assert not place.exists()
    assert os.listdir("/proc/self/fd") == before
