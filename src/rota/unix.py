"""Unix sockets at paths of any length: the kernel takes 107 bytes of a path, and a descriptor's is shorter."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Final

#: The longest path a Unix socket can have.
MAX_SOCKET_PATH: Final = 107


@contextlib.contextmanager
def short(path: str) -> Iterator[str]:
    """A name for `path` that fits into the address of a socket, good within the context. Raises `OSError`."""
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        yield path
        return
    place = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{place}/{os.path.basename(path)}"
    finally:
        os.close(place)
