"""The `Store` contract: what the manager may ask of a store, and what every store promises.

Promises: `commit` returns only when all rows of the batch are durable, and a batch is there whole
or not at all; `load` gives back exactly what was committed; reads see some committed state, never a
part of a batch, and may be called from any thread while a commit is under way.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

from rota.core.changes import Changes
from rota.core.jobs.job import After, Behaved, Command, Parent, Spec
from rota.core.output.output_blocks import Output
from rota.core.output.output_report import OutputReport
from rota.plan.placement import Given
from rota.plan.size import Floor, Size
from rota.store.past import PastAttempt, PastSum


class StoredJob(Struct, gc=False):
    """One row of `jobs`, with the newest attempt's row beside it where a query asks for it."""

    id: int
    key: str
    submission: str
    spec_id: int
    group: str
    user: str
    cmd: Command
    state: int  #: of a live job only as it was last written; memory knows better
    attempt: int
    tries: int
    submitted_at: float
    ready_at: float | None
    due_at: float | None
    ended_at: float | None
    reason_code: str | None
    reason_message: str | None
    after: tuple[After, ...]
    newest: StoredAttempt | None = None
    floor: Floor | None = None
    input_bytes: int | None = None
    array: int | None = None
    index: int | None = None
    replaced_by: int | None = None  #: the job that took its place; 0: its input has no such line any more


class Brief(Struct, array_like=True, gc=False):
    """What an `add` must know of a job that was there before."""

    key: str
    id: int
    state: int  #: as it was last written
    spec_id: int
    after: str | None  #: as JSON


class StoredAttempt(Struct, gc=False):
    """One row of `attempts`. `outcome` is None while it is open."""

    job: int
    number: int
    token: int
    runner: str
    host: str
    leased_at: float
    started_at: float | None = None
    pid: int | None = None
    seat: int | None = None
    outcome: str | None = None  #: complete, failed, cancelled, lost, void
    exit_code: int | None = None
    signal: int | None = None
    reason_code: str | None = None
    reason_message: str | None = None
    ended_at: float | None = None
    cpu_s: float | None = None
    peak_mem: int | None = None
    peak_disk: int | None = None
    segment: str | None = None
    offset: int | None = None
    out_len: int | None = None
    err_len: int | None = None
    out_total: int | None = None
    err_total: int | None = None
    spec: int | None = None  #: the job's specification at the time; None in rows of older versions
    size: Size | None = None  #: where it was not that of the specification
    behaviours: tuple[Behaved, ...] = ()
    given: Given | None = None  #: what the planner gave it
    kept: OutputReport | None = None  #: what is known of its output; None: nothing, or it printed nothing


def output_of(row: StoredAttempt) -> Output:
    """Where the output of an attempt lies."""
    return Output(
        segment=row.segment or "",
        offset=row.offset or 0,
        out_len=row.out_len or 0,
        err_len=row.err_len or 0,
        out_total=row.out_total or 0,
        err_total=row.err_total or 0,
        kept=row.kept,
    )


class StoredEvent(Struct, gc=False):
    """One line of a job's story."""

    at: float
    job: int
    attempt: int
    kind: str
    text: str


class StoredSubmission(Struct, gc=False):
    """An `add` that was accepted, or that is still being uploaded (`answer` is None)."""

    id: str
    user: str
    at: float
    count: int
    answer: str | None
    input: str | None = None  #: what was added, a path or a name, if it is the last one of that


