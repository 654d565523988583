"""Messages over a Unix socket, with descriptors. Each side treats the other as hostile: everything is bounded.

A frame is its length in four bytes and a msgpack array. Descriptors travel with the first byte of their frame; the
receiver takes as many as the message announces.
"""

from __future__ import annotations

import array
import os
import select
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

import msgspec

#: Bytes of one frame: more than any command line with its environment.
MOST: Final = 16 << 20
#: Bytes of the first frame of a peer that has not proved who it is.
MOST_FIRST: Final = 4096
_READ: Final = 64 * 1024  # a larger buffer would be mapped anew for each read
_MOST_QUEUED: Final = 64 * 1024
_LENGTH: Final = 4
_MOST_FDS: Final = 64  # in one frame
_MOST_WAITING_FDS: Final = 1024

M = TypeVar("M")
_encode = msgspec.msgpack.Encoder().encode


class Broken(Exception):
    """The peer has closed the connection or broken the protocol."""


class Channel(Generic[M]):
    """One end of a connection; `M` is what the other end sends."""

    def __init__(
        self, sock: socket.socket, decode: Callable[[bytes], M], *, takes_fds: bool, most: int = MOST
    ) -> None:
        """A channel that takes no descriptors drops those it is sent."""
        self.sock = sock
        self.most = most
        self._decode = decode
        self._takes_fds = takes_fds
        self._received = bytearray()
        self._fds: deque[int] = deque()
        self._unsent: deque[tuple[memoryview, list[int]]] = deque()  #: with duplicates of descriptors
        self.unsent = 0  #: bytes
        self._queued = bytearray()  #: frames that were not tried to be sent yet
        self._hangup = select.poll()
        self._hangup.register(sock.fileno(), select.POLLRDHUP)

    def fileno(self) -> int:
        return self.sock.fileno()

    # -------------------------------------------------------------- sending

    def send(self, message: object, fds: Sequence[int] = ()) -> None:
        """Send a message, or queue what the socket does not take now. Raises `Broken`."""
        body = _encode(message)
        if len(body) > MOST or len(fds) > _MOST_FDS:
            raise Broken(f"a message of {len(body)} bytes and {len(fds)} descriptors is too large")
        if not fds and not self._unsent:
            self._queued += len(body).to_bytes(_LENGTH, "big") + body
            self._send_queued()
            return
        self._send_queued()
        frame = memoryview(len(body).to_bytes(_LENGTH, "big") + body)
        sent = 0 if self._unsent else self._send_now(frame, fds)
        if sent < len(frame):
            self._unsent.append((frame[sent:], [] if sent else [os.dup(fd) for fd in fds]))
            self.unsent += len(frame) - sent

    def abandoned(self) -> bool:
        """Has the peer hung up? What it sent before may still be unread."""
        return bool(self._hangup.poll(0))

    def queue(self, *messages: object) -> None:
        """Send messages with the next one, or at the next `flush`: many at once cost little more than one.
        Raises `Broken`."""
        for message in messages:
            body = _encode(message)
            if len(body) > MOST:
                raise Broken(f"a message of {len(body)} bytes is too large")
            self._queued += len(body).to_bytes(_LENGTH, "big") + body
        if len(self._queued) >= _MOST_QUEUED:
            self._send_queued()

    def _send_queued(self) -> None:
        if not self._queued:
            return
        frames, self._queued = memoryview(self._queued), bytearray()
        sent = 0 if self._unsent else self._send_now(frames, ())
        if sent < len(frames):
            self._unsent.append((frames[sent:], []))
            self.unsent += len(frames) - sent

    def flush(self) -> bool:
        """Send what is queued; False if some is left. Raises `Broken`."""
        self._send_queued()
        while self._unsent:
            frame, fds = self._unsent[0]
            sent = self._send_now(frame, fds)
            if not sent:
                return False
            self.unsent -= sent
            for fd in fds:
                os.close(fd)
            if sent < len(frame):
                self._unsent[0] = frame[sent:], []
                return False
            self._unsent.popleft()
        return True

    def _send_now(self, frame: memoryview, fds: Sequence[int]) -> int:
        """How many bytes were sent; with the first one the descriptors were too."""
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            return self.sock.sendmsg([frame], rights, socket.MSG_NOSIGNAL)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            raise Broken(str(error)) from None

    # -------------------------------------------------------------- receiving

    def receive(self) -> list[M]:
        """The messages that have arrived whole, after one read. Raises `Broken`."""
        try:
            data = self._read()
        except (BlockingIOError, InterruptedError):
            return []
        except OSError as error:
            raise Broken(str(error)) from None
        if not data:
            raise Broken("it closed the connection")
        self._received += data
        return self._messages()

    def _read(self) -> bytes:
        if not self._takes_fds:
            return self.sock.recv(_READ)
        data, ancillary, flags, _ = self.sock.recvmsg(
            _READ, socket.CMSG_SPACE(4 * _MOST_FDS), socket.MSG_CMSG_CLOEXEC
        )
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array.array("i")
                fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
                self._fds.extend(fds)
        if flags & socket.MSG_CTRUNC or len(self._fds) > _MOST_WAITING_FDS:
            raise OSError("too many descriptors")
        return data

    def _messages(self) -> list[M]:
        found: list[M] = []
        data, at = self._received, 0
        while len(data) - at >= _LENGTH:
            length = int.from_bytes(data[at : at + _LENGTH], "big")
            if length > self.most:
                raise Broken(f"a frame of {length} bytes")
            if len(data) - at - _LENGTH < length:
                break
            body = bytes(data[at + _LENGTH : at + _LENGTH + length])
            try:
                found.append(self._decode(body))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise Broken(f"not a message: {error}") from None
            at += _LENGTH + length
        del data[:at]
        return found

    def take_fds(self, count: int) -> list[int]:
        """The descriptors of the earliest message for which they were not taken yet. Raises `Broken`."""
        if not 0 <= count <= len(self._fds):
            raise Broken("descriptors are missing")
        return [self._fds.popleft() for _ in range(count)]

    def close(self) -> None:
        self.sock.close()
        for _, fds in self._unsent:
            for fd in fds:
                os.close(fd)
        self._unsent.clear()
        self._queued.clear()
        self.unsent = 0
        while self._fds:
            os.close(self._fds.popleft())
