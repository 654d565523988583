"""All conduits of a runner: by the number of their channel, and by the descriptors that they wait for."""

from __future__ import annotations

import select
from typing import Protocol

from rota.runner.enter.exec_stream import Conduit
from rota.runner.enter.terminal import Terminal
from rota.runner.report.connection import Connection
from rota.wire import channels as c
from rota.wire import codec


class Ready(Protocol):
    """Waits for descriptors."""

    def ready(self, fd: int, events: int, /) -> None: ...


class Conduits:
    """Makes and finds conduits, and sends their messages to the manager."""

    def __init__(self, poll: select.epoll, connection: Connection) -> None:
        self._poll = poll
        self._connection = connection
        self.by_fd: dict[int, Ready] = {}
        self.by_n: dict[int, Conduit] = {}

    def tell(self, message: c.OpenChannel | c.InChannel) -> None:
        """Send a message about a channel."""
        self._connection.send(codec.frame(c.Relayed(message)))

    def make(
        self,
        n: int | None,
        inp: int,
        outs: dict[int, int],
        *,
        terminal: Terminal | None = None,
        lasting: bool = False,
    ) -> Conduit:
        return Conduit(
            self._poll, self.by_fd, self.tell, n=n, inp=inp, outs=outs, terminal=terminal, lasting=lasting
        )

    def ready(self, fd: int, events: int) -> None:
        """A descriptor can be read or written."""
        owner = self.by_fd[fd]
        n = owner.n if isinstance(owner, Conduit) else None
        owner.ready(fd, events)
        if n is not None:
            self.forget_closed(n)

    def forget_closed(self, n: int) -> None:
        conduit = self.by_n.get(n)
        if conduit is not None and conduit.closed:
            del self.by_n[n]
