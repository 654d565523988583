"""Whose home is this? `identity.json` names the deployment, and path and inode of the directory it was made for.

A copy of a home carries the file along, which thus says that it was made for another directory. While the
original is still there, a manager that starts in the copy would run the same jobs again and answer for attempts
that are not its own: it is refused until somebody says which of the two it is. Device numbers are not recorded:
they change from boot to boot.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from rota.errors import StoreRefused
from rota.store.home.directories import put_whole

log = logging.getLogger("rota.store")

NAME: Final = "identity.json"
_MAX_BYTES: Final = 64 << 10
_ADOPT: Final = (
    "say what it is: 'rota manager adopt --moved' if it is the only one now, 'rota manager adopt --copy' if the"
    " other one goes on"
)


class Identity(Struct, frozen=True):
    """What the file says."""

    id: str  #: the deployment, as in `meta.deployment` of its database
    path: str = ""
    inode: int = 0


def read(home: Path) -> Identity | None:
    """The identity of a home; None if it has none, or none that can be read. Raises `PermissionError`."""
    try:
        # Another's file is looked at: no link is followed and no pipe waited for.
        handle = os.open(home / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except PermissionError:
        raise
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        found = msgspec.json.decode(os.read(handle, _MAX_BYTES), type=Identity)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    finally:
        os.close(handle)
    return found if found.id else None


def write(home: Path, id: str) -> None:
    """Let this directory be the home of the deployment `id`. Raises `OSError`.

    Not synced: a home that has lost the file gets a new one.
    """
    here = Identity(id, str(home.resolve()), home.stat().st_ino)
    put_whole(home / NAME, msgspec.json.encode(here) + b"\n")


def settled(home: Path, deployment: str) -> str:
    """The deployment whose home this is, for a manager that starts in it and holds its lock.

    `deployment`: what its database says, if anything. A home without an identity gets one, and one that was
    moved is given its new path. Raises `StoreRefused` for a copy, and for the database of another deployment.
    """
    found = read(home)
    if found is not None:
        if why := contradiction(home, found, deployment):
            raise why
        if _is_here(home, found):
            return found.id
        log.info("this home was moved: it was %s", found.path)
    id = deployment or (found.id if found is not None else os.urandom(8).hex())
    try:
        write(home, id)
    except OSError as error:  # a full disk, most likely: no reason to keep jobs from running
        log.warning("the identity of this home cannot be written: %s", error)
    return id


def contradiction(home: Path, found: Identity, deployment: str) -> StoreRefused | None:
    """Why no manager may start in a home with this identity, if none may."""
    if deployment and deployment != found.id:
        return StoreRefused(
            f"the database in {home} is that of deployment {deployment}, and this is the home of {found.id}",
            hint=f"put its own database back, or {_ADOPT}",
            code="foreign",
        )
    if _is_here(home, found):
        return None
    there = Path(found.path)
    if there == home.resolve():
        return StoreRefused(
            f"{home} is a copy: the directory for which its {NAME} was written was another one",
            hint=_ADOPT,
            code="copied",
        )
    try:
        if os.path.samefile(there, home):
            return None  # another name of the same directory
        original = read(there)
    except PermissionError:
        return StoreRefused(
            f"{home} was copied or moved from {there}, and whether that is still there cannot be seen",
            hint=_ADOPT,
            code="copied",
        )
    except OSError:
        return None
    if original is None or original.id != found.id:
        return None
    return StoreRefused(
        f"{home} is a copy of {there}, which is still there: its jobs would run twice", hint=_ADOPT, code="copied"
    )


def _is_here(home: Path, found: Identity) -> bool:
    return found.path == str(home.resolve()) and found.inode == home.stat().st_ino
