"""Which batches are dead, after what the ledger and the transport say of them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from rota.populate.transport.base import ENDED, LOST, UNKNOWN, Sign

_WHY: Final = {
    ENDED: "the batch ended without an answer for this key: its process was killed or ran out of time",
    LOST: "the worker of the batch is gone",
    UNKNOWN: "the message of the batch was lost",
}


class Reconciler:
    """Remembers one cycle: a batch on its way from a queue to a worker may not be seen for a moment."""

    def __init__(self) -> None:
        self._missing: set[str] = set()

    def dead(self, held: Collection[str], signs: Mapping[str, Sign]) -> dict[str, str]:
        """Of the tokens that hold keys: those of dead batches, and why. An end is believed at once, a batch that
        nobody knows in the second cycle."""
        missing = {token for token in held if signs.get(token, UNKNOWN) == UNKNOWN}
        dead = {token: _WHY[sign] for token in held if (sign := signs.get(token, UNKNOWN)) in (ENDED, LOST)}
        dead |= dict.fromkeys(missing & self._missing, _WHY[UNKNOWN])
        self._missing = missing - dead.keys()
        return dead
