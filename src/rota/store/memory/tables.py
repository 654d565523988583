"""The tables of a `MemoryStore`: plain dictionaries, and what several of its parts ask of them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection
from copy import deepcopy

from rota.core.rows import EdgeRow, EnvRow, EventRow, IntentRow, ObservationRow, RunnerRow, SubmissionRow
from rota.core.stored import StoredAttempt, StoredJob
from rota.store.memory.sums import MemorySums


class MemoryTables:
    """What is stored. `lock` makes each commit and each read whole."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.submissions: dict[str, SubmissionRow] = {}
        self.envs: dict[int, EnvRow] = {}
        self.specs: dict[int, str] = {}  #: id → JSON
        self.jobs: dict[int, StoredJob] = {}
        self.keys: dict[str, set[int]] = {}
        self.highest_job = 0  #: of those that were removed
        self.attempts: dict[tuple[int, int], StoredAttempt] = {}
        self.returned: dict[tuple[int, int], str] = {}
        self.events: list[EventRow] = []
        self.runners: dict[str, RunnerRow] = {}
        self.tally: dict[tuple[str, int], int] = {}
        self.meta: dict[str, str] = {}
        self.pruned: set[str] = set()
        self.edges: set[EdgeRow] = set()
        self.children: set[EdgeRow] = set()
        self.dep_groups: dict[str, int] = {}
        self.limits: dict[str, str] = {}
        self.site: dict[tuple[str, str], str] = {}
        self.intents: dict[str, IntentRow] = {}
        #: learning group → its observations, each with its number: they are loaded in this order
        self.observations: dict[str, deque[tuple[int, ObservationRow]]] = {}
        self.observed = 0  #: observations ever made
        self.sums = MemorySums()

    def copy(self) -> MemoryTables:
        """Everything that was committed so far."""
        other = MemoryTables()
        with self.lock:
            for name, value in vars(self).items():
                if name != "lock":
                    setattr(other, name, deepcopy(value))
        return other

    def is_visible(self, job: StoredJob) -> bool:
        """Is the submission of this job complete?"""
        return self.submissions[job.submission].answer is not None

    def newest(self, job: StoredJob) -> StoredAttempt | None:
        """The newest attempt of a job."""
        return self.attempts.get((job.id, job.attempt))

    def has_jobs(self, submission: str) -> bool:
        return any(job.submission == submission for job in self.jobs.values())

    def undo(self, ids: Collection[int]) -> None:
        """Remove the jobs of refused uploads; their ids may be reused."""
        for n in self.jobs.keys() & set(ids):
            self.keys[self.jobs.pop(n).key].discard(n)

    def forget(self, ids: Collection[int]) -> None:
        """Remove all traces of these jobs; their ids are never used again."""
        gone = set(ids)
        if not gone:
            return
        self.highest_job = max(self.highest_job, *self.jobs, 0)
        for n in gone & self.jobs.keys():
            self.keys[self.jobs[n].key].discard(n)
            del self.jobs[n]
        self.attempts = {key: row for key, row in self.attempts.items() if row.job not in gone}
        self.returned = {key: left for key, left in self.returned.items() if key[0] not in gone}
        self.events = [event for event in self.events if event.job not in gone]
        self.edges = {edge for edge in self.edges if edge.child not in gone}
        self.children = {edge for edge in self.children if edge.child not in gone}
