"""Backs up the store of a home to a new file.

The store writes its copy under a temporary name. It is synced, and only then renamed: a killed process may leave
the temporary file, but never a partial backup under the final name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from rota.errors import BadInput
from rota.home import Home
from rota.store.base import Progress, Store
from rota.store.home.directories import MARKER, cannot_write, sync_directory, sync_file
from rota.store.opening import closed_store, default_url, is_backup

_SIDE_FILES: Final = ("-wal", "-shm", "-journal")


class Backup(Struct, frozen=True):
    """A finished backup."""

    path: str
    bytes: int
    jobs: int
    generation: int  #: which start of the manager it is from


def nothing_to_tell(_share: float) -> None:
    """Ignores progress."""


def back_up(
    home: Path,
    target: str,
    *,
    force: bool,
    store: Store | None = None,
    url: str = "",
    progress: Progress = nothing_to_tell,
) -> Backup:
    """Copy the store of a home to a new file. Blocks. `store`: open, and goes on being written to. Without it the
    caller holds the lock of the home, and `url` says where its store is if not in the usual place.

    Raises what is wrong with `target`, `NotFound` if there is no database, or what `progress` raises; then
    nothing is left behind.
    """
    path = _checked(home, target, force=force)
    source = closed_store(url or default_url(home)) if store is None else store
    with _draft_of(path) as draft:
        try:
            made = source.back_up(draft, target=path, progress=progress)
            size = sync_file(draft)
            progress(1.0)
            give_name(draft, path, force=force)
        except OSError as error:
            raise cannot_write(path, error) from None
    return Backup(str(path), size, made.jobs, made.generation)


def _checked(home: Path, target: str, *, force: bool) -> Path:
    """The path for the copy, if it may be used. What cannot be known yet is checked later."""
    if not target or "\0" in target or not os.path.isabs(target):
        raise BadInput(f"{target!r} is not an absolute path of a file", hint="give one, like /backups/rota.db")
    path = Path(os.path.normpath(target))
    try:
        inside = path.parent.resolve().is_relative_to(home.resolve())
        if path.is_dir():
            raise BadInput(f"{path} is a directory", hint="give the name of a file in it")
        if not path.parent.is_dir():
            raise BadInput(f"there is no directory {path.parent}", hint="make it first, or choose another")
        exists = os.path.lexists(path)
    except OSError as error:
        raise BadInput(f"{path} cannot be used: {error.strerror}", hint="choose another name") from None
    if inside:
        raise BadInput(f"{home} is the deployment's own directory", hint="choose another one for backups")
    if exists and not path.is_file():
        raise BadInput(f"{path} is not a file", hint="choose another name")
    if exists and not force:
        raise _is_there(path)
    if exists:
        _check_replaceable(path)
    return path


def _check_replaceable(path: Path) -> None:
    """Raises `BadInput` unless the path is free or holds an empty file or a Rota database: a user with the right
    to make backups must not be able to overwrite other files."""
    if path == Home(path.parent).database and (path.parent / MARKER).exists():
        raise BadInput(f"{path} is the database of a deployment", hint="choose another name")
    try:
        # Do not follow a symbolic link or block on a pipe.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise BadInput(f"{path} is not replaced: {reason}", hint="choose another name") from None
    try:
        regular = stat.S_ISREG(os.fstat(handle).st_mode)
        head = os.pread(handle, 100, 0) if regular else b""
    finally:
        os.close(handle)
    if not regular or (head and not is_backup(head)):
        raise BadInput(
            f"{path} is not a backup of Rota, and is not replaced", hint="choose another name, or remove it first"
        )


def _is_there(path: Path) -> BadInput:
    return BadInput(f"{path} exists already", hint="choose another name, or replace it with --force")


@contextlib.contextmanager
def _draft_of(path: Path) -> Iterator[Path]:
    """A new private file beside `path`; removed at the end unless it was renamed."""
    draft = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.partial")
    try:
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise cannot_write(path, error) from None
    try:
        yield draft
    finally:
        for suffix in ("", *_SIDE_FILES):
            with contextlib.suppress(OSError):
                os.unlink(f"{draft}{suffix}")


def give_name(draft: Path, path: Path, *, force: bool) -> None:
    """Rename the finished draft to `path`, durably. Without `force` nothing is ever replaced."""
    if force:
        _check_replaceable(path)  # it may be another file by now
        draft.replace(path)
    else:
        try:
            os.link(draft, path)  # unlike a rename, this fails if the name exists
        except FileExistsError:
            raise _is_there(path) from None
        except OSError:
            if os.path.lexists(path):
                raise _is_there(path) from None
            draft.rename(path)  # a file system without links
        else:
            draft.unlink()
    sync_directory(path.parent)


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def default_name(deployment: str) -> str:
    """`rota-DEPLOYMENT-UTCTIME.db`."""
    return f"rota-{deployment or 'unnamed'}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.db"


def deployment_of(home: Path) -> str:
    """The name of the deployment to which the store of a home belongs. The caller holds the lock of the home."""
    return closed_store(default_url(home)).deployment()
