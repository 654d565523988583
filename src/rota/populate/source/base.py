"""The contract of a source: where the missing keys of tables come from, and who has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, json

from rota.errors import EnvironmentFault

#: A key in JSON's types; only the interpreter of its table knows more about it.
Key = dict[str, object]


def text_of(key: Key) -> bytes:
    """The same for equal keys."""
    return json.encode(key, order="sorted")


class Wanted(Struct, frozen=True):
    """How many free keys of a bin are wanted."""

    where: str | None
    quota: int


class Look(Struct, frozen=True, kw_only=True):
    """What one look at a table found."""

    done: int = 0
    todo: int = 0  #: missing keys, whatever their state
    queued: int = 0
    running: int = 0
    errors: int = 0
    unbinned: int = 0  #: missing keys that no bin takes
    batches: dict[str, int] = {}  #: tokens that hold keys, with their number
    free: list[list[Key]] = []  #: of each bin, as many as are wanted


class TableFailed(EnvironmentFault):
    """A table could not be asked: it cannot be imported, or populated, or the database refused."""

    code = "table"

    def __init__(self, text: str, *, kind: str, module: str = "", stack: str = "") -> None:
        hint = "see that its interpreter can import it" if kind == "import" else "other tables go on"
        super().__init__(text, hint=hint)
        self.kind = kind  #: `import`, `table`, `database` or `error`
        self.module = module
        self.stack = stack


class Source(Protocol):
    """Of one table. Every method may raise `TableFailed`."""

    @property
    def name(self) -> str:
        """Of the table."""

    def open(self) -> list[str]:
        """Import the table, if that was not done; what a user should know about it."""

    def look(self, wanted: Sequence[Wanted]) -> Look:
        """The state of the table; its key source is evaluated once."""

    def claim(self, batches: Mapping[str, Sequence[Key]], lease_s: float) -> dict[str, list[Key]]:
        """Mark keys as queued, each for its batch, until the lease ends. Returns what each batch got. A key is
        never in two batches whose leases have not ended."""

    def release(self, token: str, *, on_lost: str, why: str) -> tuple[int, int]:
        """Free what a dead batch holds, and settle what it was running: keys freed, keys that are errors now."""

    def migrate(self) -> list[str]:
        """Prepare the database; what was done."""

    def lock(self, name: str) -> bool:
        """Have, or get, a lock that ends with the connection to the database."""

    def close(self) -> None:
        """Let go of the database."""
