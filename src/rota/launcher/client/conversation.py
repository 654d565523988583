"""Talks with a launcher: sends, awaits answers, and queues the messages that come meanwhile."""

from __future__ import annotations

import os
import select
import time
from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from rota.launcher import messages as m
from rota.launcher.base import Decided, Ended, Key
from rota.launcher.client.spooled import SpoolReader
from rota.launcher.frames import Broken, Channel

#: A launcher that takes longer to answer is treated like a dead one.
LIMIT_S: Final = 30.0

Connection = Channel[m.FromLauncher]


class HeldStart(NamedTuple):
    """A lease that was handed over ahead."""

    key: Key
    reader: SpoolReader
    serial: int
    mark: bytes
    asked_at: int  #: in clock ticks since boot


class Fenced(Exception):
    """Another runner has this launcher: this one must exit at once and touch nothing."""


class Conversation:
    """One connection with its queues. A subclass decides what follows when it ends."""

    def __init__(self, connection: Connection) -> None:
        self.dead = False  #: the launcher has died
        self.fenced = False
        self._connection = connection
        self._poll = select.epoll()
        self._poll.register(connection.fileno(), select.EPOLLIN)
        self._reminder = os.eventfd(0)  #: readable while something is queued that `receive` has not returned
        self._reminded = False
        self._queued = False
        self._poll.register(self._reminder, select.EPOLLIN)
        self.fd = self._poll.fileno()
        self._ended: deque[Ended] = deque()
        self._news: dict[tuple[int, int], None] = {}  #: streams with output
        self._running: dict[int, int] = {}  #: pid -> the number of its pipes, or 0
        self._starting = 0  #: the number of the pipes of the process that is being started
        self._alone: set[int] = set()  #: of those that have ended: nothing else was left then
        self._held: dict[Key, HeldStart] = {}  #: leases handed over ahead, in that order
        self._decided: list[Decided] = []
        self._awaits = False  #: an answer
        self._answer: m.Message | None = None
        self._fds: list[int] = []  #: that came with the answer

    def _die(self, why: str) -> None:
        """The launcher is dead, or taken for dead."""
        raise NotImplementedError

    def _decide(self, said: m.Begun | m.Dropped) -> None:
        """The launcher reports the fate of a lease that it held."""
        raise NotImplementedError

    def _send(self, message: m.FromAgent) -> None:
        """Send without waiting for an answer. A launcher that has died is noticed later."""
        self._check()
        if self.dead:
            return
        try:
            self._connection.send(message)
        except Broken as why:
            self._die(str(why))
        self._queued = False
        self._flush()

    def _queue(self, message: m.FromAgent) -> None:
        """Send with the next message, or at the next `flush`."""
        self._check()
        if self.dead:
            return
        try:
            self._connection.queue(message)
            self._queued = True
        except Broken as why:
            self._die(str(why))

    def flush(self) -> None:
        """Send what is queued."""
        if self._queued:
            self._queued = False
            self._flush()

    def _flush(self) -> None:
        if self.dead:
            return
        try:
            limit = time.monotonic() + LIMIT_S
            while not self._connection.flush():
                self._wait(select.POLLOUT, limit)
        except Broken as why:
            self._die(str(why))

    def _call(self, message: m.FromAgent) -> m.Message | None:
        """The answer; None: the launcher has died. Raises `Fenced`."""
        self._awaits, self._answer = True, None
        self._send(message)
        limit = time.monotonic() + LIMIT_S
        while self._answer is None and not self.dead:
            try:
                self._wait(select.POLLIN, limit)
                self._take_all(self._connection.receive())
            except Broken as why:
                self._die(str(why))
        self._awaits = False
        if self._ended or self._news or self._decided:
            self._remind()
        return self._answer

    def _remind(self) -> None:
        """Make the descriptor readable, as if what is queued had just come."""
        if not self._reminded:
            self._reminded = True
            os.eventfd_write(self._reminder, 1)

    def _wait(self, events: int, limit: float) -> None:
        waiting = select.poll()
        waiting.register(self._connection.fileno(), events)
        if not waiting.poll(max(0.0, limit - time.monotonic()) * 1000):
            raise Broken("it does not answer")

    def _take_all(self, messages: Iterable[m.FromLauncher]) -> None:
        for said in messages:
            match said:
                case m.Exited(pid, status, spent, alone):
                    self._running.pop(pid, None)
                    self._ended.append((pid, status, spent))
                    if alone:
                        self._alone.add(pid)
                case m.Wrote(streams):
                    self._news.update(dict.fromkeys(streams))
                case m.Replaced():
                    self.fenced = True
                    self._check()
                case m.Started() | m.PipesMade() | m.NotStarted() | m.Done() | m.Children() if self._awaits:
                    self._answered(said)
                case m.Withdrawn() if self._awaits:
                    self._answered(said)
                case m.Begun() | m.Dropped() if said.key in self._held:
                    self._decide(said)
                case _:
                    raise Broken(f"it says {type(said).__name__} out of turn")

    def _answered(self, said: m.Message) -> None:
        # Its end may be told in the same breath.
        if isinstance(said, m.Started):
            self._running[said.pid] = self._starting
        fds = said.fds if isinstance(said, m.Started) else 6 if isinstance(said, m.PipesMade) else 0
        self._fds = self._connection.take_fds(fds)
        self._awaits, self._answer = False, said

    def _check(self) -> None:
        if self.fenced:
            raise Fenced("another runner has taken its place")
