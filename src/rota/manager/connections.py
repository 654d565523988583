"""Who is connected: who they are, what they may do, and their requests in the order in which they came."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import TYPE_CHECKING, Any

from rota.errors import Bug, Denied, EnvironmentFault, RotaError
from rota.manager.logins import SESSION
from rota.manager.peer import Peer, expect_hello, owner, session_over, user_name
from rota.manager.requests import Requests
from rota.plan.need import Need
from rota.pools.base import DelegatedPool, Pool
from rota.wire import messages as m
from rota.wire.tokens import allowed, may_be

if TYPE_CHECKING:
    from rota.manager.service import Manager

log = logging.getLogger("rota.manager")

_MAX_PEERS = 4096


class Connections:
    """All peers of a manager."""

    def __init__(self, manager: Manager, pool: Pool) -> None:
        self._manager = manager
        self._pool = pool
        self._requests = Requests(manager)
        self._owner = owner()
        self._next_peer = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.peers: dict[int, Peer] = {}

    def new_peer(self, *, local: bool) -> Peer:
        """Somebody knocks."""
        self._next_peer += 1
        return Peer(self._manager, self._next_peer, local=local)

    def connected(self, peer: Peer) -> None:
        self.peers[peer.id] = peer
        if len(self.peers) > _MAX_PEERS:
            peer.refuse(EnvironmentFault("too many connections", hint="try again later"))

    def disconnected(self, peer: Peer) -> None:
        self.peers.pop(peer.id, None)
        peer.waiting.clear()
        self._manager.watches.close(peer)
        self._manager.feeds.close(peer)
        self._requests.uploads.gone(peer)
        if self._manager.runners.parted(peer):
            if isinstance(self._pool, DelegatedPool) and peer.ticket:
                self._pool.gone(peer.ticket)
            self._pool.check()

    def greeted(self, peer: Peer, message: Any) -> None:
        """The first message of a connection: who is it?"""
        hello = expect_hello(message)
        role, until = self._session(peer, hello) if hello.role == SESSION else self._role(peer, hello)
        user = user_name(peer.uid) if peer.local and peer.uid != os.getuid() else self._owner
        peer.accept(role, user, until=until)
        manager = self._manager
        peer.send(m.Welcome(m.PROTOCOL, role, user, manager.generation, manager.deployment, until))

    def _role(self, peer: Peer, hello: m.Hello) -> tuple[str, float | None]:
        """The role that a peer may have, and until when. Raises `Denied`."""
        until = None
        if peer.local and peer.uid in (os.getuid(), 0) and not hello.token:
            held = hello.role if hello.role in ("user", "admin", "runner") else ""
        else:
            record = self._manager.tokens.verify(hello.token, time.time()) if hello.token else None
            held = record.role if record else ""
            peer.token = record.name if record else ""
            until = record.expires_at if record else None
        if not held or not (held == hello.role or may_be(held, hello.role)):
            raise Denied("this token is not accepted", hint="get one with 'rota manager token add'")
        return hello.role, until

    def _session(self, peer: Peer, hello: m.Hello) -> tuple[str, float]:
        """The same for the session of a browser, which comes through the gateway and by no other way."""
        session = self._manager.logins.verify(hello.token) if peer.local else None
        if session is None:
            raise session_over()
        peer.token, peer.session = session.name, True
        return session.role, session.expires_at

    def hang_up(self, token: str) -> None:
        """A token was taken away: so are the connections that were opened with it."""
        for peer in list(self.peers.values()):
            if token and peer.token == token:
                peer.refuse(session_over() if peer.session else Denied("this token was removed"))

    def received(self, peer: Peer, message: Any) -> None:
        """A message of somebody who has been welcomed."""
        if not allowed(peer.role, message):
            error = Denied(f"a {peer.role} may not do this", hint="use an administrator's token")
            n = getattr(message, "n", 0)
            if n:
                peer.fail(n, error)
            else:
                peer.refuse(error)
        elif peer.role == "runner":
            self._manager.runners.received(peer, message)
        else:
            peer.waiting.append(message)
            peer.throttle()
            if not peer.busy:
                peer.busy = True
                task = self._manager.loop.create_task(self._serve(peer))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _serve(self, peer: Peer) -> None:
        """Handle the requests of one peer in the order they came."""
        try:
            while peer.waiting and not peer.closed:
                message = peer.waiting.popleft()
                peer.throttle()
                try:
                    await self._requests.handle(peer, message)
                except RotaError as error:
                    peer.fail(message.n, error)
                except Exception:
                    log.exception("request failed: %s", type(message).__name__)
                    peer.fail(message.n, Bug("the manager could not do this", hint="see 'rota manager logs'"))
        finally:
            peer.busy = False

    def made_for(self, ticket: str) -> Need | None:
        """For jobs of which need the runner with this ticket was asked for, if it was."""
        return self._pool.made_for(ticket) if isinstance(self._pool, DelegatedPool) else None
