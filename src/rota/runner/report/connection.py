"""The runner's connection to the manager, as its components use it: send a frame, know whether it has joined.

What is sent is decided elsewhere. When a connection is lost the next one is opened later.
"""

from __future__ import annotations

import select
from collections.abc import Callable

from rota.runner.log import say
from rota.runner.loop import Loop
from rota.runner.report.link import Link, Lost
from rota.wire.orders import ToRunner


class Connection:
    """At most one connection at a time."""

    def __init__(self, loop: Loop, link: Link) -> None:
        self._loop = loop
        self._link = link
        self._writing = False
        self.fd = -1
        self.joined = False  #: has the manager accepted this runner?
        self.ever_joined = False
        self.disconnected_since = loop.now  #: when it was last joined
        self.when_lost: list[Callable[[], None]] = []  #: called when a connection has been lost

    @property
    def up(self) -> bool:
        return self._link.up

    @property
    def unsent(self) -> int:
        """Bytes that the manager has not taken yet."""
        return self._link.unsent

    @property
    def retry_at(self) -> float:
        """Before this no connection is tried."""
        return self._link.retry_at

    def overdue(self, now: float) -> bool:
        """Has the manager not accepted this runner for too long?"""
        return not self.joined and self._link.overdue(now)

    def open(self, now: float) -> bool:
        """Try for a connection, if it is time to."""
        if now < self._link.retry_at:
            return False
        try:
            self.fd = self._link.connect(now)
        except Lost:
            return False
        self._writing = False
        self._loop.poll.register(self.fd, select.EPOLLIN)
        return True

    def accepted(self) -> None:
        """The manager has accepted this runner."""
        self.joined = self.ever_joined = True
        self._link.accepted()

    def receive(self) -> list[ToRunner]:
        """All whole messages that have arrived; none if the connection turns out to be lost."""
        try:
            messages = self._link.receive()
            self._link.flush()
            self._watch_writing()
        except Lost as why:
            self.lost(str(why))
            return []
        return messages

    def send(self, frame: bytes) -> None:
        """Send if connected; what must not get lost is in the outbox."""
        if not self._link.up:
            return
        try:
            self._link.send(frame)
        except Lost as why:
            self.lost(str(why))
            return
        self._watch_writing()

    def _watch_writing(self) -> None:
        if self._link.wants_write != self._writing:
            self._writing = not self._writing
            self._loop.poll.modify(self.fd, select.EPOLLIN | (select.EPOLLOUT if self._writing else 0))

    def lost(self, why: str) -> None:
        """Close it, and try again after a while."""
        if not self._link.up:
            return
        say(f"connection lost: {why}")
        try:
            self._loop.poll.unregister(self.fd)
        except OSError:
            pass
        now = self._loop.now
        self._link.close(now)
        self.fd = -1
        if self.joined:
            self.disconnected_since = now
        self.joined = False
        for call in self.when_lost:
            call()
        self._loop.due(self._link.retry_at)
