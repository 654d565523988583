"""Settles the identity of a home in doubt: it was moved, or it is a copy of a home still in use.

A copy becomes a deployment of its own. Everything that ties it to the original is removed first, and its new
identity is written last. Until then no manager starts in it, so an interrupted command can simply be repeated.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import Final

from msgspec import Struct

from rota.errors import BadInput, EnvironmentFault, NotFound
from rota.store.home import identity
from rota.store.home.backup import utc_now
from rota.store.home.home_lock import HomeLock
from rota.store.opening import closed_store, default_url

#: What a copy must not inherit: credentials, and the original's runners with their attempts.
_OF_THE_ORIGINAL: Final = ("tls", "tokens", "runners")
#: Where clients look for the original's manager, and its ports.
_TRACES: Final = ("manager.json", "manager.sock", "tls.port", "http.port")


class Adopted(Struct, frozen=True):
    """The identity of a home after adoption."""

    id: str
    before: str  #: its previous deployment; empty: unknown
    doubted: list[int]  #: jobs whose attempts belong to the original


def adopt(home: Path, *, copy: bool, url: str = "") -> Adopted:
    """Make the directory the home of its own deployment or, with `copy`, of a new one. No manager may be running.
    `url`: where the store of the home is, if not in the usual place.

    Raises `StoreRefused`, `NotFound` or `EnvironmentFault`.
    """
    store = closed_store(url or default_url(home))
    if not store.exists():
        raise NotFound(f"there is no database in {home}", hint="is ROTA_HOME (or --home) the right one?")
    lock = HomeLock(home)
    try:
        with closing(store.adopting()) as adopting:
            before, doubted, found = adopting.deployment, [], identity.read(home)
            if found is None or found.id == before:
                adopting.check_unchanged()  # else another's was put there, of which nothing is written down
            adopting.accept_changes()
            if copy:
                id = os.urandom(8).hex()
                _let_go(home)
                origin = f"the home of deployment {before}, of which this one is a copy"
                doubted = adopting.make_copy(deployment=id, at=utc_now(), origin=origin, kind="a copied home")
            else:
                id = before or (found.id if found else os.urandom(8).hex())
        for name in _TRACES[:2]:
            (home / name).unlink(missing_ok=True)
        identity.write(home, id)
    except OSError as error:
        raise EnvironmentFault(f"{home} cannot be changed: {error.strerror}", hint="check the disk") from None
    finally:
        lock.release()
    return Adopted(id, before, doubted)


def _let_go(home: Path) -> None:
    """Remove what belongs to the original. Raises `BadInput` if a runner is at work in this home."""
    for runner in (home / "runners").glob("*/lock"):
        with contextlib.suppress(FileNotFoundError), runner.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise BadInput(
                    f"the runner {runner.parent.name} is at work in {home}: it is no mere copy",
                    hint="wait for its jobs, or use --moved",
                ) from None
    for name in _OF_THE_ORIGINAL:
        with contextlib.suppress(FileNotFoundError):
            for each in (home / name).iterdir():
                if each.is_dir() and not each.is_symlink():
                    shutil.rmtree(each)
                else:
                    each.unlink()
    for name in _TRACES:
        (home / name).unlink(missing_ok=True)
