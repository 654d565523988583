"""One turn of the engine: the time it happens at, and what it has decided so far.

Several turns may share one batch: while the store commits one batch, the decisions of the next
gather here.
"""

from __future__ import annotations

from collections.abc import Callable

from rota.core.changes import Changes
from rota.core.effects import Effect
from rota.core.jobs.job import Spec

#: In the story of events: what happens to the deployment and to no job.
NO_JOB_ID = 0


class Batch:
    """Decisions that will be committed together, and what is to be done afterwards."""

    __slots__ = ("changes", "effects", "leaving", "sums")

    def __init__(self) -> None:
        self.changes = Changes()
        self.effects: list[Effect] = []
        #: Finished jobs: they may leave memory once this batch is on disk.
        self.leaving: list[int] = []
        #: hour → the last specification that was accounted for, and where in `changes`
        #: (`core.accounts.accounting`)
        self.sums: dict[int, tuple[Spec, list[int]]] = {}

    def __bool__(self) -> bool:
        return bool(self.effects) or bool(self.changes)


class Turn:
    """The arguments of a decision: the two clocks, a source of numbers, and the batch to write to.

    `mono` measures leases and delays and never jumps; `wall` is for records and people.
    """

    __slots__ = ("batch", "changes", "effects", "minute", "mono", "random", "wall")

    def __init__(self, *, wall: float, mono: float, random: Callable[[], float], batch: Batch) -> None:
        self.wall = wall
        self.mono = mono
        self.random = random
        self.batch = batch
        self.changes = batch.changes
        self.effects = batch.effects
        self.minute: list[int] | None = None  #: the sums of this minute in `changes`, once they were needed

    def note(self, job: int, attempt: int, kind: str, text: str) -> None:
        """Add a line to a job's story: for what is not routine."""
        self.changes.events.append((self.wall, job, attempt, kind, text))
