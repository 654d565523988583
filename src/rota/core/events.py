"""Events: everything that can happen, in the past tense. Only events change the world.

`by` is the connection behind a request; its answer is an effect.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from rota.core.attempts.leases import (
    Finished,
    HeldLease,
    JobProgress,
    LeaseRef,
    NodeFault,
    PartOpened,
    Paused,
    Phase,
    Started,
)
from rota.core.jobs.command import Command
from rota.core.jobs.job import After, Condition, Job, Parent, Spec
from rota.core.jobs.outcome import Outcome
from rota.core.rows import EnvRow, KnownJob, SpecRow
from rota.plan.need import Need
from rota.plan.policy.limits import Limit
from rota.plan.site.node_facts import NodeFacts
from rota.plan.size import Capacity


class Event(Struct, frozen=True, kw_only=True, gc=False):
    """Base of all events."""


class Asker(Struct, frozen=True, gc=False):
    """The origin of a request: the connection, the request's number, and the user."""

    connection: int
    n: int
    user: str


class EntryAfter(Struct, frozen=True, gc=False):
    """A dependency of one entry of a submission.

    `parent` is the index of an entry if `local`, else a job id or the name of a dependency group.
    """

    entry: int
    parent: Parent
    condition: Condition
    local: bool


class FormerJob(Struct, frozen=True, gc=False):
    """A job that ended, perhaps only on disk: what a submission must know of it."""

    id: int
    key: str
    spec: Spec
    after: str | None = None  #: its dependencies, as JSON


class ChunkArrived(Event, frozen=True):
    """A chunk of a submission, with everything the store knows about its commands."""

    by: Asker
    submission: str
    first: int
    cmds: list[Command]
    keys: list[str]
    specs: list[Spec]  #: of the whole submission so far
    spec_ids: list[int]  #: their ids in the store
    spec_of: list[int] | None
    lines: list[int] | None
    after: list[EntryAfter]
    known: dict[str, KnownJob]  #: by identity key: finished jobs in the store
    loaded: dict[int, Job]  #: jobs of `known` that will be retried
    last: bool
    fresh: frozenset[int] | bool = False  #: entries (True: all) that become new jobs even if equal ones exist
    check: bool = False
    allow_unsatisfiable: frozenset[int] | bool = False
    elements: dict[int, tuple[int, int]] = {}  #: entry → (number of its array in this submission, index)
    inputs: dict[int, int] = {}  #: entry → size of its input in bytes
    dependents: dict[int, Job] = {}  #: last chunk: complete jobs on disk that it may re-open
    limits: list[Limit] = []  #: last chunk: limits declared by its jobs
    warnings: list[str] = []  #: last chunk: warnings for the user
    rerun: frozenset[int] | bool = False  #: entries (True: all) that replace equal jobs that have ended
    namesakes: dict[str, list[FormerJob]] = {}  #: for `rerun`: identity key → all jobs on disk with that key
    formers: dict[int, FormerJob] = {}  #: complete jobs on disk whose entries have dependencies now
    followers: dict[int, Job] = {}  #: last chunk: ended jobs on disk that depend on jobs it may replace
    input: str = ""  #: last chunk: name of the input, unique for its user
    previous: list[int] = []  #: last chunk: jobs of the previous version of this input, in input order
    dropped: dict[int, FormerJob] = {}  #: failed and cancelled jobs on disk that are in `previous` or `kept`
    kept: list[int] = []  #: last chunk: jobs of earlier versions of this input that were kept


class LibraryGrew(Event, frozen=True):
    """New specifications and environments arrived."""

    specs: list[SpecRow]
    envs: list[EnvRow]


class UploadDropped(Event, frozen=True):
    """A submission will not be completed: its client disconnected or sent something invalid."""

    submission: str


class JobsKilled(Event, frozen=True):
    """A user killed jobs."""

    by: Asker
    jobs: list[int]


class JobsHeld(Event, frozen=True):
    """A user held waiting jobs."""

    by: Asker
    jobs: list[int]


class JobsReleased(Event, frozen=True):
    """A user released held jobs."""

    by: Asker
    jobs: list[int]


