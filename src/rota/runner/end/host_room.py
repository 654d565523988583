"""How much memory and disk is left on this host, within the limits of the control groups around this process.

Only measures. Cheap enough to be called every second.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from rota.runner.contain import hierarchies
from rota.runner.contain.cgroup import LIMIT_FILES


class HostRoom(NamedTuple):
    """Free and total bytes."""

    left: int
    total: int


class Memory:
    """The memory of this host and of every limited control group around this process."""

    def __init__(self) -> None:
        self._groups = list(_limited())

    def __call__(self) -> HostRoom:
        """The scarcest: the one with the smallest share left."""
        return min([_host(), *(group.room() for group in self._groups)], key=_share)


def memory_at_most() -> int:
    """The most bytes that this process and its children can have together."""
    return min([_host().total, *(group.limit for group in _limited())])


def _share(room: HostRoom) -> float:
    return room.left / room.total if room.total else 1.0


def _host() -> HostRoom:
    total = left = 0
    with open("/proc/meminfo", "rb") as file:
        for line in file:
            if line.startswith(b"MemTotal:"):
                total = int(line.split()[1]) * 1024
            elif line.startswith(b"MemAvailable:"):
                left = int(line.split()[1]) * 1024
                break
        else:
            left = total  # an old kernel without MemAvailable: never full
    return HostRoom(left, total)


class _Limited:
    """A control group with a memory limit."""

    def __init__(self, path: str, version: int, limit: int) -> None:
        self._usage = f"{path}/{'memory.current' if version == 2 else 'memory.usage_in_bytes'}"
        self._stat = f"{path}/memory.stat"
        self._cached = b"inactive_file " if version == 2 else b"total_inactive_file "
        self.limit = limit

    def room(self) -> HostRoom:
        try:
            with open(self._usage, "rb") as file:
                used = int(file.read())
            if used > self.limit * 0.9:  # the kernel can reclaim cached files
                used -= self._reclaimable()
        except (OSError, ValueError):
            return HostRoom(self.limit, self.limit)
        return HostRoom(max(0, self.limit - used), self.limit)

    def _reclaimable(self) -> int:
        with open(self._stat, "rb") as file:
            for line in file:
                if line.startswith(self._cached):
                    return int(line.split()[1])
        return 0


def _limited() -> Iterator[_Limited]:
    total = _host().total
    for version, own in hierarchies.candidates("memory"):
        path = own
        while os.path.exists(f"{path}/cgroup.procs"):
            try:
                with open(f"{path}/{LIMIT_FILES[version]}", encoding="ascii") as file:
                    text = file.read().strip()
            except OSError:
                text = ""
            if text.isdigit() and 0 < int(text) < total:
                yield _Limited(path, version, int(text))
            path = os.path.dirname(path)


def disk(path: str) -> HostRoom:
    """Of the file system of a directory. Raises `OSError`."""
    found = os.statvfs(path)
    return HostRoom(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)
