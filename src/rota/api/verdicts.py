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


class Verdicts:
    """By hash: what is remembered is of no use to who reads it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._right: OrderedDict[bytes, None] = OrderedDict()
        self._wrong: OrderedDict[bytes, float] = OrderedDict()  #: and until when that is believed

    def of(self, token: str) -> bool | None:
        """Is it right? None if that must be found out."""
        key = _key(token)
        if key in self._right:
            return True
        return False if self._wrong.get(key, 0.0) > self._clock() else None

    def right(self, token: str) -> None:
        key = _key(token)
        self._wrong.pop(key, None)
        self._right[key] = None
        _keep_newest(self._right, key)

    def wrong(self, token: str) -> None:
        key = _key(token)
        self._right.pop(key, None)
        self._wrong[key] = self._clock() + _WRONG_S
        _keep_newest(self._wrong, key)


def _keep_newest(kept: OrderedDict[bytes, None] | OrderedDict[bytes, float], key: bytes) -> None:
    kept.move_to_end(key)
    if len(kept) > _MOST:
        kept.popitem(last=False)


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
