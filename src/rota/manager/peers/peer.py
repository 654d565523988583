"""One connection: frames to messages and back, and the identity of the other end.

Nothing but `Hello` is accepted first; until it is, size and time are tightly limited.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, cast

from rota.core.attempts.reported_times import SLACK_S
from rota.core.events import Asker, TicketClaim
from rota.errors import Denied, RotaError, WireError
from rota.manager.loop import clock
from rota.manager.peers.partial_messages import SMALL, PartialMessages
from rota.users import user_name
from rota.wire import codec
from rota.wire import messages as m
from rota.wire.failures import failure_of

_HELLO_TIME_S: Final = 10.0
_EXPIRY_CHECK_S: Final = 60.0
#: A host that acknowledges no packet for so long is gone, or cannot be reached.
_UNHEARD_MS: Final = 30_000
#: A peer that does not read is cut off when this much waits for it.
_MAX_UNREAD: Final = 64 * 1024 * 1024
#: Requests of one peer that may wait for their turn before reading from it stops.
_MAX_WAITING: Final = 64
#: The same in bytes, about.
_MAX_WAITING_BYTES: Final = 64 << 20


class PeerListener(Protocol):
    """Hears what happens to a connection."""

    def connected(self, peer: Peer) -> None: ...

    def greeted(self, peer: Peer, message: Any) -> None:
        """The first message. Raises `RotaError` to refuse the connection."""

    def received(self, peer: Peer, message: Any) -> None:
        """A later message, of a peer that was accepted."""

    def disconnected(self, peer: Peer) -> None: ...


class Peer(asyncio.Protocol):
    """A client or a runner, connected over the Unix socket or TLS."""

    def __init__(
        self, listener: PeerListener, id: int, *, accepts: Any, local: bool, unfinished: PartialMessages
    ) -> None:
        self._listener = listener
        self._partial_messages = unfinished
        self.id = id
        self.local = local
        self.role = ""
        self.user = ""
        self.trusted = False  #: belongs to the owner of this deployment, or to root on this machine
        self.uid = -1
        self.token = ""  #: name of its token or session; empty: it needed none
        self.session = False  #: a browser's, by way of the gateway
        self.until: float | None = None  #: when token or session expires
        self.host = ""  #: of which node it is the agent
        self.runner = ""  #: set once it has joined as a runner
        self.claim: TicketClaim | None = None  #: its ticket and key, if it is a runner that came with a ticket
        self.ticket = ""  #: hash of the ticket of a machine that is provisioned, if it came with one
        self.skew_s = 0.0  #: seconds by which the clock of this runner is behind the manager's
        self.tails = False  #: this runner streams output to each reader at its own pace
        self.attaching: set[str] = set()  #: submissions that it is about to attach to
        self.specs: set[int] = set()  #: run specifications this runner was sent
        self.envs: set[int] = set()
        self.waiting: deque[Any] = deque()  #: requests to be handled in order
        self.busy = False
        self.closed = False
        self.on_identified: Callable[[], None] | None = None  #: called when it has logged in, or was closed
        self._reader: codec.Reader[Any] = codec.Reader(accepts, max_frame=codec.MAX_HELLO)
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._paused = False
        self._unfinished = 0  #: bytes of a message that is not complete, as far as they are counted
        self._unread = 0  #: bytes that came while requests wait to be handled

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._deadline = asyncio.get_running_loop().call_later(_HELLO_TIME_S, self.close)
        if self.local:
            sock = cast(socket.socket, transport.get_extra_info("socket"))
            packed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            _pid, self.uid, _gid = struct.unpack("3i", packed)
        else:
            sock = cast(socket.socket, transport.get_extra_info("socket"))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNHEARD_MS)
            # Also notice the loss of an idle peer: a job may be waiting for it to read.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _UNHEARD_MS // 2000)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
        self._listener.connected(self)

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._reader.feed(data):
                if self.closed:
                    return
                if self.role:
                    self._listener.received(self, message)
                else:
                    self._listener.greeted(self, message)
            if self.waiting:
                self._unread += len(data)
                self.throttle()
            self._count_unfinished()
        except RotaError as error:
            self.refuse(error)

    def _count_unfinished(self, *, gone: bool = False) -> None:
        """Raises `EnvironmentFault` if all connections of one token holder together have too many bytes of
        incomplete messages. The owner on this machine is not limited."""
        if self.local and not self.token:
            return
        now = 0 if gone or self._reader.pending < SMALL else self._reader.pending
        if now != self._unfinished:
            before, self._unfinished = self._unfinished, now
            whose = f"{self.token or self.user} {self.host}"  # agents of several nodes may share a token
            self._partial_messages.change(whose, before=before, now=now)

    def accept(self, role: str, user: str, *, until: float | None = None) -> None:
        """The peer has logged in, with a token or session that is valid until then."""
        self.role, self.user, self.until = role, user, until
        self._reader.max_frame = codec.MAX_FRAME
        self._mark_identified()
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if until is not None:
            self._expire()

    def _mark_identified(self) -> None:
        if self.on_identified is not None:
            self.on_identified()
            self.on_identified = None

    def _expire(self) -> None:
        """Hang up when the token has expired. Checked repeatedly, since clocks are set and machines sleep."""
        assert self.until is not None
        left = self.until - clock.now()
        if left <= 0:
            self.refuse(session_over() if self.session else _expired())
        else:
            self._deadline = asyncio.get_running_loop().call_later(min(left, _EXPIRY_CHECK_S), self._expire)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._deadline is not None:
            self._deadline.cancel()
        self._mark_identified()
        self._count_unfinished(gone=True)
        self._listener.disconnected(self)

    def send(self, message: m.Message) -> None:
        """Write a message, unless the peer has gone or does not read."""
        transport = self._transport
        if self.closed or transport is None:
            return
        transport.write(codec.frame(message))
        if transport.get_write_buffer_size() > _MAX_UNREAD:
            transport.abort()

    @property
    def behind_s(self) -> float:
        """Seconds to add to the times that this runner reports; 0: its clock is about right."""
        return self.skew_s if abs(self.skew_s) > SLACK_S else 0.0

    @property
    def unsent(self) -> int:
        """Bytes that wait to be sent to it."""
        return 0 if self._transport is None or self.closed else self._transport.get_write_buffer_size()

    def asker(self, n: int) -> Asker:
        """Where to send the answer to request `n`."""
        return Asker(self.id, n, self.user)

    def refuse(self, error: RotaError) -> None:
        """Send an error and hang up."""
        self.send(failure_of(0, error))
        self.close()

    def fail(self, n: int, error: RotaError) -> None:
        """Refuse one request."""
        self.send(failure_of(n, error))

    def close(self) -> None:
        self.closed = True
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Hang up at once, without sending what is queued."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    def throttle(self) -> None:
        """Stop or resume reading, depending on how much waits to be handled."""
        if self._transport is None or self.closed:
            return
        if not self.waiting:
            self._unread = 0
        full = len(self.waiting) >= _MAX_WAITING or self._unread > _MAX_WAITING_BYTES
        if full and not self._paused:
            self._transport.pause_reading()
            self._paused = True
        elif self._paused and not full:
            self._transport.resume_reading()
            self._paused = False


def hang_up(peers: Mapping[int, Peer], token: str) -> None:
    """Close the connections that were opened with a token or session which is no longer valid."""
    for peer in list(peers.values()):
        if token and peer.token == token:
            peer.refuse(session_over() if peer.session else Denied("this token was removed"))


def session_over() -> Denied:
    return Denied("this session is over", hint="open the page again with 'rota manager ui'")


def _expired() -> Denied:
    return Denied("this token has expired", hint="get another one with 'rota manager token add'")


def owner() -> str:
    """The user whose deployment this is."""
    return user_name(os.getuid())


def expect_hello(message: Any) -> m.Hello:
    """The first message must be `Hello` in a protocol we speak."""
    if not isinstance(message, m.Hello):
        raise WireError("the first message must be Hello", hint="is this a Rota client?")
    if message.protocol != m.PROTOCOL:
        raise WireError(
            f"protocol {message.protocol} is not spoken here, only {m.PROTOCOL}",
            hint="use the same version of Rota on both sides",
        )
    return message
