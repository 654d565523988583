"""Keeps a lasting launcher informed of each task, so that the next agent can go on with it if this one dies.

A task is noted before each of its processes starts, so no process is ever without a note; other changes are noted
at the end of their turn. A task is released when its end is in the journal. A launcher inside the runner gets no
notes.
"""

from __future__ import annotations

from rota.runner.current_rules import CurrentRules
from rota.runner.launch.notes import HookNote, encode, note_of, note_of_hook
from rota.runner.log import say
from rota.runner.report.journal import Journal
from rota.runner.start.hook_process import Script
from rota.runner.task import Task
from rota.runner.task_table import TaskTable


class Keeping:
    """Notes tasks with their launchers."""

    def __init__(
        self, scripts: dict[int, Script], *, tasks: TaskTable, rules: CurrentRules, journal: Journal
    ) -> None:
        """`scripts`: hooks of the site that run, by pid."""
        self._scripts = scripts
        self._tasks = tasks
        self._rules = rules
        self._journal = journal

    def announce(self, task: Task, hook: str = "") -> None:
        """A process of this task, perhaps this hook of the site, is about to be started."""
        self._note(task, [HookNote(hook, 0, 0.0)] if hook else [], starting=not hook)

    def note_of_held(self, task: Task) -> bytes:
        """The note of a task that its launcher starts by itself."""
        task.noted = encode(note_of(task, starting=True))
        return task.noted

    def flush(self) -> None:
        """Note what has changed, and release what has ended, if its end can be written to the journal."""
        tasks = self._tasks
        if tasks.changed:
            for task in tasks.changed:
                if task.launcher.lasting and not task.over and tasks.by_key.get(task.key) is task:
                    self._note(task, [])
            tasks.changed.clear()
        if tasks.released:
            self._release()

    def _note(self, task: Task, announced: list[HookNote], *, starting: bool = False) -> None:
        hooks = [note_of_hook(script) for script in self._scripts.values() if script.key == task.key]
        state = encode(note_of(task, (*hooks, *announced), starting=starting))
        if state != task.noted:
            task.noted = state
            task.launcher.note(task.key, state)
        limits = self._limits(task)
        if task.limits is None and limits == (None, self._rules.current.grace_s, ()):
            return  # as its launcher does it with every lease
        if limits != task.limits:
            task.limits = limits
            end_at, grace_s, groups = limits
            task.launcher.limits(task.key, end_at=end_at, kill_grace_s=grace_s, cgroups=groups)

    def _limits(self, task: Task) -> tuple[float | None, float, tuple[str, ...]]:
        """When its launcher must end it without an agent, the grace it then has, and the groups that hold it."""
        groups = () if task.fence is None else tuple(task.fence.paths)
        grace_s = self._rules.current.grace_s
        if task.script is not None:
            return task.script.deadline, 0.0, groups
        if task.kill_at is not None:
            return 0.0, grace_s, groups
        if task.suspended_since is not None:
            return None, grace_s, groups
        return task.deadline, grace_s, groups

    def _release(self) -> None:
        try:
            self._journal.flush()
        except OSError as error:
            say(f"journal: {error}")
            return
        for task in self._tasks.released:
            task.launcher.release(task.key)
        self._tasks.released.clear()
