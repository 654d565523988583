"""Connect this process's terminal, or its standard streams, to a channel into a job.

The state of the terminal is always restored.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Final

from rota.cli.render.printing import print_err
from rota.client.session import Disconnected
from rota.errors import NotDone
from rota.wire import client_messages as m
from rota.wire.failures import error_of

if TYPE_CHECKING:
    from rota.client.channels import FromChannel
    from rota.client.live_channel import LiveChannel

_ESCAPE: Final = 0x7E  # ~
_NEWLINES: Final = b"\r\n"
#: Signals that are forwarded to a command without a terminal.
_PASSED_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def window() -> tuple[int, int]:
    """Rows and columns of our terminal."""
    for fd in (0, 1, 2):
        with contextlib.suppress(OSError):
            size = os.get_terminal_size(fd)
            if size.lines and size.columns:
                return size.lines, size.columns
    return 24, 80


class EscapeSequence:
    """Detects `~.` at the beginning of a line of input."""

    def __init__(self) -> None:
        self._fresh = True
        self._held = False
        self.left = False  #: it was typed

    def passed(self, data: bytes) -> bytes:
        """The bytes to send on."""
        out = bytearray()
        for byte in data:
            if self._held:
                self._held = False
                if byte == ord("."):
                    self.left = True
                    break
                if byte != _ESCAPE:
                    out.append(_ESCAPE)
            elif byte == _ESCAPE and self._fresh:
                self._held = True
                continue
            out.append(byte)
            self._fresh = byte in _NEWLINES
        return bytes(out)


class HungUp(Exception):
    """The user hung up."""


@contextlib.contextmanager
def raw_terminal(*, on: bool) -> Iterator[None]:
    """Put the terminal into raw mode, so that every key goes to the job; restore it afterwards."""
    if not on or not os.isatty(0):
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(0)
    try:
        tty.setraw(0, termios.TCSADRAIN)
        yield
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(0, termios.TCSADRAIN, before)


class SignalQueue:
    """Context manager that queues signals, with a file descriptor that becomes readable when one arrives."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        self._numbers = numbers
        self._came: list[int] = []
        self._before: dict[int, object] = {}
        self.told, self._tell = socket.socketpair()

    def __enter__(self) -> SignalQueue:
        for end in (self.told, self._tell):
            end.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._tell.fileno(), warn_on_full_buffer=False)
        for number in self._numbers:
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self.told.close()
        self._tell.close()

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._came.append(number)

    def take(self) -> list[int]:
        with contextlib.suppress(BlockingIOError):
            while self.told.recv(4096):
                pass
        came, self._came = self._came, []
        return came


class ChannelBridge:
    """Copies between a channel and the standard streams until one of them ends."""

    def __init__(
        self, channel: LiveChannel, *, tty: bool, stdin: bool = True, opened: Callable[[], None] | None = None
    ) -> None:
        self._channel = channel
        self._on_opened = opened
        self._tty = tty
        self._escape = EscapeSequence() if tty and os.isatty(0) else None
        self._listening = stdin
        self._ends_input = stdin
        self._opened = False
        self._leaves_on: tuple[int, ...] = ()

    def run(self) -> m.ChannelEnd:
        """Run until the end of the channel, which is returned.

        Raises `Disconnected`, `HungUp`, or why it was not opened.
        """
        heard = (signal.SIGWINCH, signal.SIGTERM) if self._tty else _PASSED_ON
        self._leaves_on = (signal.SIGHUP, signal.SIGTERM) if self._tty else (signal.SIGHUP,)
        with SignalQueue((*heard, signal.SIGHUP)) as signals, contextlib.ExitStack() as stack:
            while True:
                end = self._take()
                if end is not None:
                    return end
                if self._opened and self._tty:
                    stack.enter_context(raw_terminal(on=self._escape is not None))
                    self._tty = False  # it is raw now
                waits = [self._channel.fileno(), signals.told.fileno()]
                if self._opened and self._listening and self._channel.room > 0:
                    waits.append(0)
                ready, _, _ = select.select(waits, [], [], 0 if self._channel.pending else None)
                for number in signals.take():
                    self._signalled(number)
                if 0 in ready:
                    self._typed()

    def _take(self) -> m.ChannelEnd | None:
        """Handle the messages that have arrived."""
        while self._channel.pending or select.select([self._channel.fileno()], [], [], 0)[0]:
            match message := self._poll():
                case None:
                    return None
                case m.ChannelCredit():
                    if not self._opened:
                        self._opened = True
                        if self._on_opened is not None:
                            self._on_opened()
                        if not self._ends_input and not self._tty:
                            self._channel.send(b"")
                        return None  # the terminal must be raw before any output is shown on it
                case m.ChannelData(_, stream, data):
                    self._write(2 if stream == m.STDERR else 1, data)
                    self._channel.took(len(data))
                case m.ChannelEnd():
                    return message
                case m.Failure():
                    raise error_of(message)
        return None

    def _poll(self) -> FromChannel | None:
        try:
            return self._channel.poll(0.001)
        except NotDone:
            if not self._opened:
                raise
            raise Disconnected from None  # the command has begun: that nothing was done would be wrong

    def _write(self, fd: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(fd, view) :]
            except BlockingIOError:  # others made it so
                select.select([], [fd], [])
            except BrokenPipeError:
                self._channel.end()
                raise

    def _typed(self) -> None:
        try:
            data = os.read(0, min(m.PIECE, self._channel.room))
        except OSError:
            data = b""
        if not data:
            self._listening = False
            if self._escape is not None:
                self._hang_up()
            self._channel.send(b"")
            return
        if self._escape is not None:
            data = self._escape.passed(data)
        if data:
            self._channel.send(data)
        if self._escape is not None and self._escape.left:
            self._hang_up()

    def _signalled(self, number: int) -> None:
        if number in self._leaves_on:
            self._hang_up()
        elif number == signal.SIGWINCH:
            self._channel.resize(*window())
        else:
            self._channel.signal(number)

    def _hang_up(self) -> None:
        self._channel.end()
        raise HungUp


def exit_status(end: m.ChannelEnd) -> int:
    """The exit status as a shell reports it. Raises `EnvironmentFault` if the channel failed, not the command."""
    from rota.client.channels import failure

    if end.lost or (end.exit_code is None and end.signal is None):
        raise failure(end)
    if end.message:
        print_err(f"rota: {end.message}")
    return end.exit_code if end.exit_code is not None else 128 + (end.signal or 0)
