"""Connections that have not proved yet that they are an agent: a few, and not for long."""

from __future__ import annotations

import select
import socket
import time
from typing import Final, NamedTuple

from rota.launcher import messages as m
from rota.launcher.door import Door
from rota.launcher.frames import MOST_FIRST, Broken, Channel
from rota.launcher.log import say

Agent = Channel[m.FromAgent]

_MOST: Final = 8
_PROOF_S: Final = 10.0


class _Pending(NamedTuple):
    channel: Agent
    until: float  #: when it must have proved who it is
    inherited: bool  #: is it the agent that started this launcher?


class PendingConnections:
    """They are polled here, until they are taken for an agent or closed."""

    def __init__(self, poll: select.epoll, door: Door) -> None:
        self._poll = poll
        self._door = door
        self._by_fd: dict[int, _Pending] = {}

    def __contains__(self, fd: int) -> bool:
        return fd in self._by_fd

    def __len__(self) -> int:
        return len(self._by_fd)

    def add(self, sock: socket.socket, *, inherited: bool) -> None:
        """Wait for what this connection has to say. The oldest makes room for it."""
        while len(self._by_fd) >= _MOST:
            self._close(next(iter(self._by_fd)))
        channel = Channel(sock, m.decode_from_agent, takes_fds=False, most=MOST_FIRST)
        self._by_fd[channel.fileno()] = _Pending(channel, time.monotonic() + _PROOF_S, inherited)
        self._poll.register(channel.fileno(), select.EPOLLIN)

    def hear(self, fd: int) -> Agent | None:
        """A connection has something to say. Returns it once it has proved to be an agent; it is still polled."""
        pending = self._by_fd[fd]
        try:
            said = pending.channel.receive()
            if not said:
                return None
            objection = "it must introduce itself first, and wait"
            if isinstance(said[0], m.Attach) and len(said) == 1:
                objection = self._door.objection(said[0], inherited=pending.inherited)
            if objection:
                pending.channel.send(m.Unwelcome(objection))
        except Broken as why:
            objection = str(why)
        if objection:
            say(f"a connection is refused: {objection}")
            self._close(fd)
            return None
        del self._by_fd[fd]
        return pending.channel

    def due(self) -> float:
        """When the next one has had its time."""
        return min((each.until for each in self._by_fd.values()), default=float("inf"))

    def close_overdue(self, now: float) -> None:
        for fd in [fd for fd, each in self._by_fd.items() if now >= each.until]:
            self._close(fd)

    def _close(self, fd: int) -> None:
        channel = self._by_fd.pop(fd).channel
        self._poll.unregister(fd)
        channel.close()
