"""One control group, which no process can leave by forking. Where it is made is chosen elsewhere.

Only groups made by Rota are ever written to or removed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from typing import Protocol

from rota.plan.site.bitset import spans_of
from rota.runner.log import say

#: The file of a group that limits its memory, by version.
LIMIT_FILES = {1: "memory.limit_in_bytes", 2: "memory.max"}
_PATIENCE_S = 1.0


class _Remover(Protocol):
    def remove(self, path: str) -> None: ...


class ControlGroup:
    """One control group in one hierarchy."""

    __slots__ = ("_tree", "path", "version")

    def __init__(self, path: str, version: int, tree: _Remover | None = None) -> None:
        self.path = path
        self.version = version
        self._tree = tree  #: removes it; None: the kernel's `rmdir`

    def add(self, pid: int) -> bool:
        """Move a process in; False if it is gone or must not be moved."""
        return write(f"{self.path}/cgroup.procs", str(pid))

    def pids(self) -> set[int]:
        """The pids of everything inside, nested groups included."""
        return {int(word) for path in [self.path, *self._below()] for word in read(f"{path}/cgroup.procs").split()}

    def deserted(self) -> bool:
        """Does the kernel report that no living process is inside? (Version 1 never does.)"""
        return self.version == 2 and "populated 0" in read(f"{self.path}/cgroup.events").splitlines()

    def _below(self) -> list[str]:
        """Nested groups, innermost first."""
        try:
            if os.stat(self.path).st_nlink <= 2:  # nearly always
                return []
        except OSError:
            return []
        found = [path for path, _, _ in os.walk(self.path, topdown=False)]
        return found[:-1]

    # -------------------------------------------------------------- hold

    def freeze(self, on: bool) -> bool:
        """Freeze or thaw everything inside; False if that is impossible or takes too long."""
        if self.version == 2:
            return write(f"{self.path}/cgroup.freeze", "1" if on else "0") and self._reached(on)
        return write(f"{self.path}/freezer.state", "FROZEN" if on else "THAWED") and self._reached(on)

    def _reached(self, on: bool) -> bool:
        """Wait until everything inside is frozen, which takes a moment. (Thawing is immediate.)"""
        give_up = time.monotonic() + _PATIENCE_S
        while on and not self.frozen():
            if time.monotonic() > give_up:
                return False
            time.sleep(0.0005)
        return True

    def frozen(self) -> bool:
        if self.version == 2:
            return "frozen 1" in read(f"{self.path}/cgroup.events").splitlines()
        return read(f"{self.path}/freezer.state").strip() == "FROZEN"

    def kill(self) -> None:
        """KILL everything inside, frozen or not."""
        if self.version == 2 and write(f"{self.path}/cgroup.kill", "1"):
            return
        self.freeze(True)  # nothing can fork meanwhile, and no pid can be reused
        try:
            for pid in self.pids():
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    continue
        finally:
            self.freeze(False)

    # -------------------------------------------------------------- cores and memory

    def keep_to(self, cores: Collection[int]) -> bool:
        """Confine it to these cores (the kernel's numbers); False where that is impossible."""
        if self.version == 1 and not read(f"{self.path}/cpuset.mems").strip():
            # The parent group balances already. Otherwise the kernel rebuilds its domains for each group.
            write(f"{self.path}/cpuset.sched_load_balance", "0")
            # Version 1 accepts no process before this is written. Any memory node will do.
            write(f"{self.path}/cpuset.mems", read(f"{os.path.dirname(self.path)}/cpuset.mems").strip())
        return write(f"{self.path}/cpuset.cpus", spans_of(sorted(cores)))

    def limit_memory(self, limit: int) -> bool:
        """Limit it to this much memory and no swap; False where that is impossible."""
        if self.version == 1:
            done = write(f"{self.path}/memory.limit_in_bytes", str(limit))
            write(f"{self.path}/memory.memsw.limit_in_bytes", str(limit))
            return done
        write(f"{self.path}/memory.swap.max", "0")
        write(f"{self.path}/memory.oom.group", "1")  # a job that has lost one process is useless
        return write(f"{self.path}/memory.max", str(limit))

    def memory_peak(self) -> int:
        """Bytes, cached files included, or 0 where the kernel does not say."""
        name = "memory.peak" if self.version == 2 else "memory.max_usage_in_bytes"
        text = read(f"{self.path}/{name}").strip()
        return int(text) if text.isdigit() else 0

    def oom_kills(self) -> int | None:
        """How many processes inside the kernel killed for lack of memory, or None where it does not say."""
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        for line in read(f"{self.path}/{name}").splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill" and value.isdigit():
                return int(value)
        return None

    # -------------------------------------------------------------- its end

    def remove(self) -> bool:
        """Remove it with its nested groups. False while something is still inside."""
        remove = os.rmdir if self._tree is None else self._tree.remove
        try:
            for path in self._below():
                remove(path)
            remove(self.path)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def remove_patiently(self) -> bool:
        """Remove it, waiting a moment for the kernel to let go of the last dead process."""
        give_up = time.monotonic() + _PATIENCE_S
        while not self.remove():
            if time.monotonic() > give_up:
                say(f"{self.path} cannot be removed")
                return False
            time.sleep(0.005)
        return True


def write(path: str, text: str) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, text.encode())
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def read(path: str) -> str:
    """The whole text, or nothing. (`open` costs several times as much.)"""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    parts = []
    try:
        while part := os.read(fd, 65536):
            parts.append(part)
    except OSError:
        return ""
    finally:
        os.close(fd)
    return os.fsdecode(b"".join(parts))
