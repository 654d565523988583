"""Everything that can happen, in the past tense. The only way to change the world.

`by` is the connection that asked, if somebody did; the answer to it is an effect.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from rota.core.attempts.leases import Finished, HeldLease, LeaseRef, NodeFault, PartOpened, Paused, Phase, Started
from rota.core.jobs.job import Command, Condition, Job, Parent, Spec
from rota.plan.need import Need
from rota.plan.policy.limits import Limit
from rota.plan.site.node_facts import NodeFacts
from rota.plan.size import Capacity


class Event(Struct, frozen=True, kw_only=True, gc=False):
    """Base of all events."""


class Asker(Struct, frozen=True, gc=False):
    """Who asked: a connection, the number of the request, and the user behind it."""

    connection: int
    n: int
    user: str


class EntryAfter(Struct, frozen=True, gc=False):
    """A dependency of one entry of a submission; `parent` is an entry's index when `local`, else a job's id
    or a dependency group."""

    entry: int
    parent: Parent
    condition: Condition
    local: bool


class FormerJob(Struct, frozen=True, gc=False):
    """An ended job, perhaps only on disk: as much of it as an `add` must know."""

    id: int
    key: str
    spec: Spec
    after: str | None = None  #: what it waited for, as JSON


class ChunkArrived(Event, frozen=True):
    """A piece of a submission, with everything the store knows about its commands."""

    by: Asker
    submission: str
    first: int
    cmds: list[Command]
    keys: list[str]
    specs: list[Spec]  #: all of the submission so far
    spec_ids: list[int]  #: their numbers in the store
    spec_of: list[int] | None
    lines: list[int] | None
    after: list[EntryAfter]
    known: dict[str, tuple[int, int]]  #: key → (id, state) of finished jobs in the store
    loaded: dict[int, Job]  #: those of `known` that will be retried
    last: bool
    fresh: frozenset[int] | bool = False  #: these entries (or all) are new jobs, whatever is known
    check: bool = False
    allow_unsatisfiable: frozenset[int] | bool = False
    elements: dict[int, tuple[int, int]] = {}  #: entry → number of the array in this submission, index
    inputs: dict[int, int] = {}  #: entry → bytes of its input
    dependents: dict[int, Job] = {}  #: with the last chunk: complete jobs on disk that it may re-open
    limits: list[Limit] = []  #: with the last chunk: limits that its jobs declare
    warnings: list[str] = []  #: with the last chunk: what the user should know about it
    rerun: frozenset[int] | bool = False  #: these entries (or all) take the place of those that ended
    namesakes: dict[str, list[FormerJob]] = {}  #: for `rerun`: all jobs on disk with such a key
    formers: dict[int, FormerJob] = {}  #: complete jobs on disk whose entries have dependencies now
    followers: dict[int, Job] = {}  #: with the last chunk: ended jobs on disk that waited for what it may replace
    input: str = ""  #: with the last chunk: which input this is, of those that the user has
    previous: list[int] = []  #: with the last chunk: the jobs of this input when it was added last, in its order
    dropped: dict[int, FormerJob] = {}  #: of these and `kept`, failed and cancelled ones on disk
    kept: list[int] = []  #: with the last chunk: jobs that the input had before that and that stayed then


class LibraryGrew(Event, frozen=True):
    """Specifications and environments came that nobody had used before."""

    specs: list[tuple[int, str]]  #: (id, JSON)
    envs: list[tuple[int, str, str]]  #: (id, digest, base64)


class UploadDropped(Event, frozen=True):
    """A submission will not be completed: its client went away or sent something wrong."""

    submission: str


class JobsKilled(Event, frozen=True):
    by: Asker
    jobs: list[int]


class JobsHeld(Event, frozen=True):
    by: Asker
    jobs: list[int]


class JobsReleased(Event, frozen=True):
    by: Asker
    jobs: list[int]


class JobsRetried(Event, frozen=True):
    by: Asker
    jobs: list[int]
    loaded: dict[int, Job]


class JobsRemoved(Event, frozen=True):
    by: Asker
    jobs: list[int]
    loaded: dict[int, Job]
    cascade: bool = False  #: with all that wait for them
    only: str = ""  #: whose jobs may go; empty: everybody's
    named: frozenset[int] = frozenset()  #: those that were named one by one: they go, or nothing does
    waiting: bool = False  #: those that wait go as well


class JobsSuspended(Event, frozen=True):
    by: Asker
    jobs: list[int]
    keep: bool = False  #: they give up nothing


class JobsResumed(Event, frozen=True):
    by: Asker
    jobs: list[int]


class JobsSignalled(Event, frozen=True):
    """A signal for running jobs; without a name: that which asks each for a checkpoint."""

    by: Asker
    jobs: list[int]
    signal: str = ""  #: like TERM


class WalltimeAsked(Event, frozen=True):
    by: Asker
    job: int
    seconds: float
    relative: bool = False  #: so much more (or less) than it has
    force: bool = False  #: whatever was promised to others


class DeathConfirmed(Event, frozen=True):
    """Somebody vouches that these lost jobs are dead."""

    by: Asker
    jobs: list[int]


class HostAppeared(Event, frozen=True):
    """A pool says what a host has to give."""

    host: str
    capacity: Capacity


class RunnerJoined(Event, frozen=True):
    runner: str
    host: str
    boot_id: str
    pid: int
    start_time: int
    held: list[HeldLease]
    seats: list[int]
    made_for: Need | None = None  #: an allocation of its own, for jobs of this need
    node: NodeFacts | None = None  #: what the agent of a node says about its host
    parts: list[LeaseRef] = []  #: of leases of other hosts, what is still there
    leaving: bool = False  #: it will end when its jobs have


class RunnerIdled(Event, frozen=True):
    """A runner with an allocation of its own has nothing to do and would leave."""

    runner: str


class RunnerParted(Event, frozen=True):
    """The connection to a runner ended. That says nothing about its jobs."""

    runner: str


class RunnerReported(Event, frozen=True):
    """A batch of what happened at a runner, or a mere touch (seq 0)."""

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
    leaving: bool = False  #: it will end when its jobs have


class RunnerSettled(Event, frozen=True):
    """Proof about a runner that is gone: these attempts ended like this, all others never began, or, if
    its journal is not `whole`, nobody knows."""

    runner: str
    by_runner: str
    ended: list[Finished]
    whole: bool = True
    rebooted: bool = False  #: the machine was started anew since: certainly nothing of it is left


class HostHealed(Event, frozen=True):
    """The site's own check says that a suspected host is well."""

    host: str
    why: str


