"""What a launcher holds for its agent: leases with their processes, until the agent releases them. Data only."""

from __future__ import annotations

import os

from rota.launcher.base import Key, Kind
from rota.launcher.messages import HeldProcess, HeldTask, Spent
from rota.launcher.spool import SpooledPipes


class Process:
    """A process that was started for a lease."""

    __slots__ = ("ended_at", "fds", "kind", "pid", "spent", "start_time", "status", "task")

    def __init__(self, task: Task, kind: Kind, pid: int, start_time: int) -> None:
        self.task = task
        self.kind = kind
        self.pid = pid
        self.start_time = start_time
        self.status: int | None = None  #: of wait(2), once it has ended
        self.spent = Spent()
        self.ended_at = 0.0
        self.fds: list[int] = []  #: kept open so that they outlive the agent

    def on_wire(self) -> HeldProcess:
        return HeldProcess(
            self.pid, self.start_time, self.kind, self.status, self.spent, self.ended_at, len(self.fds)
        )


class Task:
    """A lease that the agent has not released."""

    __slots__ = (
        "cgroups", "done", "end_at", "ended_for", "grace_s", "key",
        "kill_at", "mark", "note", "pipes", "processes", "quiet",
    )  # fmt: skip

    def __init__(self, key: Key) -> None:
        self.key = key
        self.note = b""
        self.processes: dict[int, Process] = {}
        self.pipes: SpooledPipes | None = None  #: of its last process, while no other task has them
        self.mark = b""  #: by which its processes are known that left its sessions
        self.cgroups: set[str] = set()
        self.end_at: float | None = None
        self.grace_s: float | None = None
        self.kill_at: float | None = None  #: TERM was sent, KILL follows then
        self.ended_for = ""
        self.done = False  #: it was ended, and nothing of it is left
        self.quiet = False  #: it has ended quietly, and nothing was started after it (`ahead`)

    @property
    def runs(self) -> bool:
        return any(process.status is None for process in self.processes.values())

    @property
    def fds(self) -> list[int]:
        """Of all its processes, in the order of `on_wire`."""
        return [fd for process in self.processes.values() for fd in process.fds]

    def on_wire(self) -> HeldTask:
        processes = [process.on_wire() for process in self.processes.values()]
        return HeldTask(
            self.key, self.note, processes, -1 if self.pipes is None else self.pipes.number, self.ended_for
        )


class Holdings:
    """All leases, and their processes by pid."""

    def __init__(self) -> None:
        self.tasks: dict[Key, Task] = {}
        self.by_pid: dict[int, Process] = {}  #: processes that were not reaped
        self._by_pipes: dict[int, Task] = {}

    def task(self, key: Key) -> Task:
        """The lease of this key, known or new."""
        task = self.tasks.get(key)
        if task is None:
            task = self.tasks[key] = Task(key)
        return task

    def began(self, process: Process) -> None:
        process.task.processes[process.pid] = self.by_pid[process.pid] = process
        process.task.done = False

    def lend(self, task: Task, pipes: SpooledPipes) -> None:
        """The next process of a task writes to these pipes; what another task wrote there is no longer needed."""
        self.take_back(pipes)
        if task.pipes is not None:
            self.take_back(task.pipes)
        task.pipes = pipes
        self._by_pipes[pipes.number] = task

    def uses(self, pipes: SpooledPipes) -> bool:
        """Does the last process of a lease write to these pipes?"""
        return pipes.number in self._by_pipes

    def take_back(self, pipes: SpooledPipes) -> None:
        """These pipes are about to be closed."""
        task = self._by_pipes.pop(pipes.number, None)
        if task is not None:
            task.pipes = None

    def drop(self, process: Process) -> bool:
        """Forget a process that has ended. True if it was the last trace of its lease."""
        task = process.task
        task.processes.pop(process.pid, None)
        for fd in process.fds:
            os.close(fd)
        process.fds = []
        known = self.tasks.get(task.key) is task
        return known and not (task.processes or task.note or task.pipes) and self.release(task.key)

    def release(self, key: Key) -> bool:
        """Forget a lease; False if it is not known."""
        task = self.tasks.pop(key, None)
        if task is None:
            return False
        if task.pipes is not None:
            self.take_back(task.pipes)
        for fd in task.fds:
            os.close(fd)
        for process in task.processes.values():
            process.fds = []
        return True
