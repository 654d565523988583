"""What one more process inside a job needs: the environment, directory, control groups and cores of the job.

The same on the host of its command and on its other hosts.
"""

from __future__ import annotations

import os

from rota.launcher import procfs
from rota.launcher.base import Begun, CannotRun, StartOrder, Stdio, Words
from rota.launcher.variables import Variables
from rota.runner.contain.process_family import Orphan
from rota.runner.contain.task_containment import Containment
from rota.runner.report.journal import Key
from rota.runner.task import Task
from rota.runner.task_table import TaskTable


class EntryPoint:
    """Starts processes inside a running task."""

    __slots__ = ("_containment", "cwd", "task", "variables")

    def __init__(self, task: Task, containment: Containment) -> None:
        self._containment = containment
        self.task = task
        task.fill_environment()
        self.variables = task.env.and_also([])
        self.cwd = os.fsencode(task.scratch.path) if task.scratch is not None else task.env.cwd

    def start(self, words: Words, variables: Variables, stdio: Stdio, *, cwd: bytes) -> Begun:
        """Start a process. Raises `Refused` or `CannotRun`."""
        task = self.task
        groups = [] if task.fence is None else task.fence.paths
        bound = () if task.share is None else task.share.bound
        begun = task.launcher.start(StartOrder(task.key, "exec", words, variables, cwd, stdio, groups, bound))
        self._containment.started(task, begun, groups)
        return begun

    def adopted(self, pid: int) -> None:
        """Let the process that was just started count as one of the task's."""
        self.task.plain = False
        seen = procfs.process(pid)  # at least a zombie: it was not reaped yet
        orphan = Orphan(seen.start_time if seen is not None else procfs.start_time_now())
        orphan.owner = self.task
        self._containment.family.orphans[pid] = orphan
        self.task.known[pid] = orphan.start_time


def entry_point(tasks: TaskTable, containment: Containment, key: Key) -> EntryPoint:
    """Into the task of this lease. Raises `CannotRun`."""
    task = tasks.by_key.get(key)
    runs = task is not None and ((task.pid and task.status is None) or (task.part and not task.preparing))
    if task is None or not runs or task.kill_at is not None or task.script is not None:
        raise CannotRun(None, f"job {key[0]} does not run here, or is about to end")
    if task.behaviours is not None or task.concluding is not None:
        raise CannotRun(None, f"the command of job {key[0]} has ended")
    if task.frozen:
        raise CannotRun(None, f"job {key[0]} is suspended")
    return EntryPoint(task, containment)
