"""Suspends and resumes tasks: freeze, run the site's hook, report; or hook, thaw, report.

An order that was carried out before is answered again: the manager may have missed the report. The walltime of a
suspended task does not advance. A task that is being ended is thawed by `Terminator` and not suspended again.
"""

from __future__ import annotations

import time

from rota.core.attempts.leases import Paused
from rota.plan.site.bitset import spans_of
from rota.runner import clock
from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.end.task_signals import TaskSignals
from rota.runner.log import say
from rota.runner.loop import Loop
from rota.runner.report.journal import Key
from rota.runner.report.outbox import Outbox
from rota.runner.start.hook_process import RESUME, SUSPEND, Done
from rota.runner.start.hooks import NodeHooks
from rota.runner.task import Task
from rota.runner.task_table import TaskTable


class Suspension:
    """Suspends and resumes tasks."""

    def __init__(
        self,
        *,
        loop: Loop,
        tasks: TaskTable,
        rules: CurrentRules,
        outbox: Outbox,
        containment: Containment,
        task_signals: TaskSignals,
        hooks: NodeHooks,
    ) -> None:
        self._loop = loop
        self._tasks = tasks
        self._rules = rules
        self._outbox = outbox
        self._containment = containment
        self._signals = task_signals
        self._hooks = hooks

    def order(self, key: Key, on: bool) -> None:
        """Suspend a task, or resume it."""
        task = self._tasks.by_key.get(key)
        if task is None:
            return  # it has ended, which is reported elsewhere
        task.suspend_wanted = on
        self._tasks.changed[task] = None
        if not task.in_suspend_hook:
            self._proceed(task)

    def _proceed(self, task: Task) -> None:
        """Take the next step towards what is wanted, or report that it is reached."""
        if task.key not in self._tasks.by_key or task.over:
            return
        on = task.suspend_wanted
        if on == (task.suspended_since is not None) or self._is_ending(task):
            self._tell(task)
        elif on:
            self._stop(task)
        else:
            self._hook(RESUME, task)

    def _is_ending(self, task: Task) -> bool:
        gone = task.status is not None and not task.part
        return task.kill_at is not None or gone or task.script is not None

    def _stop(self, task: Task) -> None:
        if not self._containment.freeze(task, True):
            say(f"job {task.key[0]} cannot be suspended")
            self._tell(task, "not all of its processes can be stopped")
            return
        task.suspended_since, task.suspended_at = time.monotonic(), clock.now()
        self._hook(SUSPEND, task)

    def _go_on(self, task: Task) -> None:
        assert task.suspended_since is not None
        self._tasks.changed[task] = None
        suspended_s = time.monotonic() - task.suspended_since
        task.suspended_since = None
        task.suspended_s += suspended_s
        if task.deadline is not None:
            task.deadline += suspended_s
            self._loop.due(task.deadline)
        self._containment.freeze(task, False)
        self._signals.moved(task)

    # -------------------------------------------------------------- the site's hooks

    def _hook(self, name: str, task: Task) -> None:
        """Run a hook of the site, if there is one: just after a task was frozen, or just before it is thawed."""
        rules = self._rules.current
        path = rules.suspend_hook if name == SUSPEND else rules.resume_hook
        if not path:
            self._after(name, task, "")
            return
        cores = spans_of(sorted(task.share.cores)) if task.share is not None else ""
        entries = [
            b"ROTA_USER=" + task.spec.user.encode("utf-8", "surrogateescape"),
            b"ROTA_CPU_LIST=" + cores.encode(),
        ]
        task.in_suspend_hook = True
        self._hooks.run(name, task, entries, lambda wrong: self._hook_done(name, task, wrong))

    def run_hook(self, name: str, task: Task) -> None:
        """Run a hook that an earlier runner was about to run."""
        self._hook(name, task)

    def follows(self, task: Task, name: str) -> Done:
        """What follows when this hook of an adopted task has ended."""
        return lambda wrong: self._hook_done(name, task, wrong)

    def _hook_done(self, name: str, task: Task, wrong: str) -> None:
        task.in_suspend_hook = False
        self._after(name, task, wrong)

    def _after(self, name: str, task: Task, wrong: str) -> None:
        if task.key not in self._tasks.by_key or task.over:
            return
        if (
            name == RESUME
            and task.suspended_since is not None
            and not task.suspend_wanted
            and not self._is_ending(task)
        ):
            self._go_on(task)
        self._tell(task, wrong)
        if task.suspend_wanted != (task.suspended_since is not None):
            self._proceed(task)

    def _tell(self, task: Task, message: str = "") -> None:
        self._tasks.changed[task] = None
        still = task.suspended_since is not None and not self._is_ending(task)
        at = task.suspended_at if still else clock.now()
        self._outbox.paused.append(Paused(*task.key, still, at, message))
        self._loop.due(self._loop.now)
