from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rota.store.base import Store
from rota.store.opening import default_url, open_store

Reopen = Callable[[Store], Store]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, home: Path) -> str:
    """Of every store; each is made by the factory alone."""
    return f"memory:{home}" if request.param == "memory" else f"{default_url(home)}?reserve=0&run=8"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    made = open_store(url)
    yield made
    made.close()


@pytest.fixture
def reopen(url: str) -> Iterator[Reopen]:
    opened: list[Store] = []

    def again(store: Store) -> Store:
        store.close()
        opened.append(open_store(url))
        return opened[-1]

    yield again
    for store in opened:
        store.close()
