"""What every ledger does: it remembers which keys of a table are queued, running or failed, and by which batch.

All that a batch does is fenced by its token: once its keys were freed, it changes nothing any more.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Any, Protocol

Key = dict[str, Any]

#: Before the token of a batch, wherever a ledger keeps it. Native workers write something else there.
MARK = "rota:"
#: How often a key is given back because of a bad moment before that counts as its error.
TRIES = 3
#: As long as DataJoint's own.
MESSAGE_LENGTH = 2047
ROWS = 1000  #: in one statement

ERROR = "error"
RELEASE = "release"


class Bin:
    """A class of keys: those without a bin of an earlier number for which the condition holds."""

    def __init__(self, where: str | None, quota: int) -> None:
        self.where = where
        self.quota = quota  #: free keys that are wanted


class Look:
    """What one look at a table found."""

    def __init__(self, bins: int) -> None:
        self.done = 0
        self.todo = 0  #: missing keys, whatever their state
        self.queued = 0
        self.running = 0  #: under our tokens, or reserved by native workers
        self.errors = 0  #: and ignored ones
        self.free: list[list[Key]] = [[] for _ in range(bins)]
        self.unbinned = 0  #: missing keys for which no bin's condition holds
        self.batches: dict[str, int] = {}  #: tokens in the ledger, with the keys that they hold


class Ledger(Protocol):
    """Of one table, over one connection."""

    # ------------------------------------------------ for the manager

    def look(self, bins: Sequence[Bin]) -> Look:
        """The state of the table. The keys to be made are evaluated once."""

    def claim(self, batches: dict[str, list[Key]], lease_s: float) -> dict[str, list[Key]]:
        """Mark keys as queued for their batches until the lease ends. Returns the keys that it got."""

    def release(self, token: str, on_lost: str, why: str) -> tuple[int, int]:
        """Free what a dead batch holds, and settle what it was running: keys freed, keys that are errors now."""

    def warnings(self) -> list[str]:
        """What a user should know about the table. Raises `Unusable` if it cannot be used."""

    def migrate(self) -> list[str]:
        """Prepare the database; what was done."""

    def lock(self, name: str) -> bool:
        """Have, or get, a lock that ends with this connection."""

    # ------------------------------------------------ for a batch

    def extend(self, token: str, lease_s: float) -> int:
        """Prolong the lease of all keys that are still queued; their number."""

    def run(self, key: Key, token: str) -> str:
        """Compute one key: `done`, `skipped`, `error`, `released`. Raises what ends the batch."""

    def settle(self, key: Key, token: str, error: BaseException) -> str:
        """What becomes of a key whose run was cut off outside of its own code."""

    def close(self) -> None:
        """End a connection that is its own."""


class Unusable(Exception):
    """The table cannot be populated in batches, or not before something is done."""


class Policy:
    """What becomes of a key whose batch was killed while it ran."""

    def __init__(self, on_lost: str = ERROR, attempts: int = TRIES) -> None:
        self.on_lost = on_lost
        self.attempts = attempts


def mark_of(token: str) -> str:
    return MARK + token


def cut(message: str) -> str:
    return message if len(message) <= MESSAGE_LENGTH else message[: MESSAGE_LENGTH - 3] + "..."


def described(error: BaseException) -> str:
    """As DataJoint describes it."""
    name, text = type(error).__name__, str(error)
    return f"{name}: {text}" if text else name


# A key that was given back keeps the number of its tries in the message of its row, which is free for that.


def tries_in(message: str | None) -> int:
    words = (message or "").split()
    return int(words[2]) if words[:2] == [MARK, "try"] and words[2].isdigit() else 0


def try_text(tries: int, of: int, why: str) -> str:
    return cut(f"{MARK} try {tries} of {of}: {why}")


def where_it_runs() -> tuple[str, int]:
    return socket.gethostname()[:200], os.getpid()
