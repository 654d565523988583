"""Which connection of a manager has the lock of its tables."""

from __future__ import annotations

from typing import Any

from rota.populate.config.configuration import Configuration, Table
from rota.populate.loop.cycles import Manager
from rota.populate.source.base import TableFailed
from tests.populate.test_cycles_properties import ModelLedger, ModelTransport

_TABLES = tuple(Table(name=f"lab.{name}", ttl_s=1, job_timeout_s=1) for name in ("One", "Two"))


class Server:
    """Who has the lock."""

    holder: object = None


class LockedSource(ModelLedger):
    """With a connection of its own to a server."""

    def __init__(self, server: Server) -> None:
        super().__init__(1)
        self.server = server

    def lock(self, name: str) -> bool:
        if self.fails:
            raise TableFailed("no module", kind="import")
        if self.server.holder in (None, self):
            self.server.holder = self
            return True
        return False


class File:
    error = None
    directory = "/"
    current = Configuration(tables=_TABLES)

    def reload(self) -> bool:
        return False


class Pairs:
    def __init__(self, sources: list[LockedSource]) -> None:
        self.sources = sources

    def __iter__(self) -> Any:
        return iter(zip(_TABLES, self.sources, strict=True))

    def close(self) -> None: ...


def test_a_table_that_comes_back_does_not_make_a_manager_wait_for_itself() -> None:
    server = Server()
    sources = [LockedSource(server), LockedSource(server)]
    manager = Manager(
        File(),  # type: ignore[arg-type]
        open_transport=lambda _: ModelTransport(),
        open_sources=lambda *_: Pairs(sources),
    )
    sources[0].fails = True
    manager.cycle()
    assert (manager.health, server.holder) == ("degraded", sources[1])
    sources[0].fails = False
    manager.cycle()
    assert (manager.health, server.holder) == ("ok", sources[1])
    # Its connection is lost, and with it the lock.
    sources[1].fails, server.holder = True, None
    manager.cycle()
    assert (manager.health, server.holder) == ("degraded", sources[0])
