"""Files that only their owner may read, such as keys and tokens: written atomically, checked before reading."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from rota.errors import Denied, EnvironmentFault

#: No key or token file is larger; a larger one is not ours.
MAX_BYTES: Final = 4 * 1024 * 1024


def make_directory(path: Path) -> None:
    """Create the directory if needed, and make it private to its owner (mode 0700)."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o700)
    except OSError as error:
        raise EnvironmentFault(
            f"cannot use {path}: {error.strerror}", hint="make it a directory that belongs to you"
        ) from None


def write(path: Path, data: bytes) -> None:
    """Replace the file atomically and durably, with mode 0600. A crash leaves the old or the new content.

    A directory has one writer (the manager holds its lock), so the temporary name is fixed, and a leftover of a
    crash is overwritten.
    """
    draft = path.with_name(f".{path.name}.new")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(handle, 0o600)
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(draft, path)
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise EnvironmentFault(
            f"cannot write {path}: {error.strerror}", hint="check the permissions and the free disk"
        ) from None


def read(path: Path) -> bytes:
    """The content of a private file.

    Raises `FileNotFoundError` when there is none, `Denied` when others may read or change it, and
    `EnvironmentFault` when it cannot be read. All checks are made on the open file, not on its name.
    """
    try:
        # Non-blocking, because a FIFO in its place must not hang us.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise EnvironmentFault(f"cannot read {path}: {error.strerror}", hint="check its permissions") from None
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise EnvironmentFault(f"{path} is not a regular file", hint="put the file itself there")
        if facts.st_mode & 0o077:
            raise Denied(f"{path} may be read or changed by others", hint=f"chmod 600 {path}")
        if facts.st_uid not in (os.geteuid(), 0):
            raise Denied(f"{path} belongs to another user", hint="use a file of your own")
        if facts.st_size > MAX_BYTES:
            raise EnvironmentFault(f"{path} is too large to be what it should be", hint="restore it")
        with open(handle, "rb", closefd=False) as file:
            return file.read(MAX_BYTES)
    except OSError as error:
        raise EnvironmentFault(f"cannot read {path}: {error.strerror}", hint="check the disk") from None
    finally:
        os.close(handle)
