"""A real manager with real runners for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment import Deployment, deployment


@pytest.fixture
def rota(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment; its manager is started by the first command that needs one."""
    with deployment(tmp_path, grace="1s") as made:
        yield made
