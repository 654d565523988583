"""Send signals to exactly the process that is meant, even where its number has been reused."""

from __future__ import annotations

import os
import signal
from collections.abc import Container

from rota.launcher import procfs


def send(pid: int, start_time: int, number: int, *, slack: int = 0) -> bool:
    """Signal this very process; False if it is gone.

    A descriptor of the process is taken first and its start time compared after, so a reused pid cannot be hit.
    """
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not procfs.lives(pid, start_time, slack=slack):
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def ask_to_end(processes: list[procfs.Process]) -> None:
    """TERM, then CONT so that stopped processes receive it."""
    for seen in processes:
        if send(seen.pid, seen.start_time, signal.SIGTERM):
            send(seen.pid, seen.start_time, signal.SIGCONT)


def kill(processes: list[procfs.Process]) -> None:
    """KILL each of them."""
    for seen in processes:
        send(seen.pid, seen.start_time, signal.SIGKILL)


def signal_sessions(leaders: Container[int], number: int) -> None:
    """Signal all processes of these sessions, then CONT so that stopped ones receive it."""
    for seen in procfs.table().values():
        if seen.session in leaders and seen.alive and send(seen.pid, seen.start_time, number):
            send(seen.pid, seen.start_time, signal.SIGCONT)
