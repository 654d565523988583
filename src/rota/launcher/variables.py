"""Environment variables of a process, as a vector for `libc.spawn`."""

from __future__ import annotations

from rota.launcher import libc


class Variables:
    """The environment variables of a process, as a vector for `spawn`."""

    __slots__ = ("_vector", "address", "path")

    def __init__(self, entries: list[bytes], path: bytes) -> None:
        self._vector = libc.strings(entries)
        self.address = libc.address(self._vector)  #: of the vector, for `spawn`
        self.path = path

    def entries(self) -> list[bytes]:
        """The present entries."""
        return [entry for entry in self._vector if entry]

    def and_also(self, entries: list[bytes]) -> Variables:
        """A copy with these entries added or replaced."""
        new = {entry.partition(b"=")[0]: entry for entry in entries}
        kept = [entry for entry in self.entries() if entry.partition(b"=")[0] not in new]
        path = new[b"PATH"].partition(b"=")[2] if b"PATH" in new else self.path
        return Variables([*kept, *new.values()], path)

    def value(self, name: bytes) -> bytes:
        """The value of a variable; empty if it is not set."""
        prefix = name + b"="
        found = (entry for entry in self.entries() if entry.startswith(prefix))
        return next(found, prefix).removeprefix(prefix)
