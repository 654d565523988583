"""All connections: authentication, roles, and the dispatch of messages in the order of their arrival."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
from collections.abc import Callable
from typing import Any

from rota.errors import Bug, Denied, EnvironmentFault, RotaError
from rota.manager.loop import clock
from rota.manager.loop.deployment import Deployment
from rota.manager.peers.channels import ChannelRouter
from rota.manager.peers.logins import SESSION, Logins
from rota.manager.peers.ownership import restricted
from rota.manager.peers.partial_messages import PartialMessages
from rota.manager.peers.peer import Peer, expect_hello, owner, session_over
from rota.manager.peers.pending_connections import PendingConnection, PendingConnections
from rota.manager.peers.runner_messages import RunnerMessages
from rota.manager.peers.tickets import Tickets
from rota.manager.requests.dispatch import Requests
from rota.manager.submit.uploads import Uploads
from rota.manager.watch.feed import Feeds
from rota.manager.watch.tails import OutputTails
from rota.manager.watch.watches import Watches
from rota.pools.base import Pool
from rota.users import user_name
from rota.wire import messages as m
from rota.wire.job_keys import KEY
from rota.wire.operations import Operations
from rota.wire.permissions import MACHINE, RUNNER, may_be
from rota.wire.ticket_file import PREFIX as TICKET_PREFIX
from rota.wire.tokens import TokenBook

log = logging.getLogger("rota.manager")

#: Authenticated connections; the Unix socket and TLS have this limit each, so neither crowds out the other.
_MOST_PEERS = 8192
#: With one token, so that its holder does not keep others out. Agents of many nodes may share one.
_MOST_EACH = 2048
#: Connections over the Unix socket that have not logged in.
_MOST_PENDING = 1024
#: The limit of open files is checked after every so many new connections.
_FILES_STEP = 256


def _raise_limit(connections: int) -> None:
    """Raise the soft limit of open files, as far as allowed, before it refuses connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * connections + _FILES_STEP
    if soft < wanted and soft < hard:
        more = wanted if hard == resource.RLIM_INFINITY else min(hard, 4 * wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))