class JobsRetried(Event, frozen=True):
    """A user retried failed or cancelled jobs. `loaded` holds the ones that were only on disk."""

    by: Asker
    jobs: list[int]
    loaded: dict[int, Job]


class JobsRemoved(Event, frozen=True):
    """A user removed jobs. `loaded` holds the ones that were only on disk."""

    by: Asker
    jobs: list[int]
    loaded: dict[int, Job]
    cascade: bool = False  #: remove their dependents too
    only: str = ""  #: only jobs of this user may be removed; empty: any
    named: frozenset[int] = frozenset()  #: jobs given by id: if one of them cannot be removed, nothing is
    waiting: bool = False  #: remove waiting jobs too


class JobsSuspended(Event, frozen=True):
    """A user suspended running jobs."""

    by: Asker
    jobs: list[int]
    keep: bool = False  #: keep their cores


class JobsResumed(Event, frozen=True):
    """A user resumed suspended jobs."""

    by: Asker
    jobs: list[int]


class JobsSignalled(Event, frozen=True):
    """A user sent a signal to running jobs; without a name, the one that asks for a checkpoint."""

    by: Asker
    jobs: list[int]
    signal: str = ""  #: for example TERM


class WalltimeAsked(Event, frozen=True):
    """A user asked for another walltime of a running job."""

    by: Asker
    job: int
    seconds: float
    relative: bool = False  #: add to the present walltime instead of replacing it
    force: bool = False  #: even if promises to other jobs break


class MemberArrived(Event, frozen=True):
    """A process of a member of a gang waits at a point for the other members."""

    by: Asker
    job: int
    point: str
    wait: str  #: the same when it asks again


class MemberLeft(Event, frozen=True):
    """That process waits no longer."""

    by: Asker
    job: int
    point: str
    wait: str
    lost: bool = False  #: only its connection was lost: it asks again


class DeathConfirmed(Event, frozen=True):
    """An operator vouches that these lost jobs are dead."""

    by: Asker
    jobs: list[int]


class TicketClaim(Struct, frozen=True, kw_only=True, gc=False):
    """A runner with this key joins with this ticket."""

    ticket: str  #: hash of its secret
    key: str  #: hash of the runner's key


class HostAppeared(Event, frozen=True):
    """A pool reported the capacity of a host."""

    host: str
    capacity: Capacity


class RunnerJoined(Event, frozen=True):
    """A runner connected, with the leases and seats that it has."""

    runner: str
    host: str
    boot_id: str
    pid: int
    start_time: int
    held: list[HeldLease]
    seats: list[int]
    made_for: Need | None = None  #: set: the runner is an allocation of its own, for jobs of this need
    node: NodeFacts | None = None  #: sent by the agent of a node
    parts: list[LeaseRef] = []  #: parts, of leases at other hosts, that it still has
    leaving: bool = False  #: it takes no more work and exits when its jobs have ended
    claim: TicketClaim | None = None  #: by which it is one of a delegated pool; its need is that of the ticket
    left_s: float | None = None  #: seconds until its allocation ends
    machine: str = ""  #: where it is, if its host has another name
    pool: str = ""  #: the delegated pool that it was made for, if it has no ticket to tell it
    unfit: str = ""  #: why nothing can be started on its host


class RunnerIdled(Event, frozen=True):
    """A runner with an allocation of its own has no work and would leave."""

    runner: str


class RunnerParted(Event, frozen=True):
    """The connection to a runner ended. Its jobs may well be running."""

    runner: str


class RunnerReported(Event, frozen=True):
    """A batch of reports from a runner, or a mere heartbeat (seq 0)."""

    runner: str
    seq: int
    started: list[Started]
    ended: list[Finished]
    returned: list[LeaseRef]
    closed: list[int]
    phases: list[Phase] = []
    faults: list[NodeFault] = []
    opened: list[PartOpened] = []
    shut: list[LeaseRef] = []  #: parts of which nothing is left
    paused: list[Paused] = []
    leaving: bool = False  #: it takes no more work and exits when its jobs have ended
    unfit: str | None = None  #: why nothing can be started on its host; empty: it can again; None: as before


