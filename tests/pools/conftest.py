"""A deployment that runners with tickets join."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deployment import deployment
from tests.pools.guests import Front


@pytest.fixture(scope="module")
def shared_front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """One for all tests of a module."""
    with deployment(tmp_path_factory.mktemp("front"), local="off", touch_s="0.5s", grace="1s") as made:
        found = Front(made)
        try:
            yield found
        finally:
            found.close()