class StoreSnapshot(Struct, gc=False):
    """All that a manager needs in memory to go on."""

    jobs: list[StoredJob]  #: every job that is not terminal, in order of id, `newest` not filled
    open_attempts: list[StoredAttempt]
    specs: dict[int, Spec]  #: all
    env_ids: dict[str, int]  #: digest → id, all
    outcomes: bytes  #: index = job id; terminal state number, 0 if live, 255 if there is no such job
    tally: dict[tuple[str, int], int]
    runners: list[tuple[Any, ...]]  #: rows as in `Changes.runners`, those that hold open attempts
    meta: dict[str, str]
    next_job: int
    next_spec: int
    next_env: int
    limits: dict[str, str] = {}  #: name → declaration as JSON
    dep_groups: dict[str, int] = {}  #: every dependency group that ever had a member → complete members
    #: (job, spec id) of failed and cancelled jobs that are in dependency groups (`Spec.dep_groups`) and were not
    #: replaced
    bad_members: list[tuple[int, int]] = []
    #: all rows of `Changes.edges` whose dependent still exists
    edges: list[tuple[Parent, int]] = []
    #: job → spec id of the dependents in `edges` that are in dependency groups, ended or not
    edge_specs: dict[int, int] = {}
    #: rows as in `Changes.observations` but without the job, of each learning group the newest `OBSERVATIONS`,
    #: oldest first
    observations: list[tuple[Any, ...]] = []
    site: dict[tuple[str, str], str] = {}  #: (kind, name) → value as JSON
    #: host → what it did last and since when (microseconds), of those that are not gone
    host_states: dict[str, tuple[str, int]] = {}
    replaced: list[int] = []  #: jobs whose place another took


#: So many observations of a learning group are loaded; older ones may be removed.
OBSERVATIONS: Final = 1024


class RunningAttempt(Struct, frozen=True, gc=False):
    """An attempt that goes on, with what accounts for it."""

    spec: int
    size: Size | None
    given: Given | None
    started_at: float


class Accounts(Struct, gc=False):
    """Sums of hours and what is not in them yet, of one moment."""

    #: (hour, user, project, queue, and the columns of `core.accounts.accounting`); of one key there may be several
    rows: list[tuple[Any, ...]]
    running: list[RunningAttempt]
    asked_since: int = 0  #: the first hour of which it is known what was asked for


class Point(Struct, frozen=True, gc=False):
    """What one attempt of a learning group asked for, was given and used."""

    job: int | None
    at: float
    input_bytes: int | None
    given_mem: int
    used_mem: int  #: as in `core.learning.observation`
    given_time_s: float
    used_time_s: float
    ok: bool
    asked_mem: int | None = None  #: None: nothing, or an earlier version did not write it down
    asked_time_s: float | None = None


class Clause(Struct, frozen=True, gc=False):
    """Jobs for which all of this holds; an empty field says nothing."""

    low: int = 0
    high: int = 0  #: inclusive; 0 = no bound
    group: str = ""
    user: str = ""
    host: str = ""  #: one of those of the newest attempt
    queue: str = ""
    project: str = ""
    submission: str = ""
    state: int = 0
    array: int = 0  #: elements of this array…
    indexes: tuple[tuple[int, int], ...] = ()  #: …whose index is in one of these spans; empty: all

    @property
    def one(self) -> int:
        """The job that this names, and nothing else; 0: it describes jobs."""
        return self.low if self.low and self == Clause(low=self.low, high=self.low) else 0

    @property
    def one_element(self) -> bool:
        """Does it name one element of an array?"""
        return bool(self.array) and len(self.indexes) == 1 and self.indexes[0][0] == self.indexes[0][1]


class Order(Struct, frozen=True, gc=False):
    """In which order jobs are listed. Of those that are equal, or of which nothing is known, the newest comes
    first where the largest does."""

    by: str = "id"  #: one of `ORDERS`
    descending: bool = False


#: What jobs can be listed by. `priority` is of their specification, the rest of the newest attempt.
ORDERS: Final = ("id", "submitted", "started", "ended", "wall", "cpu", "mem", "priority")


