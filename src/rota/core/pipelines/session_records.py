"""Events, effects and stored records of sessions of pipelines. Data only."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from rota.core.attempts.leases import JobProgress
from rota.core.effects import Effect
from rota.core.events import Asker, Event
from rota.core.jobs.job import Spec
from rota.core.jobs.outcome import Outcome
from rota.core.pipelines.definition import Definition
from rota.core.pipelines.graph import NamedElement
from rota.plan.policy.limits import Limit


class Work(Struct, frozen=True, array_like=True, gc=False):
    """The specifications of the jobs of a stage, by number."""

    spec: int  #: 0: the session does not take this stage
    after_failure: int = 0  #: of jobs of elements that have failed before; 0: none come here


class SessionStarted(Event, frozen=True):
    """A user runs a pipeline. If this file has a session that is not over, the client watches that instead."""

    by: Asker
    file: str
    cwd: str
    digest: str  #: of the definition as it was read, with what was selected
    definition: Definition
    works: tuple[Work, ...]  #: by stage
    conditions: int  #: specification of the jobs that look at conditions
    specs: dict[int, Spec]
    limits: list[Limit]  #: as the file says; declared if they are not
    stages: tuple[int, ...] | None = None  #: those that were selected; None: all
    on_error: str = "continue"
    restart: bool = False  #: end a session of this file whose definition differs
    watch: bool = False  #: answered by what happens in the session
    rerun: bool = False  #: take nothing for done because an earlier session did it
    admin: bool = True  #: may it take limits of others alone?
    left_out: tuple[NamedElement, ...] = ()  #: elements of the file that were not selected


class SessionActed(Event, frozen=True):
    """A user pauses, resumes, ends or retries a session, or answers its question."""

    by: Asker
    session: int
    verb: str  #: pause, resume, continue, quit, terminate, retry
    elements: tuple[str, ...] = ()  #: retry: only these; none: all that failed


class SessionAttended(Event, frozen=True):
    """How many clients can answer the questions of a session now."""

    session: int
    clients: int


class ConditionsAnswered(Event, frozen=True):
    """What a job that looked at conditions has printed; None: it failed, or its output is lost."""

    session: int
    job: int
    text: str | None


class SliceCommitted(Event, frozen=True):
    """What a session did in one step is on disk, and it has more to do at once."""

    session: int


class TakeNextSlice(Effect, frozen=True):
    """Have `SliceCommitted` happen: others are answered between two slices."""

    session: int


class ReadConditions(Effect, frozen=True):
    """Read what a job that looked at conditions has printed."""

    session: int
    job: int
    outcome: Outcome


class SessionNews(Struct, frozen=True, array_like=True, gc=False):
    """One thing that happened in a session."""

    event: str  #: started, ended, skipped, blocked, retried, suspended, resumed, asked, progress
    at: float
    element: str | None = None  #: None: the whole session, or one of its stages that is not per element
    stage: str | None = None
    job: int | None = None
    attempt: int | None = None
    outcome: str | None = None
    by: str | None = None  #: blocked: the element that failed
    progress: JobProgress | None = None  #: progress: what its job said
    lacks: str | None = None  #: blocked: the placeholder that the stage uses and that is not known


#: States of a session.
RUNNING: Final = "running"
PAUSED: Final = "paused"
ASKING: Final = "asking"  #: an element has failed; its jobs stand still until somebody answers
ENDED: Final = "ended"


class SessionRecord(Struct, kw_only=True):
    """What is stored of a session, apart from its definition and its cells."""

    number: int
    user: str
    file: str
    cwd: str
    digest: str
    works: tuple[Work, ...]
    conditions: int
    stages: tuple[int, ...] | None
    on_error: str
    state: str
    started_at: float
    after: int = 0  #: a session that has to end before this one begins; 0: none
    begun: bool = False
    ended_at: float | None = None
    paused_at: float | None = None
    paused_s: float = 0.0  #: of earlier pauses
    quitting: bool = False
    terminating: bool = False
    question: tuple[int, int] | None = None  #: asking: the element and the stage that failed
    ran: dict[int, int] = {}  #: stage that is for the session as a whole → how often its job has ended
    failed: list[int] = []  #: those of them whose job has failed
    #: cells that failed while the session stood still, to be asked about before it goes on
    unasked: list[tuple[int, int]] = []
    rerun: bool = False  #: it takes nothing for done because an earlier session did it


class CellRow(Struct, array_like=True):
    """A row of cells, as it is stored."""

    statuses: bytes
    jobs: bytes
    marks: bytes
    digests: list[str | None] = []
    durations: bytes = b""
    measured: bytes = b""  #: in earlier sessions; empty: nothing


class LeftOutRow(Struct, array_like=True):
    """A row of elements that a session leaves out, as it is stored."""

    names: list[str]
    depends: list[list[str]]  #: empty once the session has begun
    marks: bytes
    measured: bytes
