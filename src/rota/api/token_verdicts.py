"""Cache of the manager's verdicts on tokens, so that a repeated invalid token costs it nothing."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

#: Entries of each kind. Only a holder of a valid token can evict valid entries.
_MOST: Final = 1024
_WRONG_S: Final = 60.0


class TokenVerdicts:
    """Valid and invalid tokens. Only hashes are kept: a stored verdict is useless to a thief."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._valid: OrderedDict[bytes, None] = OrderedDict()
        self._invalid: OrderedDict[bytes, float] = OrderedDict()  #: hash → when the verdict expires

    def lookup(self, token: str) -> bool | None:
        """Is the token valid? None: unknown, ask the manager."""
        key = _key(token)
        if key in self._valid:
            return True
        return False if self._invalid.get(key, 0.0) > self._clock() else None

    def accept(self, token: str) -> None:
        key = _key(token)
        self._invalid.pop(key, None)
        self._valid[key] = None
        _keep_newest(self._valid, key)

    def reject(self, token: str) -> None:
        key = _key(token)
        self._valid.pop(key, None)
        self._invalid[key] = self._clock() + _WRONG_S
        _keep_newest(self._invalid, key)


def _keep_newest(kept: OrderedDict[bytes, None] | OrderedDict[bytes, float], key: bytes) -> None:
    kept.move_to_end(key)
    if len(kept) > _MOST:
        kept.popitem(last=False)


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
