"""Free space on the disk of a directory.

A few more records often fit into a block that a file has already. So a full disk shows in a failed write only
after a while, and by then jobs have started whose ends cannot be written.
"""

from __future__ import annotations

import os
from errno import ENOSPC


def left(directory: str) -> int:
    """Bytes that this process could still write there. Raises `OSError`."""
    found = os.statvfs(directory)
    return (found.f_bavail if os.geteuid() else found.f_bfree) * found.f_frsize


def demand(directory: str, least: int) -> None:
    """Raises `OSError` unless this many bytes are left."""
    if left(directory) < least:
        raise OSError(ENOSPC, os.strerror(ENOSPC))
