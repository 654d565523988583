"""Moves bytes between the streams of one process and its channel, with credits for flow control.

It reads no more than the client has room for: a client that stops reading stops this process and no other.
Starts and signals nothing.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from typing import Any, Final

from rota.runner.enter.terminal import Terminal
from rota.wire.channels import PIECE, WINDOW, ChannelCredit, ChannelData, ChannelEnd, InChannel

#: Bytes of a terminal's output that are kept while no client is attached; then its programs wait.
KEEP: Final = 64 * 1024
#: Consumed input is reported when it is worth a message.
_CREDIT: Final = WINDOW // 4
#: Bytes that other processes may still add to the output of an ended one.
_AFTER_EXIT: Final = WINDOW


class Conduit:
    """One process (or one terminal) and at most one listener, known by its number `n`."""

    def __init__(
        self,
        poll: select.epoll,
        registry: dict[int, Any],
        tell: Callable[[InChannel], None],
        *,
        n: int | None,
        inp: int,
        outs: dict[int, int],
        terminal: Terminal | None = None,
        lasting: bool = False,
    ) -> None:
        self._poll = poll
        self._registry = registry  #: by descriptor, while it is watched
        self._tell = tell
        self.n = n
        self.terminal = terminal
        self.lasting = lasting  #: it goes on without a listener
        self.room = WINDOW if n is not None else 0  #: output that the listener can take
        self.closed = False
        self._inp = inp  #: -1: closed
        self._outs = outs  #: descriptor → stream
        self._watched: dict[int, int] = {}
        self._input = bytearray()
        self._input_ends = False
        self._taken = 0  #: bytes of input that were consumed and not yet reported
        self._exit: tuple[int | None, int | None] | None = None
        self._after_exit = _AFTER_EXIT
        #: Of a lasting one: output that the listener has not acknowledged, and where it begins.
        self._tail = bytearray()
        self._tail_at = 0
        self.continues = False  #: it goes on where an earlier runner was; the next listener knows where
        self._sent = 0

    # -------------------------------------------------------------- from the process

    def ready(self, fd: int, events: int) -> None:
        """Something can be read or written."""
        if self.terminal is not None and events & select.EPOLLHUP:
            self._close_input()  # no program is left to read it
        if events & select.EPOLLOUT and fd == self._inp:
            self._write()
        if events & ~select.EPOLLOUT and fd in self._outs:
            self._read(fd)
        elif events & (select.EPOLLERR | select.EPOLLHUP) and fd == self._inp:
            self._write()
        if self._inp < 0:
            self._write()  # what is left of the input
        self._settle()

    def _may_read(self) -> bool:
        if self.n is not None:
            return self.room > 0
        return self.lasting and len(self._tail) < KEEP

    def _read(self, fd: int) -> bool:
        """Take one piece; False if there is nothing now."""
        most = self.room if self.n is not None else KEEP - len(self._tail)
        if most <= 0:
            return False
        try:
            data = os.read(fd, min(PIECE, most))
        except BlockingIOError:
            return False
        except OSError:
            data = b""  # no program has the terminal open any more
        if not data:
            self._end_of(fd)
            return False
        if self._exit is not None:
            self._after_exit -= len(data)
        if self.lasting:
            self._tail += data
            self._send_tail()
        elif self.n is not None:
            self.room -= len(data)
            self._tell(ChannelData(self.n, self._outs[fd], data))
        return True

    def _end_of(self, fd: int) -> None:
        stream = self._outs.pop(fd)
        self._unwatch(fd)
        if self.terminal is not None:
            self._close_input()  # no program is left to read it
            self._write()
            return
        os.close(fd)
        if self.n is not None:
            self._tell(ChannelData(self.n, stream, b""))

    def _send_tail(self) -> None:
        while self.n is not None and self.room > 0 and self._sent < self._tail_at + len(self._tail):
            at = self._sent - self._tail_at
            piece = bytes(self._tail[at : at + min(PIECE, self.room)])
            self.room -= len(piece)
            self._sent += len(piece)
            self._tell(ChannelData(self.n, 1, piece))

    # -------------------------------------------------------------- to the process

    def put(self, data: bytes) -> None:
        """Input. An empty piece is its end."""
        if not data:
            if self.terminal is not None:
                self._input += self.terminal.eof()
            else:
                self._input_ends = True
        else:
            if self.terminal is not None:
                self.terminal.typed(data)
            self._input += data
        self._write()
        self._settle()

    def _write(self) -> None:
        while self._input and self._inp >= 0:
            try:
                written = os.write(self._inp, self._input[:PIECE])
            except BlockingIOError:
                break
            except OSError:  # it does not read any more
                self._close_input()
                break
            del self._input[:written]
            self._took(written)
        if self._inp < 0 and self._input:
            self._took(len(self._input))
            self._input.clear()
        if self._input_ends and not self._input:
            self._close_input()

    def _took(self, size: int) -> None:
        self._taken += size
        if self._taken >= _CREDIT and self.n is not None:
            self._tell(ChannelCredit(self.n, self._taken))
            self._taken = 0

    def _close_input(self) -> None:
        if self._inp >= 0:
            if self.terminal is None:
                self._unwatch(self._inp)
                os.close(self._inp)
            self._inp = -1

    # -------------------------------------------------------------- the listener

    def welcome(self) -> None:
        """Tell the listener that it can begin."""
        if self.n is not None:
            self._tell(ChannelCredit(self.n, WINDOW))
        self._settle()

    def credit(self, size: int) -> None:
        """The listener has taken so much."""
        self.room = min(WINDOW, self.room + max(0, size))
        if self.lasting:
            self._forget(self._tail_at + size)
            self._send_tail()
        self._settle()

    def _forget(self, until: int) -> None:
        gone = min(max(0, until - self._tail_at), len(self._tail))
        del self._tail[:gone]
        self._tail_at += gone

    def attach(self, n: int, *, seen: int) -> None:
        """Give a lasting one a listener that has `seen` this much of the output. The previous one is detached."""
        if self.n is not None:
            self._tell(ChannelEnd(self.n, message="it was attached somewhere else"))
        self.n, self.room, self._taken = n, WINDOW, 0
        if self.continues:
            self.continues, self._tail_at = False, seen
        self._forget(seen)
        self._sent = self._tail_at
        self._input.clear()
        self.welcome()
        self._send_tail()
        self._settle()

    def detach(self) -> None:
        """The listener was lost."""
        self.n = None
        self._settle()

    # -------------------------------------------------------------- the end

    def exited(self, exit_code: int | None, signal: int | None) -> None:
        """The process has ended. What it wrote before is still sent, then the end."""
        self._exit = (exit_code, signal)
        self._settle()

    def rest(self) -> bytes:
        """The output of a lasting one that no listener has received. Its processes are gone."""
        for fd in list(self._outs):
            while len(self._tail) < 2 * KEEP and fd in self._outs and self._read_unheard(fd):
                pass
        return bytes(self._tail)

    def _read_unheard(self, fd: int) -> bool:
        try:
            data = os.read(fd, PIECE)
        except OSError:
            return False
        self._tail += data
        return bool(data)

    def _settle(self) -> None:
        """See to what follows from all of this: the end, or what to wait for."""
        if self.closed:
            return
        if self._exit is not None and self._drained():
            if self.n is not None:
                self._tell(ChannelEnd(self.n, *self._exit))
            self.close()
            return
        reads = self._may_read()
        for fd in list(self._outs):
            self._watch(fd, reads=reads, writes=bool(self._input) and fd == self._inp)
        if self._inp >= 0 and self._inp not in self._outs:
            self._watch(self._inp, reads=False, writes=bool(self._input))

    def _drained(self) -> bool:
        """Has all been sent that was written before the end? Sends what there is room for."""
        if self.lasting:
            self._send_tail()
            return self.n is None or self._sent >= self._tail_at + len(self._tail)
        for fd in list(self._outs):
            while self._after_exit > 0:
                if not self._may_read():
                    return self.n is None
                if not self._read(fd):
                    break
        return True

    def close(self) -> None:
        """Let go of everything. The process, if there still is one, is hung up on."""
        if self.closed:
            return
        self.closed = True
        self.n = None
        for fd in list(self._watched):
            self._unwatch(fd)
        self._close_input()
        if self.terminal is not None:
            self.terminal.close()
        else:
            for fd in self._outs:
                os.close(fd)
        self._outs.clear()

    def _watch(self, fd: int, *, reads: bool, writes: bool) -> None:
        wanted = (select.EPOLLIN if reads else 0) | (select.EPOLLOUT if writes else 0)
        before = self._watched.get(fd, 0)
        if wanted == before:
            return
        if not wanted:
            self._unwatch(fd)  # else a hang-up would be reported again and again
            return
        if before:
            self._poll.modify(fd, wanted)
        else:
            self._poll.register(fd, wanted)
        self._watched[fd] = wanted
        self._registry[fd] = self

    def _unwatch(self, fd: int) -> None:
        if self._watched.pop(fd, 0):
            self._poll.unregister(fd)
            self._registry.pop(fd, None)
