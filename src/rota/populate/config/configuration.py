"""A checked configuration as data."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

ROTA: Final = "rota"
RQ: Final = "rq"
TRANSPORTS: Final = (ROTA, RQ)
DEFAULT_QUEUE: Final = "default"
ON_TIMEOUT: Final = ("error", "release")
MARKS: Final = ("queued", "reserved")


class ManagerSettings(Struct, frozen=True, kw_only=True):
    target_cycle_s: float = 60.0  #: from the start of a cycle to that of the next, at least
    api_run: bool = True
    api_host: str = "127.0.0.1"
    api_port: int = 5055


class Queue(Struct, frozen=True, kw_only=True):
    """Of the transport `rota`."""

    priority: int = 100
    limit: int | None = None


class Bin(Struct, frozen=True, kw_only=True):
    """Keys that go to one queue with the same tokens."""

    where: str | None = None
    queue: str = DEFAULT_QUEUE
    tokens: tuple[tuple[str, int], ...] = ()


class PlainQuery(Struct, frozen=True, kw_only=True):
    """A table that DataJoint knows nothing of."""

    connect: str  #: dotted name of a function that returns a connection
    keys: str  #: selects all keys
    key: tuple[str, ...]
    target: str


class Table(Struct, frozen=True, kw_only=True):
    name: str
    ttl_s: float
    job_timeout_s: float
    serial: int = 1
    parallel: int = 1
    bins: tuple[Bin, ...] = (Bin(),)  #: one without a condition if the table has none
    python: str = ""  #: empty: the one that runs Rota
    on_timeout: str = ON_TIMEOUT[0]
    attempts: int = 3
    mark: str = MARKS[0]
    sql: PlainQuery | None = None

    @property
    def has_conditions(self) -> bool:
        return any(each.where is not None for each in self.bins)


class Configuration(Struct, frozen=True, kw_only=True):
    manager: ManagerSettings = ManagerSettings()
    database: dict[str, str | int | bool] = {}  #: settings of DataJoint; empty: it finds them itself
    transport: str = ROTA
    redis_url: str = ""
    queues: dict[str, Queue] = {}
    tables: tuple[Table, ...] = ()
