"""The limit of open descriptors: raised when it is reached, and checked before descriptors are received, because
those that do not fit are lost.
"""

from __future__ import annotations

import os
import resource


def raise_limit() -> None:
    """Many seats need more than the usual soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, soft * 4), hard))


def make_room(count: int) -> None:
    """Raise the limit for this many more descriptors, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = len(os.listdir("/proc/self/fd")) + count
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * wanted), hard))


def ensure_room(count: int) -> None:
    """Make sure that this many more can be opened. Raises `OSError`."""
    try:
        _try(count)
    except OSError:
        raise_limit()
        _try(count)


def _try(count: int) -> None:
    opened: list[int] = []
    try:
        for _ in range(count):
            opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    finally:
        for fd in opened:
            os.close(fd)
