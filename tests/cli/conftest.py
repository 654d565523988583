"""One deployment for the tests of a module, where its state does not matter; a new one where it does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deployment import Deployment, deployment


@pytest.fixture
def rota(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A new deployment without a manager."""
    with deployment(tmp_path_factory.mktemp("one"), grace="1s", idle_stop="20s") as made:
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment with a manager, which the tests of a module share."""
    with deployment(tmp_path_factory.mktemp("shared"), grace="1s") as made:
        made.start()
        yield made
