"""Limits on requests, failed logins, streams and request bodies, per credential and in total."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rota.api.problems import TooMany

_RATE: Final = 200.0  #: requests per second, sustained
_BURST: Final = 400.0
_LOGIN_RATE: Final = 1 / 6
_LOGIN_BURST: Final = 10.0
#: Invalid tokens. Guessing one is hopeless, but attempts must stay cheap for us.
_WRONG_RATE: Final = 10.0
_WRONG_BURST: Final = 32.0
_STREAMS: Final = 64
_STREAMS_EACH: Final = 16
#: Bytes of all request bodies in memory.
_BODIES: Final = 256 << 20
#: Per kind.
_MOST_BUCKETS: Final = 1024


class TokenBucket:
    """Token bucket: `burst` at once, `rate` per second sustained."""

    __slots__ = ("_at", "_burst", "_left", "_rate")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate, self._burst = rate, burst
        self._left = burst
        self._at = now

    def take(self, now: float) -> float:
        """Take one. Returns 0 if there was one, otherwise the seconds until there will be."""
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) / self._rate


class BodyBytes:
    """Counts the bytes of one request body in memory."""

    def __init__(self, limits: RateLimits) -> None:
        self._limits = limits
        self.bytes = 0

    def more(self, number: int) -> None:
        """Count received bytes. Raises `TooMany` when all bodies together exceed the limit."""
        if self._limits.bodies + number > _BODIES:
            raise TooMany("too much is being sent at once", hint="try again in a moment", after_s=5)
        self._limits.bodies += number
        self.bytes += number


class RateLimits:
    """Counts requests, failed logins, open streams and bodies."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked: dict[str, TokenBucket] = {}
        self._logins: dict[str, TokenBucket] = {}  #: by client address
        self._wrong: dict[str, TokenBucket] = {}
        self._streams: dict[str, int] = {}
        self.bodies = 0

    def ask(self, who: str) -> None:
        """Count a request. Raises `TooMany`."""
        bucket = self._bucket(self._asked, who, _RATE, _BURST)
        self._spend(bucket, "too many requests", "wait a moment, or use the event stream instead of asking")

    def failed(self, address: str, *, code: bool) -> None:
        """Count a wrong code or token from this address. Raises `TooMany` after many of them."""
        if code:
            bucket = self._bucket(self._logins, address, _LOGIN_RATE, _LOGIN_BURST)
        else:
            bucket = self._bucket(self._wrong, address, _WRONG_RATE, _WRONG_BURST)
        self._spend(bucket, "too many failed logins", "wait a minute")

    def _bucket(self, buckets: dict[str, TokenBucket], who: str, rate: float, burst: float) -> TokenBucket:
        """The bucket of a client. The least recently used one makes room: a new client is never refused."""
        bucket = buckets.pop(who, None) or TokenBucket(rate, burst, self._clock())
        buckets[who] = bucket
        if len(buckets) > _MOST_BUCKETS:
            del buckets[next(iter(buckets))]
        return bucket

    def _spend(self, bucket: TokenBucket, message: str, hint: str) -> None:
        if wait := bucket.take(self._clock()):
            raise TooMany(message, hint=hint, after_s=max(1, round(wait + 0.5)))

    @contextmanager
    def body(self) -> Iterator[BodyBytes]:
        """Context manager for the time in which a body is received and handled."""
        held = BodyBytes(self)
        try:
            yield held
        finally:
            self.bodies -= held.bytes

    @contextmanager
    def stream(self, who: str) -> Iterator[None]:
        """Context manager for the time in which a stream is open. Raises `TooMany`."""
        mine = self._streams.get(who, 0)
        if mine >= _STREAMS_EACH or sum(self._streams.values()) >= _STREAMS:
            raise TooMany("too many event streams are open", hint="close a page", after_s=5)
        self._streams[who] = mine + 1
        try:
            yield
        finally:
            self._streams[who] -= 1
            if not self._streams[who]:
                del self._streams[who]

    @property
    def streams(self) -> int:
        return sum(self._streams.values())
