from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rota.store.memory.store import MemoryStore
from rota.store.sqlite.store import SqliteStore

Reopen = Callable[[MemoryStore | SqliteStore], "MemoryStore | SqliteStore"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, home: Path) -> Iterator[MemoryStore | SqliteStore]:
    made = MemoryStore() if request.param == "memory" else SqliteStore(home, reserve=0, run=8)
    yield made
    made.close()


@pytest.fixture
def reopen(home: Path) -> Iterator[Reopen]:
    opened: list[MemoryStore | SqliteStore] = []

    def again(store: MemoryStore | SqliteStore) -> MemoryStore | SqliteStore:
        store.close()
        opened.append(store.reopened() if isinstance(store, MemoryStore) else SqliteStore(home, reserve=0, run=8))
        return opened[-1]

    yield again
    for store in opened:
        store.close()
