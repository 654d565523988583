"""The socket through which `rota-rsh`, run inside a job, reaches the other nodes of that job.

A Unix socket in the runner's private directory. The kernel identifies the caller (`SO_PEERCRED`): it must belong
to a job that runs here, and it can reach only that job's nodes. Everything is relayed over the runner's own
connection, so a node needs no other way to the manager.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from collections import Counter, deque
from typing import Final

import msgspec

from rota.errors import WireError
from rota.runner.contain.task_containment import Containment
from rota.runner.enter.exec_streams import Conduits
from rota.runner.log import say
from rota.runner.report.connection import Connection
from rota.runner.report.journal import Key
from rota.wire import channels as c
from rota.wire import codec
from rota.wire.greeting import PROTOCOL, Failure, Hello, Message, Welcome

SOCKET: Final = "relay"
_MOST_CALLERS: Final = 1024
_MOST_OF_A_JOB: Final = 128  #: so that no job locks others out
_MOST_CHANNELS: Final = 64  #: of one caller
_MOST_REFUSED: Final = 64  #: callers whose refusal is not sent yet
_MAX_FRAME: Final = 4 * 1024 * 1024
_CREDENTIALS: Final = struct.Struct("3i")


class Caller:
    """One process of a job that has called."""

    def __init__(self, relay: Relay, stream: socket.socket, key: Key | None) -> None:
        self._relay = relay
        self._stream = stream
        self._reader: codec.Reader[Hello | c.OpenChannel | c.InChannel] = codec.Reader(
            Hello | c.OpenChannel | c.InChannel, max_frame=_MAX_FRAME
        )
        self._out = bytearray()
        self.key = key
        self.counted = False
        self.welcome = False
        self.refusal: Failure | None = None  #: how its `Hello` is answered, if it is not welcome
        self.channels: dict[int, int] = {}  #: its numbers → ours

    def ready(self, _fd: int, events: int) -> None:
        """Something can be read or written."""
        try:
            if events & select.EPOLLOUT:
                self._flush()
            if events & ~select.EPOLLOUT:
                data = self._stream.recv(65536)
                if not data:
                    self.close()
                    return
                for message in self._reader.feed(data):
                    self._relay.heard(self, message)
        except (BlockingIOError, InterruptedError):
            return
        except (OSError, WireError):
            self.close()

    def send(self, message: Message) -> None:
        """Bounded by what the caller gave credit for."""
        if self._stream.fileno() < 0:
            return
        self._out += codec.frame(message)
        try:
            self._flush()
        except OSError:
            self.close()

    def _flush(self) -> None:
        try:
            while self._out:
                del self._out[: self._stream.send(self._out)]
        except BlockingIOError:
            pass
        wanted = select.EPOLLIN | (select.EPOLLOUT if self._out else 0)
        self._relay.watch(self._stream.fileno(), self, wanted)

    def close(self) -> None:
        if self._stream.fileno() >= 0:
            self._relay.left(self, self._stream.fileno())
            self._stream.close()


class Relay:
    """All callers, and the channels that they opened."""

    def __init__(
        self,
        directory: str,
        *,
        poll: select.epoll,
        connection: Connection,
        conduits: Conduits,
        containment: Containment,
    ) -> None:
        """`directory`: the runner's own, for its socket."""
        self._poll = poll
        self._connection = connection
        self._conduits = conduits
        self._containment = containment
        self._registry = conduits.by_fd
        self._callers: dict[int, int] = {}  #: descriptor → events that are watched
        self._by_number: dict[int, tuple[Caller, int]] = {}
        self._of_jobs: Counter[Key] = Counter()
        self._refused: deque[Caller] = deque()
        self._last = 0
        self.path = f"{directory}/{SOCKET}"
        self._listener: socket.socket | None = None
        try:
            self._listener = _listen(directory)
        except OSError as error:
            say(f"jobs here cannot reach their other nodes: {error}")
            return
        self._poll.register(self._listener.fileno(), select.EPOLLIN)
        self._registry[self._listener.fileno()] = self

    def ready(self, _fd: int, _events: int) -> None:
        """A process connects."""
        assert self._listener is not None
        try:
            stream, _ = self._listener.accept()
        except OSError:
            return
        stream.setblocking(False)
        packed = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, _uid, _gid = _CREDENTIALS.unpack(packed)
        key = self._containment.lease_of(pid)
        caller = Caller(self, stream, key)
        self.watch(stream.fileno(), caller, select.EPOLLIN)
        if key is None:
            self._refuse(caller, "denied", "only processes of a job that runs here may do this")
        elif self._of_jobs[key] >= _MOST_OF_A_JOB or len(self._callers) > _MOST_CALLERS:
            self._refuse(caller, "environment", "too many processes of jobs call at once; try again later")
        else:
            self._of_jobs[key] += 1
            caller.counted = True

    def _refuse(self, caller: Caller, code: str, why: str) -> None:
        """Answer its first message with this, then close. Closed at once, the connection would break before the
        caller could read why. Only a few are kept waiting."""
        caller.refusal = Failure(0, code, why)
        self._refused.append(caller)
        if len(self._refused) > _MOST_REFUSED:
            self._refused.popleft().close()

    def watch(self, fd: int, caller: Caller, wanted: int) -> None:
        before = self._callers.get(fd)
        if before == wanted:
            return
        if before is None:
            self._poll.register(fd, wanted)
            self._registry[fd] = caller
        else:
            self._poll.modify(fd, wanted)
        self._callers[fd] = wanted

    def left(self, caller: Caller, fd: int) -> None:
        """A caller has gone: what it opened is hung up."""
        if self._callers.pop(fd, None) is not None:
            self._poll.unregister(fd)
            self._registry.pop(fd, None)
        if caller.counted and caller.key is not None:
            caller.counted = False
            self._of_jobs[caller.key] -= 1
            self._of_jobs += Counter()  # drops zero counts
        for number in caller.channels.values():
            self._by_number.pop(number, None)
            self._conduits.tell(c.ChannelEnd(number, lost=True))
        caller.channels.clear()

    # -------------------------------------------------------------- both directions

    def heard(self, caller: Caller, message: Hello | c.OpenChannel | c.InChannel) -> None:
        """A message of a caller."""
        if caller.refusal is not None:
            caller.send(caller.refusal)
            caller.close()
        elif isinstance(message, Hello):
            caller.welcome = True
            caller.send(Welcome(PROTOCOL, "lease", "", 0, ""))
        elif not caller.welcome or caller.key is None:
            caller.close()
        elif isinstance(message, c.OpenChannel):
            self._open(caller, caller.key, message)
        elif (number := caller.channels.get(message.n)) is not None:
            if isinstance(message, c.ChannelEnd):
                del caller.channels[message.n]
                self._by_number.pop(number, None)
            self._conduits.tell(msgspec.structs.replace(message, n=number))

    def _open(self, caller: Caller, key: Key, ask: c.OpenChannel) -> None:
        if ask.n in caller.channels or len(caller.channels) >= _MOST_CHANNELS:
            caller.send(Failure(ask.n, "bad_input", "too many channels, or the number is in use"))
        elif ask.job != key[0] or ask.attach:
            caller.send(Failure(ask.n, "denied", f"this process belongs to job {key[0]}"))
        elif not self._connection.joined:
            caller.send(Failure(ask.n, "no_manager", "this node has no connection to the manager"))
        else:
            self._last -= 1
            caller.channels[ask.n] = self._last
            self._by_number[self._last] = (caller, ask.n)
            self._conduits.tell(msgspec.structs.replace(ask, n=self._last, key=""))

    def answered(self, message: c.InChannel) -> None:
        """A message of the manager about a channel that was opened here."""
        known = self._by_number.get(message.n)
        if known is None:
            return
        caller, n = known
        if isinstance(message, c.ChannelEnd):
            del self._by_number[message.n]
            caller.channels.pop(n, None)
        caller.send(msgspec.structs.replace(message, n=n))

    def lost(self) -> None:
        """The connection to the manager is gone."""
        for number in list(self._by_number):
            self.answered(c.ChannelEnd(number, message="the connection to the manager was lost", lost=True))

    def close(self) -> None:
        """The runner leaves."""
        if self._listener is not None:
            self._listener.close()
            try:
                os.unlink(self.path)
            except OSError:
                pass


def _listen(directory: str) -> socket.socket:
    """Bind by way of the directory's descriptor: the path of a socket must be short."""
    place = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        try:
            os.unlink(f"{directory}/{SOCKET}")  # of a runner whose place this one has taken
        except FileNotFoundError:
            pass
        listener.bind(f"/proc/self/fd/{place}/{SOCKET}")
        os.chmod(f"{directory}/{SOCKET}", 0o600)
        listener.listen(64)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(place)
    return listener
