"""Signals to this process, read from a descriptor: no handler runs, nothing is interrupted."""

from __future__ import annotations

import os
import select
import signal

from rota.launcher import libc

_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1)
_IGNORED = (signal.SIGINT, signal.SIGHUP)
_SIGINFO = 128  # bytes of one signal read from a signalfd


class PendingSignals:
    """The end of a child, TERM and USR1."""

    def __init__(self, poll: select.epoll) -> None:
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        self.fd = libc.signal_fd(_SIGNALS)
        poll.register(self.fd, select.EPOLLIN)

    def read(self) -> list[int]:
        """All that are pending."""
        data = os.read(self.fd, 16 * _SIGINFO)
        return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), _SIGINFO)]
