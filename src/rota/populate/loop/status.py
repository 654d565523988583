"""What the manager knows about its tables, for its API. Read by other threads: it is replaced, never changed."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from rota.populate.transport.base import QueueStatus, WorkerStatus


class TableStatus(Struct, frozen=True, kw_only=True):
    asked_at: float | None = None
    took_s: float | None = None
    done: int = 0
    todo: int = 0  #: missing keys that no batch has and that are no errors
    queued: int = 0
    running: int = 0
    errors: int = 0
    error: str | None = None

    @property
    def left(self) -> int:
        """Keys that will still be computed."""
        return self.todo + self.queued + self.running


class CycleStatus(Struct, frozen=True, kw_only=True):
    started_at: float | None = None
    took_s: float | None = None
    target_s: float = 0.0


class Status(Struct, frozen=True, kw_only=True):
    uptime_s: float = 0.0
    cycle: CycleStatus = CycleStatus()
    tables: Mapping[str, TableStatus] = {}
    queues: Mapping[str, QueueStatus] = {}
    workers: list[WorkerStatus] = []


class Uptime(Struct, frozen=True, kw_only=True):
    uptime_s: float
    health: str  #: `ok`, `degraded` or `standby`
    last_cycle_at: float | None
    workers_active: int
