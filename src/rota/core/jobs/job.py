"""The data of a job: its shared specification, its size, its own state and its lease.

Live jobs are kept small, so that a million fit in memory. What the jobs of one submission share is one `Spec`,
stored once.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from rota.core.jobs.command import Command
from rota.core.jobs.element import Element
from rota.core.jobs.outcome import Outcome
from rota.core.jobs.spec_record import SpecRecord
from rota.core.learning.program import program_of
from rota.core.states import State
from rota.plan.language.types import HOLDERS
from rota.plan.need import Need
from rota.plan.placement.decisions import Opened
from rota.plan.placement.given import Given
from rota.plan.placement.queue import RankKey, rank_of
from rota.plan.size import Floor, Size
from rota.pool_names import is_delegated


class Condition(IntEnum):
    """The outcome that a parent must have before its dependent may run. The numbers are stored."""

    OK = 1  # afterok: complete
    ANY = 2  # afterany: complete, failed or cancelled
    NOT_OK = 3  # afternotok: failed or cancelled


#: A parent: a job id, or the name of a dependency group.
Parent = int | str


class After(Struct, frozen=True, array_like=True, gc=False):
    """A dependency on one job, or on all present and future members of a dependency group."""

    parent: Parent
    condition: Condition = Condition.OK


class Reason(Struct, frozen=True, array_like=True, gc=False):
    """Why a job is in its state: a stable code and a sentence."""

    code: str
    message: str


class Spec(SpecRecord, frozen=True, kw_only=True, gc=False):
    """What the jobs of a submission have in common. Stored once, never changed."""

    @property
    def on_terms(self) -> bool:
        """Does it ask for more than a size, so that it needs a plan? Not where another engine plans."""
        more = self.request or self.types or self.where or self.at is not None or self.queue != "default"
        more = more or self.gang or self.prefer or self.force_host or self.provision or self.reserve
        return bool(more) and not is_delegated(self.pool)

    def need(self, size: Size, spec_id: int) -> Need:
        """What a job with this specification, which has this number, and of this size needs."""
        return Need(size, self.limits, spec_id if self.on_terms else 0, self.pool, self.walltime_s or 0.0)

    @property
    def done_at_walltime(self) -> bool:
        """Is the end of its walltime a normal end? True of jobs that only hold resources or a terminal."""
        return self.interactive or not HOLDERS.isdisjoint(self.types)


class LeasePart(Struct, gc=False):
    """The share of a lease on a host other than its first."""

    runner: str = ""  #: the runner asked to open it; empty: none
    open: bool = False


class AttemptEnd(Struct, frozen=True, array_like=True, gc=False):
    """How an attempt with open parts ended, and what becomes of its job when they are closed."""

    state: State  #: READY: it waits again
    reason: Reason | None = None
    again: str = ""  #: why it is queued again without using a retry
    outcome: Outcome | None = None  #: None: it was never executed
    tries: int = 1  #: of one that was never executed: failed preparations in a row, which set the delay


class Lease(Struct, gc=False):
    """The manager's grant of one attempt to one runner."""

    token: int
    runner: str
    leased_at: float
    started_at: float | None = None
    seat: int = 0  #: 0 until the runner reports its seat
    pid: int = 0
    restored: bool = False  #: from a backup: a runner that does not hold it proves nothing
    given: Given | None = None  #: the planner's grant; None: a seat of the job's size
    parts: dict[str, LeasePart] | None = None  #: host → part that may still be there (`core.attempts.parts`)
    withheld: Opened | None = None  #: its seat, until everything is prepared and the lease is sent
    preparing: str = ""  #: the preparation that is under way (`core.attempts.preparation`)
    stays: bool = False  #: that preparation goes on whatever becomes of its runner, and while nothing may start
    ended: AttemptEnd | None = None  #: set once it is over on its first host
    host: str = ""  #: its first host, once it is over there
    broken: str = ""  #: why it is being ended: one of its parts, or a member of its gang, is gone
    broken_code: str = "lost"  #: the reason code of that
    frozen: set[str] | None = None  #: hosts that reported its processes as frozen
    gang_hosts: str = ""  #: of a member of a gang: the hosts of all members, for its environment


def name_of(spec: Spec, pipeline_element: str | None) -> str:
    """The name of a job: that of its specification, in a pipeline `STAGE ELEMENT`."""
    return f"{spec.name} {pipeline_element}" if pipeline_element else spec.name


class Job(Struct, gc=False):
    """A job in memory: live, or finished and not yet known to be on disk."""

    id: int
    key: str
    spec: Spec
    spec_id: int
    cmd: Command
    state: State
    submission: str
    submitted_at: float
    attempt: int = 0  #: number of the latest attempt
    tries: int = 0  #: attempts since the last opening that count against the retries
    reason: Reason | None = None
    ready_at: float | None = None
    due_at: float | None = None
    ended_at: float | None = None
    after: tuple[After, ...] = ()
    lease: Lease | None = None
    kill: bool = False  #: a kill was requested: its next end is a cancellation
    preempted: int = 0  #: the job for which it is being ended; 0: none
    learned: Size | None = None  #: its size, if that differs from what was asked
    floor: Floor | None = None  #: minimum for its next attempt, after its own failures
    input_bytes: int | None = None
    element: Element | None = None
    avoid: tuple[str, ...] = ()  #: hosts where its machines could not be provisioned

    @property
    def size(self) -> Size:
        """Its size: as learned, else as asked."""
        return self.learned or self.spec.size

    @property
    def need(self) -> Need:
        spec = self.spec
        return spec.need(self.learned or spec.size, self.spec_id)

    @property
    def name(self) -> str:
        """By which people know it."""
        return self.spec.name

    @property
    def learning_group(self) -> str:
        """Jobs of one learning group need about the same."""
        return self.spec.learn or program_of(self.cmd)

    @property
    def rank_key(self) -> RankKey:
        """Its place among waiting jobs."""
        return rank_of(self.spec.priority)

    @property
    def retries_left(self) -> int:
        return max(0, self.spec.retries - self.tries)
