"""Signals to tasks: sent by users, and sent as a warning before the walltime is over.

A request for a checkpoint and the site's warning go to the process group of the first process: the command itself
and what it runs in the foreground. Other signals of users go to all processes of the task.
"""

from __future__ import annotations

from signal import Signals

from rota.runner.contain.fence import signal_all
from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.end.termination import Terminator
from rota.runner.log import say
from rota.runner.loop import Loop
from rota.runner.report.journal import Key
from rota.runner.task import Task
from rota.runner.task_table import TaskTable

CHECKPOINT = "USR2"


class TaskSignals:
    """Sends signals to tasks, now or when they are due."""

    def __init__(
        self,
        *,
        loop: Loop,
        tasks: TaskTable,
        rules: CurrentRules,
        containment: Containment,
        terminator: Terminator,
    ) -> None:
        self._loop = loop
        self._tasks = tasks
        self._rules = rules
        self._containment = containment
        self._terminator = terminator
        #: task → (so long before its deadline, signal), the next one first
        self._leads: dict[Task, list[tuple[float, str]]] = {}
        self._ending: dict[Task, tuple[float, str]] = {}  #: when a task that writes a checkpoint is ended, and why

    def began(self, task: Task) -> None:
        """A task with a walltime has started."""
        spec, rules = task.spec, self._rules.current
        if task.deadline is None:
            return
        length = task.deadline - task.began
        leads = []
        if spec.checkpoint_s is not None:
            leads.append((spec.checkpoint_s, spec.signal or CHECKPOINT))
        if rules.walltime_warning_s:
            leads.append((rules.walltime_warning_s, rules.warn_signal))
        leads = sorted((lead for lead in leads if lead[0] < length), reverse=True)
        if leads:
            self._leads[task] = leads
            self._loop.due(task.deadline - leads[0][0])

    def moved(self, task: Task) -> None:
        """Its deadline has moved: warnings that lie ahead again are sent again."""
        self._leads.pop(task, None)
        if task.deadline is None or task.over or task.behaviours is not None:
            return
        self.began(task)
        left = task.deadline - self._loop.now
        if task in self._leads:
            self._leads[task] = [lead for lead in self._leads[task] if lead[0] < left or lead not in task.warned]
            self._loop.due(self._loop.now)

    def set_walltime(self, key: Key, walltime_s: float) -> None:
        """The manager has changed the walltime of a task."""
        task = self._tasks.by_key.get(key)
        if task is None or task.behaviours is not None or task.kill_at is not None:
            return
        task.walltime_s = walltime_s
        self._tasks.changed[task] = None
        task.plain = False
        task.deadline = task.began + walltime_s + task.suspended_s
        self._loop.due(task.deadline)
        self.moved(task)

    def end_after_checkpoint(self, task: Task, now: float, signal: str, message: str) -> None:
        """Ask a task for a checkpoint, and end it after the grace for that."""
        if task in self._ending or task.kill_at is not None:
            return
        self.send(task, signal, everything=False)
        self._ending[task] = (now + self._rules.current.checkpoint_grace_s, message)
        self._loop.due(self._ending[task][0])

    def tick(self, now: float) -> None:
        for task, leads in list(self._leads.items()):
            if task.over or task.kill_at is not None or task.behaviours is not None or task.deadline is None:
                del self._leads[task]
                continue
            if task.suspended_since is not None:
                continue  # its walltime does not advance
            while leads and now >= task.deadline - leads[0][0]:
                lead = leads.pop(0)
                task.warned = (*task.warned, lead)
                self._tasks.changed[task] = None
                self.send(task, lead[1], everything=False)
            if leads:
                self._loop.due(task.deadline - leads[0][0])
            else:
                del self._leads[task]
        for task, (at, message) in list(self._ending.items()):
            if task.over or task.kill_at is not None or task.key not in self._tasks.by_key:
                del self._ending[task]
            elif now >= at:
                del self._ending[task]
                self._terminator.end(task, now, reason="kill_requested", message=message)
            else:
                self._loop.due(at)

    def signal(self, key: Key, name: str, *, everything: bool) -> None:
        """A user sends a signal to a task."""
        task = self._tasks.by_key.get(key)
        if task is not None and not task.over:
            self.send(task, name, everything=everything)

    def send(self, task: Task, name: str, *, everything: bool) -> None:
        number = getattr(Signals, f"SIG{name}", None)
        if number is None:
            say(f"unknown signal {name}")
            return
        task.plain = False
        if everything:
            signal_all(lambda: self._containment.living(task), number)
        elif task.status is None:
            try:
                task.launcher.signal(task.pid, number)
            except OSError as error:
                say(f"cannot send {name} to job {task.key[0]}: {error}")
