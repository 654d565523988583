"""Ends leases while there is no agent: each at its walltime, and all when no agent has come for `orphan_after`.

TERM to everything that belongs to the lease, KILL after its grace. With an agent it does nothing: ending jobs is
then up to the agent, which knows the reason.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterable

from rota.launcher import procfs
from rota.launcher.holdings import Holdings, Task
from rota.launcher.messages import MARK

WALLTIME = "walltime"
ORPHANED = "orphaned"
_SWEEPS = 5
_KILL_AGAIN_S = 0.5
_NEVER = float("inf")


class Ending:
    """Enforces the limits of leases."""

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._own = os.getpid()
        self.grace_s = 10.0  #: between TERM and KILL, unless a lease has its own

    def due(self) -> float:
        """When the next limit of a lease is reached."""
        times = [_NEVER]
        for task in self._holdings.tasks.values():
            if task.kill_at is not None:
                times.append(task.kill_at)
            elif task.end_at is not None and not task.done:
                times.append(task.end_at)
        return min(times)

    def tick(self, now: float, *, orphaned: bool) -> None:
        """Enforce limits without an agent. `orphaned`: no agent is expected any more."""
        for task in list(self._holdings.tasks.values()):
            if task.kill_at is not None:
                if now >= task.kill_at:
                    self._kill(task, now)
            elif task.done:
                continue
            elif task.end_at is not None and now >= task.end_at:
                self._end(task, now, WALLTIME)
            elif orphaned:
                self._end(task, now, ORPHANED)

    def _end(self, task: Task, now: float, why: str) -> None:
        asked: set[int] = set()
        for _ in range(_SWEEPS):  # again, for what was forked meanwhile
            fresh = [seen for seen in self._living(task) if seen.pid not in asked]
            if not fresh:
                break
            for seen in fresh:
                _send(seen, signal.SIGTERM, signal.SIGCONT)
            asked.update(seen.pid for seen in fresh)
        if not asked:
            task.done = True
            return
        _thaw(task.cgroups)  # a frozen process receives no TERM
        task.ended_for = task.ended_for or why
        task.kill_at = now + (self.grace_s if task.grace_s is None else task.grace_s)

    def _kill(self, task: Task, now: float) -> None:
        for path in task.cgroups:
            _write(f"{path}/cgroup.kill", b"1")
        _thaw(task.cgroups)
        for _ in range(_SWEEPS):
            left = self._living(task)
            if not left:
                task.kill_at, task.done = None, True
                return
            for seen in left:
                _send(seen, signal.SIGKILL)
        task.kill_at = now + _KILL_AGAIN_S

    def kill_strays(self) -> None:
        """KILL children that belong to no lease."""
        known = self._holdings.by_pid
        for seen in procfs.table().values():
            if seen.ppid == self._own and seen.pid not in known and seen.alive:
                _send(seen, signal.SIGKILL)

    def _living(self, task: Task) -> list[procfs.Process]:
        """The living processes of a lease: by session, ancestors, control group. One that left its session and
        lost its ancestors is our child, and is known by its environment."""
        table = procfs.table()
        children: dict[int, list[procfs.Process]] = {}
        for seen in table.values():
            children.setdefault(seen.ppid, []).append(seen)
        inside = set(_pids(task.cgroups))
        stack = [seen for seen in table.values() if seen.pid in inside or self._is_of(task, seen, table)]
        found = {seen.pid: seen for seen in stack}
        while stack:
            for child in children.get(stack.pop().pid, ()):
                if child.pid not in found:
                    found[child.pid] = child
                    stack.append(child)
        found.pop(self._own, None)
        return [seen for seen in found.values() if seen.alive]

    def _is_of(self, task: Task, seen: procfs.Process, table: dict[int, procfs.Process]) -> bool:
        leader = task.processes.get(seen.session)
        if leader is not None:
            # A number is not used again while a session of that number is left.
            present = table.get(seen.session)
            return present is None or present.start_time == leader.start_time
        if not task.mark or seen.ppid != self._own or seen.pid in self._holdings.by_pid:
            return False
        return procfs.environ_value(seen.pid, MARK) == task.mark


def _send(seen: procfs.Process, *numbers: int) -> None:
    """Signal this very process, if it still exists."""
    try:
        handle = os.pidfd_open(seen.pid)
    except OSError:
        return
    try:
        if procfs.lives(seen.pid, seen.start_time):
            for number in numbers:
                signal.pidfd_send_signal(handle, number)
    except OSError:
        pass
    finally:
        os.close(handle)


def _pids(cgroups: Iterable[str]) -> Iterable[int]:
    """The processes in these groups and in groups inside them."""
    for path in cgroups:
        for directory, _, _ in os.walk(path):
            try:
                with open(f"{directory}/cgroup.procs", "rb") as file:
                    yield from map(int, file.read().split())
            except (OSError, ValueError):
                continue


def _thaw(cgroups: Collection[str]) -> None:
    for path in cgroups:
        _write(f"{path}/cgroup.freeze", b"0")
        _write(f"{path}/freezer.state", b"THAWED")


def _write(path: str, data: bytes) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(fd, data)
    except OSError:
        pass
    finally:
        os.close(fd)
