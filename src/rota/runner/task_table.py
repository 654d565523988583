"""The tasks of a runner, from their start until their end is recorded. Data only."""

from __future__ import annotations

from rota.runner.report.journal import Key
from rota.runner.task import Task


class TaskTable:
    """Tasks by key and by pid, and lists of tasks that still need a step."""

    __slots__ = ("begun", "by_key", "by_pid", "lingering", "quiet")

    def __init__(self) -> None:
        self.by_key: dict[Key, Task] = {}
        self.by_pid: dict[int, Task] = {}  #: tasks whose first process has not been reaped
        self.begun: list[Task] = []  #: started, and not yet in the journal
        self.quiet: list[Task] = []  #: ended successfully without output, and not yet in the journal
        self.lingering: dict[Task, None] = {}  #: the first process is gone, others may be left
