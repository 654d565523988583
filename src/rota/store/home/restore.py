"""Replaces the store of a home by a backup. Only on request, and the replaced store is kept."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from rota.errors import BadInput
from rota.home import Home
from rota.store.base import ClosedStore, Found, Restoring
from rota.store.home import identity
from rota.store.home.backup import utc_now
from rota.store.home.directories import cannot_write, sync_directory
from rota.store.home.home_lock import HomeLock
from rota.store.opening import closed_store, default_url


class Restored(Struct, frozen=True):
    """The result of a restore."""

    backup: Found
    kept: str | None  #: where the replaced store is now


class Restoration:
    """A backup, checked and copied into a home, ready to be put in place. Holds the lock of the home."""

    def __init__(self, home: Path, file: Path, *, replace: bool, url: str = "") -> None:
        """Check everything that can be checked. `url`: where the store of the home is, if not in the usual place.

        Raises `BadInput`, `StoreRefused` or `NotFound`.
        """
        self._home = home
        store = closed_store(url or default_url(home))
        store.check_backup(file)
        self._lock = HomeLock(home)
        try:
            self.replaces = store.exists()
            self._restoring = _prepared(home, store, file, may_replace=replace or not self.replaces)
        except BaseException:
            self._lock.release()
            raise
        self.found = self._restoring.found

    def close(self) -> None:
        """Release the lock, and remove the copy if it was not put in place."""
        self._restoring.close()
        self._lock.release()

    def __enter__(self) -> Restoration:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def put_in_place(self, *, pause: bool) -> Restored:
        """Mark the copy as restored and make it the store of the home. The replaced one is kept."""
        try:
            id = self._identity()
            kept = self._restoring.put_in_place(deployment=id, at=utc_now(), pause=pause)
            identity.write(self._home, id)
            sync_directory(self._home)
        except OSError as error:
            raise cannot_write(Home(self._home).database, error) from None
        return Restored(self.found, kept)

    def _identity(self) -> str:
        """A home keeps its deployment, by which its runners know it. A home without one takes that of the
        backup."""
        if found := identity.read(self._home):
            return found.id
        return self._restoring.deployment or os.urandom(8).hex()


def _prepared(home: Path, store: ClosedStore, file: Path, *, may_replace: bool) -> Restoring:
    if not may_replace:
        raise BadInput(f"{home} holds a database already", hint="use another ROTA_HOME, or --replace (it is kept)")
    return store.restoring(file)
