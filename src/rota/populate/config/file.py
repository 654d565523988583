"""The file of a configuration, which may change at any time. A bad one is refused, and the old one stays."""

from __future__ import annotations

import os

from rota.errors import BadInput
from rota.populate.config.configuration import Configuration
from rota.populate.config.reader import load


class ConfigurationFile:
    """What is in force, and what is wrong with what is not."""

    def __init__(self, path: str) -> None:
        """Raises `BadInput` if there is nothing to begin with."""
        self.path = os.path.abspath(path)
        self.error: BadInput | None = None  #: of the file as it is now
        self._seen = self._signature()
        self.current: Configuration = load(self.path)

    @property
    def directory(self) -> str:
        return os.path.dirname(self.path)

    def reload(self) -> bool:
        """Look whether the file has changed; whether another configuration is in force now."""
        seen = self._signature()
        if seen == self._seen:
            return False
        self._seen = seen
        try:
            found = load(self.path)
        except BadInput as error:
            self.error = error
            return False
        self.error = None
        changed, self.current = found != self.current, found
        return changed

    def _signature(self) -> tuple[int, int, int]:
        """Another one for every change; zeros without a file."""
        try:
            found = os.stat(self.path)
        except OSError:
            return 0, 0, 0
        return found.st_mtime_ns, found.st_size, found.st_ino