_FOLDED: Final = {ord(letter): ord(letter.lower()) for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def folded(text: str) -> str:
    """As searches compare: capitals of ASCII are small, other letters stay as they are."""
    return text.translate(_FOLDED)


class Store(Protocol):
    """The port. Adapters are named for their technology: `SqliteStore`, `MemoryStore`."""

    def load(self) -> StoreSnapshot:
        """Read everything live. Uploads that were never finished are removed first."""

    def commit(self, changes: Changes) -> None:
        """Write one batch durably. Raises `StoreFull` (nothing written; the same batch may be
        tried again) or `StoreFailed` (unknown; the manager must exit)."""

    def can_accept(self, live_jobs: int) -> bool:
        """Is there room on the disk for more jobs beside these?"""

    def known_keys(self, user: str, keys: list[str]) -> dict[str, tuple[int, int]]:
        """key → (newest job with that key, its state), for those that exist and were not replaced."""

    def namesakes(self, keys: list[str]) -> list[Brief]:
        """All jobs that have one of these keys and were not replaced."""

    def briefs(self, ids: list[int]) -> list[Brief]:
        """Those of these jobs that exist and were not replaced, by id."""

    def submission(self, submission: str) -> StoredSubmission | None:
        """The `add` with this id, if there was one."""

    def last_of_input(self, user: str, name: str) -> StoredSubmission | None:
        """The newest finished `add` of this input of this user."""

    def last_submission(self, user: str) -> StoredSubmission | None:
        """The newest finished `add` of this user."""

    def find(self, clauses: list[Clause], *, above: int, limit: int) -> list[int]:
        """Ids above `above` that match any clause, ascending, at most `limit`."""

    def count(self, clauses: list[Clause], *, search: str = "", named: Collection[int] = ()) -> int:
        """How many jobs match any clause and the search, as in `ordered`."""

    def ordered(
        self,
        clauses: list[Clause],
        order: Order,
        *,
        search: str = "",
        named: Collection[int] = (),
        specs: Mapping[int, int] = {},
        limit: int = -1,
    ) -> array[int]:
        """Ids of all jobs that match any clause, in this order, or the first `limit` of them.

        With `search`, those whose command has this text (`folded`), or whose specification is `named`.
        `specs` gives the priority of every specification.
        """

    def jobs(self, ids: list[int]) -> list[StoredJob]:
        """These jobs with their newest attempt, in order of id; unknown ids are left out."""

    def tally(self, clauses: list[Clause]) -> dict[tuple[str, int], int]:
        """(group, state) → number of jobs, over the jobs that match any clause."""

    def attempts(self, job: int) -> list[StoredAttempt]:
        """All attempts of a job, by number."""

    def events(self, job: int) -> list[StoredEvent]:
        """The story of a job, oldest first."""

    def dependents(self, parents: list[Parent]) -> list[int]:
        """Dependents of these jobs and groups that were written as `Changes.edges`, ascending."""

    def children(self, parent: Parent, *, limit: int) -> tuple[list[int], int]:
        """The first so many jobs that wait or ever waited for this job or group, ascending, and how many there
        are. Some may belong to a submission that is not finished."""

    def followers(self, parents: list[int]) -> list[int]:
        """All jobs that wait or ever waited for one of these jobs, ascending."""

    def accounts(self, *, first: int, end: int) -> Accounts:
        """The sums of the hours from `first` up to `end`, and what runs. What began before `first` and goes on
        is a step at that hour."""

    def minutes(self, *, since: int) -> list[tuple[int, ...]]:
        """(minute, and the columns of `core.accounts.accounting`) from this minute on, in order. A week is
        kept."""

    def host_states(self, *, host: str, since: int, until: int) -> list[tuple[str, int, str]]:
        """(host, at, state), by host and time: what it did between two moments (microseconds), beginning with
        what it did at the first of them. No host: all."""

    def past(self, *, since: float, until: float, limit: int) -> list[PastAttempt]:
        """At most so many of the attempts that have ended and of which a part lies within a window, by job."""

    def past_hosts(self, *, since: float, until: float, limit: int) -> tuple[int, set[str]]:
        """How many they are, and on which hosts they ran, without reading them."""

    def past_sums(self, *, since: float, until: float, slices: int) -> list[PastSum]:
        """The same attempts, all of them, summed up by the slices of the window in which they begin and end."""

    def ended_between(self, *, since: float, until: float) -> int:
        """How many attempts ended at `since` or later and before `until`, of jobs that were not removed."""

    def points(self, group: str, *, limit: int) -> list[Point]:
        """What the newest attempts of a learning group asked for and used, newest first."""

    def env(self, env_id: int) -> bytes:
        """A stored environment: NUL-separated K=V."""

    def segments_in_use(self) -> set[str]:
        """Names of the output segments that some attempt refers to."""

    def outputs(self, *, after: tuple[int, int], limit: int) -> list[tuple[tuple[int, int], Output]]:
        """((job, number), where its output lies) of attempts that printed something and have ended, in order, from
        behind `after` on."""

    def pruned(self, segments: Collection[str]) -> set[str]:
        """Those of these segments that were removed because of their age or for space."""

    def close(self) -> None:
        """Release files and locks. Safe to call twice."""
