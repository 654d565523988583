"""Names of the Unix groups of users on this machine. Looked up only if an admission rule matches on them."""

from __future__ import annotations

import grp
import os
import pwd
import time
from collections.abc import Callable
from typing import Final

#: A directory service may be slow, and people change groups seldom.
_FRESH_S: Final = 60.0
_MOST_KNOWN: Final = 10_000


def groups_of(user: str) -> tuple[str, ...]:
    """Names of the groups that this user is in, in order; none for a user that this machine does not know."""
    try:
        gids = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except (KeyError, OSError, ValueError):  # unknown, no answer, or no name at all
        return ()
    names = set()
    for gid in gids:
        try:
            names.add(grp.getgrgid(gid).gr_name)
        except (KeyError, OSError):
            continue  # a number without a name
    return tuple(sorted(names))


class UnixGroups:
    """A cache of lookups. `look_up` may take long, and may run in another thread."""

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
