"""The database of a home that nothing has open."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from rota.store.base import BackedUp, Progress
from rota.store.sqlite import restore
from rota.store.sqlite.adopting import SqliteAdopting
from rota.store.sqlite.backup import copy_database, failure
from rota.store.sqlite.database import DATABASE, check_file, deployment_in


class ClosedSqlite:
    """A `ClosedStore` in `home/rota.db`."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def exists(self) -> bool:
        return restore.database_exists(self._home)

    def deployment(self) -> str:
        path = self._home / DATABASE
        check_file(path)
        try:
            with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True)) as database:
                return deployment_in(database)
        except sqlite3.Error as error:
            raise failure(path, error) from None

    def back_up(self, draft: Path, *, target: Path, progress: Progress) -> BackedUp:
        return copy_database(self._home, draft, target=target, in_use=False, progress=progress)

    def check_backup(self, file: Path) -> None:
        restore.check_backup(file)

    def restoring(self, file: Path) -> restore.SqliteRestoring:
        return restore.SqliteRestoring(self._home, file)

    def adopting(self) -> SqliteAdopting:
        return SqliteAdopting(self._home)
