"""Takes the database of a home into a deployment: the home's own, or a new one of which it becomes a copy."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from rota.errors import NotFound
from rota.store.sqlite import page_sums
from rota.store.sqlite.database import (
    DATABASE,
    check_closed,
    check_file,
    check_log,
    check_version,
    damaged,
    deployment_in,
)
from rota.store.sqlite.restore import mark_leases


class SqliteAdopting:
    """An `Adopting`: the database of a home, whose lock the caller holds."""

    def __init__(self, home: Path) -> None:
        """Raises `NotFound`, `StoreRefused` or `OSError`."""
        self._home = home
        self._path = home / DATABASE
        if not os.path.lexists(self._path):
            raise NotFound(f"there is no database in {home}", hint="is ROTA_HOME (or --home) the right one?")
        check_file(self._path)
        check_log(home)
        with self._damage():
            uri = f"file:{quote(str(self._path))}?mode=rw"
            self._database = sqlite3.connect(uri, uri=True, isolation_level=None)
        try:
            with self._damage():
                check_version(self._database, self._path)
                self.deployment = deployment_in(self._database)
        except BaseException:
            self.close()
            raise

    def check_unchanged(self) -> None:
        check_closed(self._home)

    def accept_changes(self) -> None:
        page_sums.forget(self._home)

    def make_copy(self, *, deployment: str, at: str, origin: str, kind: str) -> list[int]:
        with self._damage():
            return mark_leases(self._database, at=at, origin=origin, kind=kind, facts={"deployment": deployment})

    def close(self) -> None:
        self._database.close()

    @contextlib.contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise damaged(self._path, error) from None
