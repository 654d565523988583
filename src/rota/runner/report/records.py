"""What happened to tasks, recorded twice: in the journal for the next runner, in the outbox for the manager."""

from __future__ import annotations

from rota.core.attempts.leases import Finished
from rota.core.jobs.outcome import Outcome
from rota.runner.end.behaviours import end_record
from rota.runner.end.verdict import quiet_success
from rota.runner.launch.launchers import Launchers
from rota.runner.log import say
from rota.runner.output.segments import Segments
from rota.runner.report.journal import (
    COMPACT_IDLE_OVER,
    COMPACT_OVER,
    Acked,
    Contained,
    Intent,
    Journal,
    Over,
    Preparing,
    Record,
)
from rota.runner.report.outbox import Outbox
from rota.runner.start.hooks import epilogue_record
from rota.runner.task import Task
from rota.runner.task_table import TaskTable


class TaskRecords:
    """Keeps the journal and the outbox in step."""

    def __init__(
        self,
        *,
        launchers: Launchers,
        tasks: TaskTable,
        journal: Journal,
        outbox: Outbox,
        segments: Segments,
        ships: bool,
    ) -> None:
        """`ships`: is output sent to the manager, so that acknowledged segments can be removed?"""
        self._launchers = launchers
        self._tasks = tasks
        self._journal = journal
        self.outbox = outbox
        self._segments = segments
        self._ships = ships
        self._outcomes_acked = 0  #: since the journal was compacted

    def end(self, task: Task, outcome: Outcome) -> None:
        """Record the end of a task. No process of it is left."""
        key = task.key
        finished = Finished(key[0], key[1], key[2], task.seat.id, outcome)
        self._journal.add(Over(finished))
        self.outbox.end(key, finished)
        if task.launcher.lasting:
            self._tasks.released.append(task)

    def write_up(self) -> None:
        """Record the starts and quiet ends since the last time.

        For short jobs this is done for many at once: it costs much less than after each.
        """
        journal, tasks = self._journal, self._tasks
        for task in tasks.begun:
            if not task.over:
                journal.add(task.spawned())
                self.outbox.started.append(task)
        tasks.begun.clear()
        for task in tasks.quiet:
            self.end(task, quiet_success(task))
        tasks.quiet.clear()

    def acknowledged(self, outcomes: int) -> None:
        """This many more outcomes are on the manager's disk: drop what is no longer needed."""
        self._outcomes_acked += outcomes
        self._journal.add(Acked(self._outcomes_acked))
        idle = not self._tasks.by_key and not self._tasks.quiet and self.outbox.clear
        if self._journal.size > (COMPACT_IDLE_OVER if idle else COMPACT_OVER):
            self.compact()
        if self._ships:
            self._segments.forget({done.outcome.segment for done in self.outbox.unacked.values()})
        if idle:
            self._launchers.rest()

    def compact(self) -> None:
        """Write a journal of what is still needed, instead of the one that there is."""
        self.write_up()
        live: list[Record] = []
        for key, done in self.outbox.unacked.items():
            live += [Intent(*key), Over(done)]
        for task in self._tasks.by_key.values():
            live += _live(task)
        live += [Intent(*key, task.env.scratch_goes) for key, task in self._tasks.ahead.items()]
        try:
            self._journal.compact(live)
        except OSError as error:
            say(f"the journal cannot be compacted: {error}")
        else:
            self._outcomes_acked = 0


def _live(task: Task) -> list[Record]:
    """All that the journal must hold about a task that has not ended."""
    key = task.key
    goes = task.spec.scratch if task.part else task.env.scratch_goes
    found: list[Record] = [Intent(*key, goes, task.part)]
    if task.pid:
        found.append(task.spawned())
    if task.preparing:
        found.append(Preparing(*key))
    if task.concluding is not None:
        found.append(epilogue_record(task, task.concluding))
    elif task.behaviours is not None:
        found.append(end_record(task, task.behaviours))
    if task.fence is not None:
        found.append(Contained(*key, task.fence.record()))
    return found