class Connections:
    """All peers of a manager."""

    def __init__(
        self,
        deployment: Deployment,
        peers: dict[int, Peer],
        *,
        operations: Operations,
        tokens: TokenBook,
        logins: Logins,
        pool: Pool,
        tickets: Tickets,
        runner_messages: RunnerMessages,
        requests: Requests,
        uploads: Uploads,
        channels: ChannelRouter,
        watches: Watches,
        tails: OutputTails,
        feeds: Feeds,
        gone: Callable[[Peer], None],
        failed: Callable[[str, Exception], None],
    ) -> None:
        self._deployment = deployment
        self._operations = operations
        self._tokens = tokens
        self._logins = logins
        self._pool = pool
        self._tickets = tickets
        self._runner_messages = runner_messages
        self._requests = requests
        self._uploads = uploads
        self._channels = channels
        self._watches = watches
        self._tails = tails
        self._feeds = feeds
        self._gone = gone  #: features that are told of peers that were disconnected
        self._failed = failed  #: told of bugs
        self._owner = owner()
        self._home = deployment.home.mark()
        self._next_peer = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._pending = PendingConnections(most=_MOST_PENDING, most_each=_MOST_PENDING)
        self._files_for = 0
        self._partial_messages = PartialMessages()
        self._peers = peers

    def new_peer(self, *, local: bool) -> Peer:
        """The protocol object of a new connection."""
        self._next_peer += 1
        return Peer(
            self, self._next_peer, accepts=self._operations.accepts, local=local, unfinished=self._partial_messages
        )

    def allow_files(self, others: int = 0) -> None:
        """Make sure that enough files may be open for all connections."""
        connections = len(self._peers) + others
        if connections >= self._files_for:
            self._files_for = connections + _FILES_STEP
            _raise_limit(self._files_for)

    def connected(self, peer: Peer) -> None:
        self._peers[peer.id] = peer
        self.allow_files()
        if peer.local:
            pending = PendingConnection("local", peer.abort, since=asyncio.get_running_loop().time())
            peer.on_identified = lambda: self._pending.discard(pending)
            self._pending.add(pending)

    def disconnected(self, peer: Peer) -> None:
        self._peers.pop(peer.id, None)
        peer.waiting.clear()
        self._watches.close(peer)
        self._feeds.close(peer)
        self._gone(peer)
        self._channels.gone(peer)
        self._uploads.gone(peer)
        if self._runner_messages.parted(peer):
            self._pool.check()

    def greeted(self, peer: Peer, message: Any) -> None:
        """The first message of a connection: authenticate it. Raises `RotaError`."""
        hello = expect_hello(message)
        if hello.home is not None and hello.home != self._home:
            raise m.other_home()
        if hello.role == KEY:
            self._let_in_by_key(peer, hello)
            return
        if hello.role == MACHINE:
            self._let_in_machine(peer, hello)
            return
        role, user, until = self._session(peer, hello) if hello.role == SESSION else self._role(peer, hello)
        self._refuse_too_many(peer)
        peer.accept(role, user, until=until)
        mark = self._home if hello.home is not None else None
        peer.send(
            m.Welcome(
                m.PROTOCOL,
                role,
                user,
                self._deployment.generation,
                self._deployment.id,
                until,
                mark,
                paced=True,
                own_only=restricted(peer),
            )
        )

    def _role(self, peer: Peer, hello: m.Hello) -> tuple[str, str, float | None]:
        """Role, user and expiry of a peer. Raises `Denied`."""
        user, until = self._owner, None
        if hello.token.startswith(TICKET_PREFIX) and hello.role == RUNNER and not peer.local:
            self._tickets.greet(peer, hello)
            return RUNNER, "", None
        if peer.local and peer.uid in (os.getuid(), 0) and not hello.token:
            held = hello.role if hello.role in ("user", "admin", "runner") else ""
            user = user_name(peer.uid)
            peer.trusted = True
        else:
            record = self._tokens.verify(hello.token, clock.now()) if hello.token else None
            held = record.role if record else ""
            peer.token = record.name if record else ""
            until = record.expires_at if record else None
            user = (record and record.user) or self._owner
            peer.trusted = user == self._owner
            if record is not None and record.host not in (None, hello.host):
                raise Denied(f"this token is for the agent of {record.host!r}", hint="use that of this node")
            peer.host = hello.host
        if not held or not (held == hello.role or may_be(held, hello.role)):
            raise Denied("this token is not accepted", hint="get one with 'rota manager token add'")
        return hello.role, user, until

    def _let_in_by_key(self, peer: Peer, hello: m.Hello) -> None:
        """Accept a peer with the key of a running job, for that job and nothing else. Raises `Denied`."""
        if not self._channels.opens(hello.token):
            raise Denied("no job runs here that this key fits", hint="ask for the current key")
        self._refuse_too_many(peer)
        peer.accept(KEY, "")
        peer.send(m.Welcome(m.PROTOCOL, KEY, "", self._deployment.generation, ""))

    def _let_in_machine(self, peer: Peer, hello: m.Hello) -> None:
        """Accept a machine with the ticket of its provisioning, to say that it is ready. Raises `Denied`."""
        peer.ticket, host = self._tickets.machine(hello.token)
        peer.token = f"ticket {host}"  # no token has a space in its name
        self._refuse_too_many(peer)
        peer.accept(MACHINE, "")
        peer.send(m.Welcome(m.PROTOCOL, MACHINE, "", self._deployment.generation, ""))

    def _refuse_too_many(self, peer: Peer) -> None:
        """Raise `EnvironmentFault` if there are too many authenticated connections."""
        if len(self._peers) < min(_MOST_PEERS, _MOST_EACH):
            return
        like = [each for each in self._peers.values() if each.role and each.local == peer.local]
        same = sum(1 for each in like if each.token == peer.token and each.role != RUNNER) if peer.token else 0
        if len(like) >= _MOST_PEERS or same >= _MOST_EACH:
            raise EnvironmentFault("too many connections", hint="close some, or try again later")

    def _session(self, peer: Peer, hello: m.Hello) -> tuple[str, str, float]:
        """The same for the session of a browser, which may come through the gateway only."""
        session = self._logins.verify(hello.token) if peer.local else None
        if session is None:
            raise session_over()
        peer.token, peer.session = session.name, True
        peer.trusted = session.creator.is_owner(self._owner)
        return session.role, session.creator.user, session.expires_at

    def received(self, peer: Peer, message: Any) -> None:
        """A message of an authenticated peer."""
        if not self._operations.allowed(peer.role, message):
            error = Denied(f"a {peer.role} may not do this", hint="use an administrator's token")
            n = getattr(message, "n", 0)
            if n:
                peer.fail(n, error)
            else:
                peer.refuse(error)
        elif peer.role == "runner":
            self._runner_messages.received(peer, message)
        elif isinstance(message, m.Taken):
            self._tails.taken(peer, message)
        elif isinstance(message, m.OpenChannel | m.InChannel):
            self._channels.received(peer, message)
        else:
            peer.waiting.append(message)
            peer.throttle()
            if not peer.busy:
                peer.busy = True
                task = asyncio.get_running_loop().create_task(self._serve(peer))
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
                except Exception as error:
                    peer.fail(message.n, self._answer_to(message, error))
        finally:
            peer.busy = False

    def _answer_to(self, message: Any, error: Exception) -> RotaError:
        """What a client is told whose request raised this. A bug is counted; nothing was decided yet."""
        if isinstance(error, RotaError) and not isinstance(error, Bug):
            return error
        kind = type(message).__name__
        log.error("request failed: %s", kind, exc_info=error)
        self._failed(f"request {kind}", error)
        return Bug(
            f"a bug in the manager keeps it from doing this ({kind}); nothing was done",
            hint="see 'rota doctor'",
            code="internal",
        )