class HostFenced(Event, frozen=True):
    """There is proof that the machine of a silent host is off."""

    host: str
    why: str


class ServerScriptEnded(Event, frozen=True):
    """A prologue or an epilogue on the manager's host is over."""

    hook: str
    job: int
    attempt: int
    token: int
    wrong: str = ""  #: empty: it went well


class TimerFired(Event, frozen=True):
    """Time has passed: delays may be over, runners may have been silent for too long."""


class OutputOutdated(Event, frozen=True):
    """Segments of output are too old, or take too much space."""

    segments: list[str]


class PowerCommandEnded(Event, frozen=True):
    """The command that puts a node to sleep, or wakes it, is over; `error`: why it failed."""

    host: str
    wake: bool
    error: str = ""


class ManagerPaused(Event, frozen=True):
    """Nothing new may start until somebody resumes."""


class ManagerDrained(Event, frozen=True):
    """Nothing new may start, and the manager will stop when nothing runs any more."""


class ManagerResumed(Event, frozen=True):
    """Jobs may start again."""


class LimitsDeclared(Event, frozen=True):
    """Limits are like this from now on, and some do not exist any more."""

    by: Asker | None = None
    limits: list[Limit] = []
    withdrawn: list[str] = []


class SiteChanged(Event, frozen=True):
    """An administrator changed records of the site, all of them or none."""

    by: Asker | None = None
    changes: list[tuple[str, str, Any]] = []  #: (kind, name, value; None: it is removed)
    about: str = ""  #: for the log: what was done
    base: int | None = None  #: the version that the changes were made from; None: any


class JobsModified(Event, frozen=True):
    """Jobs with these specifications get others."""

    by: Asker
    jobs: list[int]
    loaded: dict[int, Job]
    specs: dict[int, tuple[int, Spec]]  #: number of the old one → number of the new one, and it
    fields: list[str]  #: the names of what changes
    input_bytes: int | None = None
    notices: dict[int, tuple[str, ...]] = {}  #: number of the old one → what the user should know of the new one


class LearningForgotten(Event, frozen=True):
    """What was learned about these groups counts no more."""

    by: Asker
    names: list[str]


class ClockMoved(Event, frozen=True):
    """The manager follows the wall clock, which was set by so many seconds; the first event of its batch."""

    by: float
