"""A real manager with real runners for each test that asks for one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment import Deployment, deployment


@pytest.fixture
def rota(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment; its manager is started by the first command that needs one."""
    with deployment(tmp_path, grace="1s") as made:
        yield made


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that can be filled."""
    if os.getuid() != 0:
        pytest.fail("this test mounts a tmpfs: run it as root, or name it in ROTA_TEST_SKIP")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)
