"""What the manager lately said of tokens, so that it is not asked about a wrong one again and again."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

#: Of each kind. Only who has a right token can push out right ones.
_MOST: Final = 1024
_WRONG_S: Final = 60.0


class TokenVerdicts:
    """By hash: what is remembered is of no use to who reads it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._valid: OrderedDict[bytes, None] = OrderedDict()
        self._invalid: OrderedDict[bytes, float] = OrderedDict()  #: and until when that is believed

    def lookup(self, token: str) -> bool | None:
        """Is it right? None if that must be found out."""
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
