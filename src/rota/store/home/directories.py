"""Replaces files of a home atomically, makes files and directory entries durable, and explains failed writes."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from rota.errors import EnvironmentFault, RotaError, StoreFull

#: A file that says that there is, or was, a store in this home.
MARKER: Final = "deployment"


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


def sync_file(path: Path) -> int:
    """Sync a file and return its size."""
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(handle)
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def cannot_write(path: Path, error: OSError) -> RotaError:
    """Explains a failed write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(f"there is no room for {path}", hint="free some space, or choose another disk")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return EnvironmentFault(
            f"{path} cannot be written: {error.strerror}",
            hint="choose a directory in which the manager's user may write",
        )
    return EnvironmentFault(f"{path} cannot be written: {error.strerror or error}", hint="choose another place")
