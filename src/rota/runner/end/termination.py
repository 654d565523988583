"""End running tasks: at their walltime, on request, and by force when their grace is over."""

from __future__ import annotations

import signal

from rota.runner.contain import signals
from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.loop import Loop
from rota.runner.start.hook_process import PROLOGUE, Script, send
from rota.runner.task import Task
from rota.runner.task_table import TaskTable

_NEVER = float("inf")
_SWEEPS = 5
_KILL_AGAIN_S = 0.1


class Terminator:
    """Ends tasks: TERM, grace, KILL."""

    def __init__(self, *, loop: Loop, tasks: TaskTable, rules: CurrentRules, containment: Containment) -> None:
        self._loop = loop
        self._tasks = tasks
        self._rules = rules
        self._containment = containment

    def end(self, task: Task, now: float, *, reason: str, message: str, grace_s: float | None = None) -> None:
        """End a running task: TERM now, KILL after its grace. Only the first reason counts."""
        kill_at = now + (self._rules.current.grace_s if grace_s is None else grace_s)
        if task.script is not None:
            self._interrupt(task, task.script, kill_at, reason=reason, message=message)
            return
        if task.kill_at is not None:
            return
        task.plain = False
        task.reason, task.message = reason, message
        task.kill_at = kill_at
        self._tasks.changed[task] = None
        self._loop.due(task.kill_at)
        asked: set[int] = set()
        for _ in range(_SWEEPS):  # again, for what was forked meanwhile
            fresh = [seen for seen in self._containment.living(task) if seen.pid not in asked]
            if not fresh:
                break
            signals.ask_to_end(fresh)
            asked.update(seen.pid for seen in fresh)
        if task.frozen:
            self._containment.freeze(task, False)  # a frozen process receives no TERM

    def _interrupt(self, task: Task, script: Script, kill_at: float, *, reason: str, message: str) -> None:
        """End the prologue of a task; an epilogue runs to its end."""
        if not task.preparing or task.reason or script.name != PROLOGUE:
            return
        task.reason, task.message = reason, message
        script.late = "the job was ended"
        script.deadline = kill_at
        self._tasks.changed[task] = None
        self._loop.due(kill_at)
        send(script, signal.SIGTERM)

    def tick(self, now: float) -> None:
        due = _NEVER
        for task in list(self._tasks.by_key.values()):
            if task.kill_at is not None:
                if now >= task.kill_at and (task.status is None or task.part):
                    self.kill(task, now)
                due = min(due, task.kill_at)
            elif task.deadline is not None and task.suspended_since is None:
                if now >= task.deadline:
                    self._over_time(task, now)
                else:
                    due = min(due, task.deadline)
        self._loop.due(due)

    def _over_time(self, task: Task, now: float) -> None:
        after, rules = task.behaviours, self._rules.current
        if after is None:
            limit = task.walltime_s or task.spec.walltime_s or 0.0
            self.end(task, now, reason="walltime", message=f"over its walltime of {limit:g} s")
        elif after.by is not None and now >= after.by:  # it has had its grace
            self.end(task, now, reason="walltime", message="its job was ended and its grace is over", grace_s=0.0)
        else:
            message = f"over the {rules.behaviour_timeout_s:g} s limit of a behaviour"
            self.end(task, now, reason="walltime", message=message)

    def kill(self, task: Task, now: float) -> None:
        """KILL all processes of a task, repeatedly while it forks; `tick` comes back for survivors."""
        task.kill_at = now + _KILL_AGAIN_S
        if task.fence is not None:
            task.fence.kill()
        if task.status is None:
            try:
                task.launcher.signal(task.pid, signal.SIGKILL)
            except OSError:
                pass
        for _ in range(_SWEEPS):
            left = self._containment.living(task)
            if not left:
                return
            signals.kill(left)
