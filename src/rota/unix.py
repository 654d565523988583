"""Unix sockets at paths of any length: a path over the kernel's 107 bytes is reached through a descriptor."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Final

#: The longest path a Unix socket can have.
MAX_SOCKET_PATH: Final = 107


@contextlib.contextmanager
def short(path: str) -> Iterator[str]:
    """Context manager for an equivalent of `path` that is short enough for a socket address. Raises `OSError`."""
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        yield path
        return
    place = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{place}/{os.path.basename(path)}"
    finally:
        os.close(place)
