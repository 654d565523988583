"""Replaces files of a home atomically, and makes directory entries durable."""

from __future__ import annotations

import os
from pathlib import Path


def sync_directory(path: Path) -> None:
    """Make creations, renames and removals in the directory durable. Raises `OSError`."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def put_whole(path: Path, data: bytes) -> None:
    """Replace a private file atomically: a reader sees the old content or the new. Not synced. Raises
    `OSError`."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    draft.replace(path)
