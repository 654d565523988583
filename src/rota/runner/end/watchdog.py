"""Ends a job when the host runs out of memory or scratch space, before all jobs suffer.

Only a job over its request is ever ended, and only while the host is nearly full: the one that is farthest over
its request. It looks only while jobs run.
"""

from __future__ import annotations

from collections.abc import Callable

from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.end import host_room
from rota.runner.end.measure import about_size, memory_of
from rota.runner.end.termination import Terminator
from rota.runner.log import say
from rota.runner.loop import Loop
from rota.runner.task import Task
from rota.runner.task_table import TaskTable

#: Memory is nearly full when less than this share and less than this many bytes are left.
MEMORY_LOW = 0.05
MEMORY_LOW_BYTES = 4 << 30
#: Below this share it looks more often: the rest can be gone quickly.
_MEMORY_SCARCE = 0.25
DISK_LOW = 0.01
DISK_LOW_BYTES = 32 << 20
LOOK_EVERY_S = 1.0
_LOOK_OFTEN_S = 0.2
#: Between TERM and KILL: there is no time for a longer grace.
_QUICK_GRACE_S = 0.5
_NEVER = float("inf")


class Watchdog:
    """Watches over the memory and disk of the host."""

    def __init__(
        self,
        scratch_root: str,
        *,
        loop: Loop,
        tasks: TaskTable,
        rules: CurrentRules,
        containment: Containment,
        terminator: Terminator,
    ) -> None:
        self._scratch_root = scratch_root
        self._loop = loop
        self._tasks = tasks
        self._rules = rules
        self._containment = containment
        self._terminator = terminator
        self._look_at = _NEVER
        self._said = ""
        self.memory: Callable[[], host_room.HostRoom] = host_room.Memory()
        self.disk: Callable[[str], host_room.HostRoom] = host_room.disk

    def began(self, now: float) -> None:
        """A job has started: watch."""
        if self._look_at == _NEVER:
            self._look_at = now + _LOOK_OFTEN_S

    def tick(self, now: float) -> None:
        if now >= self._look_at:
            self._look_at = self._look(now) if self._tasks.by_key else _NEVER
        self._loop.due(self._look_at)

    def _look(self, now: float) -> float:
        """When to look again."""
        try:
            memory = self.memory()
        except (OSError, ValueError) as error:
            self._say(f"cannot read the free memory: {error}")
            memory = host_room.HostRoom(1, 1)
        if memory.left < min(memory.total * MEMORY_LOW, MEMORY_LOW_BYTES):
            self._relieve_memory(now, memory)
        scratch_jobs = [task for task in self._tasks.by_key.values() if task.scratch is not None]
        if scratch_jobs:
            try:
                disk = self.disk(self._scratch_root)
            except OSError as error:
                self._say(f"cannot read the free disk space: {error}")
            else:
                if disk.left < min(disk.total * DISK_LOW, DISK_LOW_BYTES):
                    self._relieve_disk(scratch_jobs, now, disk)
        return now + (LOOK_EVERY_S if memory.left > memory.total * _MEMORY_SCARCE else _LOOK_OFTEN_S)

    def _relieve_memory(self, now: float, left: host_room.HostRoom) -> None:
        tasks = self._tasks.by_key.values()
        if any(task.reason == "memory" for task in tasks):
            return  # one is being ended: its memory may be enough
        members = self._containment.members()
        uses = {task: memory_of([seen for seen in members[task] if seen.alive]) for task in tasks}
        for task, use in uses.items():
            task.peak_mem = max(task.peak_mem, use)
        guilty = _farthest({task: use - task.env.size.mem for task, use in uses.items()})
        if guilty is None:
            self._say("memory is nearly full, but no job here is over its request")
            return
        used, asked = about_size(uses[guilty]), about_size(guilty.env.size.mem)
        full = f"{about_size(left.left)} of {about_size(left.total)} left"
        message = f"it used {used} of memory and asked for {asked}, and the host was nearly full: {full}"
        self._end(guilty, now, reason="memory", message=message)

    def _relieve_disk(self, tasks: list[Task], now: float, left: host_room.HostRoom) -> None:
        if any(task.reason == "disk" for task in tasks):
            return
        uses = {task: task.scratch.usage() for task in tasks if task.scratch is not None}
        for task, use in uses.items():
            task.peak_disk = max(task.peak_disk, use)
        guilty = _farthest({task: use - task.env.size.disk for task, use in uses.items()})
        if guilty is None:
            self._say("the disk of the scratch directories is full, but no job here is over its request")
            return
        used, asked = about_size(uses[guilty]), about_size(guilty.env.size.disk)
        full = f"the disk was full: {about_size(left.left)} left"
        message = f"its scratch directory held {used}, it asked for {asked}, and {full}"
        self._end(guilty, now, reason="disk", message=message)

    def _end(self, task: Task, now: float, *, reason: str, message: str) -> None:
        say(f"job {task.key[0]} is ended: {message}")
        self._said = ""
        grace_s = min(_QUICK_GRACE_S, self._rules.current.grace_s)
        self._terminator.end(task, now, reason=reason, message=message, grace_s=grace_s)

    def _say(self, what: str) -> None:
        """Log a line once, not at every look."""
        if what != self._said:
            self._said = what
            say(what)


def _farthest(over: dict[Task, int]) -> Task | None:
    """The task that is farthest over its request, if any. A task that is being ended does not count."""
    guilty = {task: excess for task, excess in over.items() if excess > 0 and task.kill_at is None}
    return max(guilty, key=guilty.__getitem__) if guilty else None
