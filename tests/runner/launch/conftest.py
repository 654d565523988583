"""A manager whose runners have launchers that outlive them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.leftovers import end_all_of
from tests.runner.manager import FakeManager


@pytest.fixture
def manager() -> Iterator[FakeManager]:
    with tempfile.TemporaryDirectory(prefix="rota-") as home:
        fake = FakeManager(Path(home))
        fake.lasting = True
        try:
            yield fake
        finally:
            fake.finish()
            end_all_of(home)
