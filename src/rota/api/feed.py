"""The event stream: changes at the manager, sent to every open page.

One connection to the manager feeds all readers, as long as there are any. Recent events are kept, so that a page
resumes after a lost connection. A slow reader gets the events it missed merged into one, so no backlog grows.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

import msgspec
from msgspec import Struct

from rota.api.manager_connections import ManagerConnections
from rota.errors import RotaError
from rota.wire.views import FeedView

log = logging.getLogger("rota.api")

_KEPT: Final = 1000
_PING_S: Final = 15.0
_AGAIN_S: Final = 1.0
#: How long the feed continues without readers: most come back soon.
_LINGER_S: Final = 60.0
#: Jobs or groups listed in one event; above this it only says that there are many.
_MOST: Final = 1000


class FeedEvent(Struct, frozen=True):
    """A numbered change, and its encoded form."""

    number: int
    news: FeedView
    body: bytes


def event(number: int, news: FeedView) -> FeedEvent:
    """Encode a change once for all readers."""
    return FeedEvent(number, news, msgspec.json.encode(news))


def merge(news: list[FeedView]) -> FeedView:
    """Merge several changes into one."""
    last = news[-1]
    jobs: dict[int, tuple[int, str, int]] = {}
    groups: dict[str, dict[str, int]] = {}
    what: dict[str, None] = {}
    for each in news:
        jobs.update((job[0], job) for job in each.jobs)
        groups.update(each.groups)
        what.update(dict.fromkeys(each.what))
    many = any(each.many for each in news) or len(jobs) > _MOST or len(groups) > _MOST
    return FeedView(
        at=last.at,
        counts=last.counts,
        groups={} if many else groups,
        jobs=[] if many else list(jobs.values()),
        many=many,
        what=list(what),
    )


class EventFeed:
    """Holds a stream to the manager open while there are readers, and keeps the recent events."""

    def __init__(
        self, connections: ManagerConnections, token: str, *, kept: int = _KEPT, linger_s: float = _LINGER_S
    ) -> None:
        self._connections = connections
        self._token = token
        self._events: deque[FeedEvent] = deque(maxlen=kept)
        self._last = 0
        self._linger_s = linger_s
        self._readers: set[asyncio.Event] = set()
        self._wanted = asyncio.Event()
        self.stream = ""  #: a new id whenever events may have been missed; empty: not connected

    async def run(self) -> None:
        """Follow the manager whenever there are readers, and reconnect when it comes back."""
        while True:
            await self._wanted.wait()
            leaving = asyncio.create_task(self._unwanted())
            following = asyncio.create_task(self._follow())
            try:
                await asyncio.wait({leaving, following}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (leaving, following):
                    task.cancel()
                await asyncio.wait({leaving, following})
                self._lost()
            if not following.cancelled() and (error := following.exception()):
                if not isinstance(error, RotaError | OSError):
                    log.error("the feed failed", exc_info=error)
                await asyncio.sleep(_AGAIN_S)

    async def _unwanted(self) -> None:
        """Return once there have been no readers for a while."""
        while True:
            await asyncio.sleep(self._linger_s)
            if not self._readers:
                self._wanted.clear()
                return

    async def _follow(self) -> None:
        client = await self._connections.connect(self._token)
        try:
            async for news in await client.feed():
                if self.stream:
                    self.told(news)
                else:
                    # No event is missed from here on. Earlier ones are unknown, so all readers reload.
                    self.began()
        finally:
            await client.close()

    def began(self) -> None:
        """The subscription at the manager has started."""
        self.stream = secrets.token_hex(4)
        self._events.clear()
        self._wake()

    def told(self, news: FeedView) -> None:
        """The manager sent a change."""
        self._last += 1
        self._events.append(event(self._last, news))
        self._wake()

    def _lost(self) -> None:
        self.stream = ""
        self._events.clear()

    def _wake(self) -> None:
        for reader in self._readers:
            reader.set()

    async def read(self, last_seen: str, over: asyncio.Future[None] | None = None) -> AsyncIterator[bytes]:
        """Server-sent events for one reader, after the last one it saw, until `over` is done."""
        woken = asyncio.Event()
        self._readers.add(woken)
        self._wanted.set()
        if over is not None:
            over.add_done_callback(lambda _: woken.set())
        try:
            yield b"retry: 1000\n\n"
            stream, _, number = last_seen.rpartition("-")
            seen = int(number) if number.isascii() and number.isdigit() and len(number) <= 18 else 0
            while over is None or not over.done():
                woken.clear()
                if self.stream and not self._reaches(stream, seen):
                    stream, seen = self.stream, self._last
                    yield b"id: %b-%d\nevent: reset\ndata: {}\n\n" % (stream.encode(), seen)
                elif self.stream and (news := self._since(seen)):
                    seen = news[-1].number
                    body = news[0].body if len(news) == 1 else msgspec.json.encode(merge([n.news for n in news]))
                    yield b"id: %b-%d\nevent: change\ndata: %b\n\n" % (stream.encode(), seen, body)
                else:
                    try:
                        await asyncio.wait_for(woken.wait(), _PING_S)
                    except TimeoutError:
                        yield b": still here\n\n"
        finally:
            self._readers.discard(woken)

    def _reaches(self, stream: str, seen: int) -> bool:
        """Are all events after this one still kept?"""
        oldest = self._events[0].number if self._events else self._last + 1
        return stream == self.stream and oldest - 1 <= seen <= self._last

    def _since(self, seen: int) -> list[FeedEvent]:
        news: list[FeedEvent] = []
        for each in reversed(self._events):
            if each.number <= seen:
                break
            news.append(each)
        news.reverse()
        return news
