"""Make the names in a directory durable."""

from __future__ import annotations

import os
from pathlib import Path


def sync_directory(path: Path) -> None:
    """What was made, renamed or removed in it stays so. Raises `OSError`."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
