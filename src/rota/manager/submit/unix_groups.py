"""The Unix groups of users, looked up only if an admission rule matches on them, and remembered for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from rota.users import groups_of

#: A directory service may be slow, and people change groups seldom.
_FRESH_S: Final = 60.0
_MOST_KNOWN: Final = 10_000


class UnixGroups:
    """A cache of lookups, for the port `UserGroups` of admission. `look_up` may take long, and may run in another
    thread."""

    def __init__(
        self, find: Callable[[str], tuple[str, ...]] = groups_of, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._find = find
        self._now = now
        self._known: dict[str, tuple[float, tuple[str, ...]]] = {}

    def is_fresh(self, user: str) -> bool:
        known = self._known.get(user)
        return known is not None and self._now() < known[0] + _FRESH_S

    def look_up(self, user: str) -> tuple[str, ...]:
        """Ask the machine now."""
        found = self._find(user)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[user] = (self._now(), found)
        return found

    def of(self, user: str) -> tuple[str, ...]:
        """What is known; if nothing is, it is asked for."""
        known = self._known.get(user)  # another thread may clear it at any time
        return self.look_up(user) if known is None else known[1]
