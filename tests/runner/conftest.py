from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runner.manager import FakeManager


@pytest.fixture
def manager() -> Iterator[FakeManager]:
    """A fake manager in a short-named home: a socket's path must not be long."""
    with tempfile.TemporaryDirectory(prefix="rota-") as home:
        fake = FakeManager(Path(home))
        try:
            yield fake
        finally:
            fake.finish()


@pytest.fixture
def joined(manager: FakeManager) -> FakeManager:
    """A fake manager with a runner that has joined."""
    manager.begin()
    return manager
