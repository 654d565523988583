"""The tasks of a runner, from their start until their end is recorded. Data only."""

from __future__ import annotations

from rota.runner.report.journal import Key
from rota.runner.task import Task


class TaskTable:
    """Tasks by key and by pid, and lists of tasks that still need a step."""

    __slots__ = ("ahead", "begun", "by_key", "by_pid", "changed", "lingering", "quiet", "released")

    def __init__(self) -> None:
        self.by_key: dict[Key, Task] = {}
        self.by_pid: dict[int, Task] = {}  #: tasks whose first process has not been reaped
        self.ahead: dict[Key, Task] = {}  #: their launcher may start them at any moment (`start.ahead`)
        self.begun: list[Task] = []  #: started, and not yet in the journal
        self.quiet: list[Task] = []  #: ended successfully without output, and not yet in the journal
        self.changed: dict[Task, None] = {}  #: their launcher must know how far they have come
        self.released: list[Task] = []  #: their end is recorded, and their launcher may forget them
        self.lingering: dict[Task, None] = {}  #: the first process is gone, others may be left
