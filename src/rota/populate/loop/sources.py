"""The sources of all tables: one process for each interpreter."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from typing import Protocol

from rota.populate.batch import spec_of
from rota.populate.config.configuration import Configuration, Table
from rota.populate.source.base import Source
from rota.populate.source.desk import Desk, DeskSource


def interpreter_of(table: Table, directory: str) -> str:
    """The interpreter that a table needs; a relative path begins where the configuration is."""
    if not table.python:
        return sys.executable
    if os.sep in table.python:
        return os.path.join(directory, table.python)
    return shutil.which(table.python) or table.python


class AnySources(Protocol):
    """Tables with their sources, which are closed together."""

    def __iter__(self) -> Iterator[tuple[Table, Source]]: ...

    def close(self) -> None: ...


class Sources:
    """Of one configuration."""

    def __init__(self, configuration: Configuration, directory: str) -> None:
        self._desks: dict[str, Desk] = {}
        self._tables: dict[str, tuple[Table, Source]] = {}
        for table in configuration.tables:
            python = interpreter_of(table, directory)
            if python not in self._desks:
                self._desks[python] = Desk(python, directory=directory, settings=configuration.database)
            spec = {**spec_of(table), "directory": directory}
            self._tables[table.name] = table, DeskSource(self._desks[python], spec)

    def __iter__(self) -> Iterator[tuple[Table, Source]]:
        yield from self._tables.values()

    def close(self) -> None:
        """End their processes, and with them their connections and locks."""
        for desk in self._desks.values():
            desk.close()
