"""Opens stores in memory. One with a name can be opened again within the process."""

from __future__ import annotations

from typing import Final

from rota.store.base import Approve
from rota.store.memory.backup import ClosedMemory
from rota.store.memory.store import MemoryStore
from rota.store.memory.tables import MemoryTables

_NAMED: Final[dict[str, MemoryTables]] = {}


def open_memory(name: str, approve: Approve) -> MemoryStore:
    """The store of this name, or a new one; an empty name is never found again. `approve`: see `open_store`."""
    tables = _NAMED[name].copy() if name in _NAMED else MemoryTables()
    if name:
        _NAMED[name] = tables
    approve(tables.meta.get("deployment", ""))
    return MemoryStore(tables)


def closed_memory(name: str) -> ClosedMemory:
    """The store of this name while nothing has it open."""
    return ClosedMemory(_NAMED, name)