class JobsProgressed(Event, frozen=True):
    """Attempts at a runner said how far they have come. Nothing of it is stored."""

    runner: str
    told: list[JobProgress]


class EntrySetAside(Event, frozen=True):
    """An entry of a report that cannot be decided because of a bug (`core.bugs`)."""

    runner: str
    field: str  #: of the report
    lease: LeaseRef  #: job 0: it is about no lease
    said: str  #: the whole entry as JSON
    outcome: Outcome | None = None  #: set: the attempt is over
    started: Started | None = None
    paused: Paused | None = None

    @property
    def job(self) -> int:
        return self.lease.job


class RunnerSettled(Event, frozen=True):
    """A runner is proven dead: these attempts ended as stated, and all others never began.

    If its journal is not `whole`, the fate of the others is unknown.
    """

    runner: str
    by_runner: str
    ended: list[Finished]
    whole: bool = True
    rebooted: bool = False  #: the machine was rebooted, so nothing of the runner is left
    ticket: str = ""  #: name of its ticket, if this is the goodbye of the runner itself


class HostHealed(Event, frozen=True):
    """The site's check found a suspected host healthy."""

    host: str
    why: str


class HostFenced(Event, frozen=True):
    """The machine of a silent host is proven to be off."""

    host: str
    why: str


class ServerScriptEnded(Event, frozen=True):
    """A prologue or an epilogue on the manager's host is over."""

    hook: str
    job: int
    attempt: int
    token: int
    wrong: str = ""  #: what failed; empty: nothing


class TimerFired(Event, frozen=True):
    """Time passed: delays may be over, heartbeats may have timed out."""


class OutputOutdated(Event, frozen=True):
    """Segments of output exceed the configured age or space."""

    segments: list[str]


class PowerCommandEnded(Event, frozen=True):
    """The command that puts a node to sleep or wakes it has ended; `error`: why it failed."""

    host: str
    wake: bool
    error: str = ""


class ManagerPaused(Event, frozen=True):
    """Nothing new may start until the manager is resumed."""


class ManagerDrained(Event, frozen=True):
    """Nothing new may start, and the manager stops once nothing runs."""


class ManagerResumed(Event, frozen=True):
    """Jobs may start again."""


class LimitsDeclared(Event, frozen=True):
    """Limits were declared, changed or withdrawn."""

    by: Asker | None = None
    limits: list[Limit] = []
    withdrawn: list[str] = []


class SiteChanged(Event, frozen=True):
    """An administrator changed records of the site: all of these or none."""

    by: Asker | None = None
    changes: list[tuple[str, str, Any]] = []  #: (kind, name, value or None to remove it)
    about: str = ""  #: description for the log
    base: int | None = None  #: version of the site that the changes are based on; None: any


class Redefinition(Struct, frozen=True, kw_only=True):
    """What jobs that never started are to be from now on, besides their specifications."""

    cmd: Command | None = None  #: None: as before
    after: tuple[After, ...] | None = None  #: None: as before
    unstarted: dict[int, int] = {}  #: job → its latest attempt, if that and all before it were never executed
    owners: dict[str, int] = {}  #: identity key that a job would get → job on disk that has it; 0: none
    ended: dict[int, Job] = {}  #: with `after`: ended jobs on disk that wait for these jobs, directly or not


class JobsModified(Event, frozen=True):
    """Jobs with these specifications got new ones."""

    by: Asker
    jobs: list[int]
    loaded: dict[int, Job]
    specs: dict[int, tuple[int, Spec]]  #: old specification id → (new id, new specification)
    fields: list[str]  #: names of the changed fields
    input_bytes: int | None = None
    notices: dict[int, tuple[str, ...]] = {}  #: old specification id → warnings about the new one
    redefinition: Redefinition | None = None  #: the command, directory, environment or dependencies change


class LearningForgotten(Event, frozen=True):
    """What was learned about these groups was discarded."""

    by: Asker
    names: list[str]


class ClockMoved(Event, frozen=True):
    """The wall clock was set by so many seconds and the manager follows it. First event of its batch."""

    by: float
