"""Which process belongs to which task. All descend from a launcher, which adopts orphans as their sub-reaper.

Descendants of a task's first process are easy. Orphans are identified by what they cannot easily lose: their
session, an earlier sighting, their control group, the lease in their environment, their own descendants. An
orphan that remains doubtful goes to the last task it can belong to. Sends no signals.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable

from rota.launcher import procfs
from rota.launcher.procfs import Process
from rota.runner.contain import process_mark
from rota.runner.launch.launchers import Launchers
from rota.runner.task import Task

#: A recorded start time may be off by this many clock ticks.
SLACK = 2


class Orphan:
    """A child of a launcher that it did not start."""

    __slots__ = ("candidates", "owner", "start_time")

    def __init__(self, start_time: int) -> None:
        self.start_time = start_time
        self.owner: Task | None = None
        self.candidates: set[Task] = set()


class ProcessFamily:
    """Assigns processes to the tasks of this runner."""

    def __init__(self, launchers: Launchers, others: Container[int]) -> None:
        self._launchers = launchers
        self.orphans: dict[int, Orphan] = {}  #: by pid: children that are not the first of a task
        self._others = others  #: children that belong to no task

    def look(self) -> dict[int, Process]:
        """The process table. Each process in it that a launcher has started is one of a task by now."""
        table = procfs.table()
        self._launchers.catch_up()
        return table

    def sort(self, table: dict[int, Process], tasks: Collection[Task]) -> dict[Task, list[Process]]:
        """The processes of each task, living or zombie. Remembers them for the next time."""
        children: dict[int, list[Process]] = {}
        for seen in table.values():
            children.setdefault(seen.ppid, []).append(seen)
        mains = {task.pid: task for task in tasks if task.status is None}
        members: dict[Task, list[Process]] = {task: [] for task in tasks}
        orphans: dict[int, Orphan] = {}
        strays: list[tuple[Process, Orphan]] = []
        own = self._launchers.own
        for root in [child for pid in self._launchers.roots for child in children.get(pid, ())]:
            if root.pid in own:
                continue
            main = mains.get(root.pid)
            if main is not None:
                _claim(main, root, children, members)
                continue
            if root.pid in self._others:
                continue
            orphan = self.orphans.get(root.pid)
            if orphan is None or orphan.start_time != root.start_time:
                orphan = Orphan(root.start_time)
            orphans[root.pid] = orphan
            if orphan.owner is None or orphan.owner not in members:
                orphan.owner = _owner(list(_subtree(root, children)), tasks)
            if orphan.owner is None:
                strays.append((root, orphan))
            else:
                _claim(orphan.owner, root, children, members)
        for root, orphan in strays:
            self._doubt(root, orphan, tasks)
            if orphan.owner is not None:
                _claim(orphan.owner, root, children, members)
        self.orphans = orphans
        return members

    def _doubt(self, root: Process, orphan: Orphan, tasks: Collection[Task]) -> None:
        """A stray belongs to one of the tasks that ran when it was started: the last one left gets it."""
        if orphan.candidates:
            orphan.candidates.intersection_update(tasks)
        else:
            orphan.candidates = {task for task in tasks if task.start_time <= root.start_time + SLACK}
        for task in orphan.candidates:
            task.plain = False
            task.doubtful = True
        if len(orphan.candidates) == 1:
            (orphan.owner,) = orphan.candidates

    def unowned(self, table: dict[int, Process]) -> list[Process]:
        """Orphans that can belong to no task any more: their job has ended."""
        return [
            table[pid]
            for pid, orphan in self.orphans.items()
            if orphan.owner is None and not orphan.candidates and pid in table and table[pid].alive
        ]


def _owner(subtree: list[Process], tasks: Iterable[Task]) -> Task | None:
    sessions = {task.pid: task for task in tasks}
    for seen in subtree:
        if (task := sessions.get(seen.session)) is not None:
            return task
    for task in tasks:
        if any(task.known.get(seen.pid) == seen.start_time for seen in subtree):
            return task
    for task in tasks:
        if task.fence is not None:
            inside = task.fence.pids()
            if any(seen.pid in inside for seen in subtree):
                return task
    entries = {process_mark.value(task.key[2]): task for task in tasks}
    for seen in subtree:
        value = procfs.environ_value(seen.pid, process_mark.VARIABLE)
        if value is not None and value in entries:
            return entries[value]
    return None


def _subtree(root: Process, children: dict[int, list[Process]]) -> Iterable[Process]:
    stack = [root]
    while stack:
        seen = stack.pop()
        yield seen
        stack.extend(children.get(seen.pid, ()))


def _claim(
    task: Task, root: Process, children: dict[int, list[Process]], members: dict[Task, list[Process]]
) -> None:
    for seen in _subtree(root, children):
        members[task].append(seen)
        task.known[seen.pid] = seen.start_time
