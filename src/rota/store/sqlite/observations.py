"""Bounds the table of observations: it keeps the newest of each learning group, and at most as many older ones."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import Final

from rota.core.changes import Changes
from rota.core.stored import OBSERVATIONS
from rota.store.sqlite.statements import statements

#: A group with more observations than this is cut back to its newest: rarely, and many at a time.
MOST: Final = 2 * OBSERVATIONS


class Observed:
    """How many observations of each learning group are stored. Only the writer's thread uses it."""

    def __init__(self) -> None:
        self._stored: dict[str, int] = {}

    def load(self, connection: sqlite3.Connection) -> None:
        self._stored = dict(connection.execute(statements()["count_observations"]).fetchall())

    def after(self, changes: Changes) -> dict[str, int]:
        """The new counts of the groups that these changes touch."""
        after = dict.fromkeys(changes.forgotten, 0)
        for group, added in Counter([row.group for row in changes.observations]).items():
            after[group] = after.get(group, self._stored.get(group, 0)) + added
        return after

    def written(self, after: dict[str, int]) -> None:
        """Record that the changes are on disk and oversized groups were cut back."""
        for group, stored in after.items():
            self._stored[group] = OBSERVATIONS if stored > MOST else stored


def too_many(after: dict[str, int]) -> list[str]:
    """Groups to cut back in the same commit."""
    return [group for group, stored in after.items() if stored > MOST]
