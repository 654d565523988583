"""Which deployment a home belongs to. `identity.json` names it, with the path and inode of its directory.

A copy of a home contains the same file, which then names another directory. A manager started in the copy would
run the original's jobs again and answer for its attempts. So it is refused while the original exists, until `rota`
is told which of the two this is. Device numbers are not recorded: they change from boot to boot.
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
    """The content of the file."""

    id: str  #: the deployment, as in `meta.deployment` of its database
    path: str = ""
    inode: int = 0


def read(home: Path) -> Identity | None:
    """The identity of a home; None if it is missing or unreadable. Raises `PermissionError`."""
    try:
        # The file may be another user's: do not follow a link or block on a pipe.
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
    """Make this directory the home of the deployment `id`. Raises `OSError`.

    Not synced: a home that has lost the file gets a new one.
    """
    here = Identity(id, str(home.resolve()), home.stat().st_ino)
    put_whole(home / NAME, msgspec.json.encode(here) + b"\n")


def settled(home: Path, deployment: str) -> str:
    """The deployment of this home, for a manager that starts in it and holds its lock.

    `deployment`: the name in its database, if any. A home without an identity gets one, and the path of a moved
    home is updated. Raises `StoreRefused` for a copy, and for the database of another deployment.
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
    """The reason why no manager may start in a home with this identity, if there is one."""
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
            return None  # another path to the same directory
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
