"""Settles the tasks of a dead launcher that an earlier agent started.

Its processes are not children of this agent, so only the launcher's journal knows their exits. What still runs is
ended and counts as lost.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from rota.boot import boot_id
from rota.launcher import journal as launcher_journal
from rota.launcher.client.remote import RemoteLauncher
from rota.launcher.messages import Spent
from rota.launcher.trees import remove
from rota.runner.end import settling
from rota.runner.end.finishing import Finisher
from rota.runner.identity import node_of
from rota.runner.launch.launchers import Launchers
from rota.runner.launch.predecessor import Predecessor
from rota.runner.log import say, say_all
from rota.runner.loop import Loop
from rota.runner.report import journal
from rota.runner.report.outbox import Outbox
from rota.runner.start.hooks import NodeHooks
from rota.runner.task import Task
from rota.runner.task_table import TaskTable

#: The status of a process whose exit is not known: as if it was killed.
_UNKNOWN = 9


class LostTasks:
    """Ends tasks by proof."""

    def __init__(
        self,
        launchers: Launchers,
        *,
        loop: Loop,
        tasks: TaskTable,
        outbox: Outbox,
        hooks: NodeHooks,
        finisher: Finisher,
        runner: str,
    ) -> None:
        self._launchers = launchers
        self._loop = loop
        self._tasks = tasks
        self._outbox = outbox
        self._hooks = hooks
        self._finisher = finisher
        self._runner = runner

    def settle(self, found: Predecessor, going_on: Collection[journal.Key], *, scratch_root: str) -> None:
        """Settle the tasks of a dead agent that no living launcher holds. Raises `OSError`."""
        told = {key for key, lease in found.story.leases.items() if lease.finished is not None}
        dead = settling.DeadRunner(found.directory, found.lock, found.story)
        ended, _ = settling.settle(
            dead,
            self._launchers.new,
            boot_id=boot_id(),
            scratch_root=scratch_root,
            living={*going_on, *told},
        )
        for finished in ended:
            self._outbox.end((finished.job, finished.attempt, finished.token), finished)
        for path in found.dead:
            say_all(remove(path))

    def lost(self, launcher: RemoteLauncher, tasks: list[Task]) -> None:
        """A launcher that this agent did not start has died with these tasks. Raises `TimeoutError`."""
        say(f"launcher {launcher.pid} is dead with {len(tasks)} jobs")
        exits = _exits(launcher.directory)
        leases, fenced = [], {}
        for task in tasks:
            lease = journal.JournalledLease(journal.Intent(*task.key))
            lease.spawned = task.spawned() if task.pid else None
            leases.append(lease)
            fenced[task.key] = task.fence
        settling.end_survivors(leases, fenced, node=node_of(self._runner), hasty=False)
        for task in tasks:
            task.fence = None if task.fence is None or not _exists(task) else task.fence
            task.launcher = self._launchers.new
            task.doubtful, task.plain = True, False
        for pid in [pid for pid, script in self._hooks.running.items() if script.launcher is launcher]:
            self._hooks.reaped(pid, exits.get(pid, _UNKNOWN))
        for task in tasks:
            if not task.part and self._tasks.by_pid.pop(task.pid, None) is task:
                self._end(task, exits)
            elif task in self._tasks.lingering:
                del self._tasks.lingering[task]
                self._finisher.finish(task)

    def _end(self, task: Task, exits: dict[int, int]) -> None:
        task.usage = Spent()
        if task.pid in exits:
            task.status = exits[task.pid]
        else:
            task.status = _UNKNOWN
            if not task.reason:
                task.reason = "lost"
                task.message = "its launcher died while no agent had started it; how it ended is unknown"
        self._finisher.finish(task)


def _exists(task: Task) -> bool:
    return task.fence is not None and all(os.path.isdir(path) for path in task.fence.paths)


def _exits(directory: str) -> dict[int, int]:
    """What a launcher knew of exits when it died, by pid."""
    try:
        story = launcher_journal.read(directory)
    except OSError:
        return {}
    return {pid: status for task in story.tasks.values() for pid, status in task.exits.items()}
