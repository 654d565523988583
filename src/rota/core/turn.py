"""One turn of the engine: its time, and the batch that collects its decisions.

Several turns may share a batch: while the store commits one batch, the decisions of the next collect here.
"""

from __future__ import annotations

from collections.abc import Callable

from rota.core.accounts.sums import AccountSums, MinuteSums
from rota.core.changes import Changes
from rota.core.effects import Effect
from rota.core.jobs.job import Spec
from rota.core.rows import EventRow

#: Job id of events that concern the deployment, not a job.
NO_JOB_ID = 0


class Batch:
    """Decisions that are committed together, and the effects to perform afterwards."""

    __slots__ = ("changes", "effects", "leaving", "sums")

    def __init__(self) -> None:
        self.changes = Changes()
        self.effects: list[Effect] = []
        #: Finished jobs that may leave memory once this batch is on disk.
        self.leaving: list[int] = []
        #: hour → (specification accounted for last, its row in `changes`): a cache of `core.accounts.accounting`
        self.sums: dict[int, tuple[Spec, AccountSums]] = {}

    def __bool__(self) -> bool:
        return bool(self.effects) or bool(self.changes)


class Turn:
    """The arguments of a decision: two clocks, a source of random numbers, and the batch to write to.

    `mono` never jumps and measures leases and delays; `wall` is for records and people.
    """

    __slots__ = ("batch", "changes", "effects", "minute", "mono", "random", "wall")

    def __init__(self, *, wall: float, mono: float, random: Callable[[], float], batch: Batch) -> None:
        self.wall = wall
        self.mono = mono
        self.random = random
        self.batch = batch
        self.changes = batch.changes
        self.effects = batch.effects
        self.minute: MinuteSums | None = None  #: this minute's row in `changes`, once it exists

    def note(self, job: int, attempt: int, kind: str, text: str) -> None:
        """Add a line to a job's story. For unusual events only, not for routine ones."""
        self.changes.events.append(EventRow(self.wall, job, attempt, kind, text))
