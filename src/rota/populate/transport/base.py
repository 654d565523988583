"""The contract of a transport: it takes batches to workers, and says what became of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, Protocol

from msgspec import Struct

from rota.errors import EnvironmentFault
from rota.populate.batch import Batch

Sign = Literal["queued", "running", "ended", "lost", "unknown"]
QUEUED: Final = "queued"
RUNNING: Final = "running"
ENDED: Final = "ended"  #: whatever its outcome
LOST: Final = "lost"  #: its worker is gone
UNKNOWN: Final = "unknown"


class QueueStatus(Struct, kw_only=True):
    batches: int = 0
    keys: int = 0
    workers: int = 0


class WorkerStatus(Struct, frozen=True, kw_only=True):
    name: str
    queues: tuple[str, ...] = ()
    state: Literal["idle", "busy"] = "idle"
    table: str | None = None
    for_s: float | None = None


class TransportFailed(EnvironmentFault):
    """The transport cannot be reached, or not be used."""

    code = "transport"


class Transport(Protocol):
    """Every method may raise `TransportFailed`."""

    def send(self, batches: Sequence[Batch]) -> None:
        """Queue the batches; each is delivered at most once, and not after its `ttl`."""

    def signs(self, tokens: Collection[str]) -> dict[str, Sign]:
        """What is known of each batch. A dead one is said to be alive for a bounded time only."""

    def queues(self, names: Collection[str]) -> Mapping[str, QueueStatus]:
        """Of these queues, and of all that workers serve."""

    def workers(self, now_s: float) -> list[WorkerStatus]:
        """Who runs batches, or may run them; the time is that of the wall clock."""

    def warnings(self) -> list[str]:
        """What a user should know before batches are sent."""

    def close(self) -> None:
        """Let go of connections."""
