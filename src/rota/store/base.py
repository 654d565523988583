"""The `Store` contract: what the manager may ask of a store, and what every store guarantees.

- `commit` returns only when all rows of the batch are durable. A batch is stored whole or not at all.
- `load` returns exactly what was committed.
- Reads see a committed state, never part of a batch. Any thread may read while a commit is in progress.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from rota.core.accounts.sums import HourAccount, MinuteRow
from rota.core.changes import Changes
from rota.core.jobs.job import Parent
from rota.core.output.output_blocks import Output
from rota.core.rows import EventRow, KnownJob, MachineRow, SubmissionRow
from rota.core.stored import StoredAttempt, StoredJob, StoreSnapshot
from rota.plan.placement.given import Given
from rota.plan.size import Size
from rota.pool_names import pool_of_runner
from rota.store.past import PastAttempt, PastSum


class Brief(Struct, array_like=True, gc=False):
    """What an `add` must know of a job that already exists."""

    key: str
    id: int
    state: int  #: as last written
    spec_id: int
    after: str | None  #: as JSON


class StoredOutput(NamedTuple):
    """Where the output of an attempt is stored."""

    attempt: tuple[int, int]  #: (job, number)
    output: Output


class RunningAttempt(Struct, frozen=True, gc=False):
    """A running attempt, with what accounting needs of it."""

    spec: int
    size: Size | None
    given: Given | None
    started_at: float


class Accounts(Struct, gc=False):
    """Hourly sums, and the running attempts that are not in them yet, from one consistent read."""

    rows: list[HourAccount]  #: an hour of an owner may occur more than once
    running: list[RunningAttempt]
    asked_since: int = 0  #: first hour whose requested amounts are known


class Point(Struct, frozen=True, gc=False):
    """What one attempt of a learning group asked for, got and used."""

    job: int | None
    at: float
    input_bytes: int | None
    given_mem: int
    used_mem: int  #: as in `core.learning.observation`
    given_time_s: float
    used_time_s: float
    ok: bool
    asked_mem: int | None = None  #: None: nothing, or an earlier version did not record it
    asked_time_s: float | None = None


class Clause(Struct, frozen=True, gc=False):
    """A conjunction of conditions on jobs; an empty field is no condition."""

    low: int = 0
    high: int = 0  #: inclusive; 0 = no bound
    group: str = ""
    user: str = ""
    host: str = ""  #: one of the hosts of the newest attempt
    queue: str = ""
    project: str = ""
    submission: str = ""
    state: int = 0
    array: int = 0  #: elements of this array…
    indexes: tuple[tuple[int, int], ...] = ()  #: …whose index is in one of these spans; empty: all
    group_prefix: str = ""  #: one of its groups begins like this
    name: str = ""
    name_prefix: str = ""
    cmd_text: str = ""  #: text in the command as `one_line` has it; compared `folded`
    exits: tuple[int, int] | None = None  #: the newest attempt ended with an exit code in this range
    gang: str = ""
    pool: str = ""  #: named by the job, or that of the host of its newest attempt…
    pool_hosts: tuple[str, ...] = ()  #: …which is one of these, or a runner named after the pool
    before: float = 0.0  #: ended, or was submitted if it has not ended, before this moment; 0: any time

    @property
    def one(self) -> int:
        """The id, if the clause names exactly one job by id; otherwise 0."""
        return self.low if self.low and self == Clause(low=self.low, high=self.low) else 0

    @property
    def one_element(self) -> bool:
        """Does it name one element of an array?"""
        return bool(self.array) and len(self.indexes) == 1 and self.indexes[0][0] == self.indexes[0][1]


def in_pool(clause: Clause, host: str) -> bool:
    """Does this host belong to the pool of the clause?"""
    return host in clause.pool_hosts or pool_of_runner(host) == clause.pool


class Order(Struct, frozen=True, gc=False):
    """The order of a list of jobs. Jobs that compare equal, or have no value, are ordered by id, in the same
    direction."""

    by: str = "id"  #: one of `ORDERS`
    descending: bool = False


#: Sort keys. `priority` is from the specification, the others are from the job and its newest attempt.
ORDERS: Final = ("id", "submitted", "started", "ended", "wall", "cpu", "mem", "priority")


_FOLDED: Final = {ord(letter): ord(letter.lower()) for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def folded(text: str) -> str:
    """Text as searches compare it: ASCII letters in lower case, all others unchanged."""
    return text.translate(_FOLDED)


#: Called with the deployment to which a store belongs (empty: none yet); raises if it may not be used.
Approve = Callable[[str], None]
#: Called with the completed fraction of a backup (0 to 1); raises to stop it.
Progress = Callable[[float], None]


class BackedUp(Struct, frozen=True):
    """What a backup contains."""

    jobs: int  #: without those of unfinished uploads
    generation: int  #: which start of the manager it is from


class Found(Struct, frozen=True):
    """What a backup contains, and what a restore would do with it."""

    made_at: str  #: when it was backed up, ISO; empty: it does not say
    jobs: int
    waiting: int  #: not ended and not leased: these will run
    leased: list[int]  #: jobs that had an attempt: these will be lost
    next_job: int  #: the id that will be given out next
    paused: bool


class Store(Protocol):
    """The port. Adapters are named for their technology: `SqliteStore`, `MemoryStore`."""

    def load(self) -> StoreSnapshot:
        """Read everything that is live. Unfinished uploads are removed first."""

    def commit(self, changes: Changes) -> None:
        """Write one batch durably.

        Raises `StoreFull` if nothing was written and the same batch may be tried again, and `StoreFailed` if the
        outcome is unknown: the manager must exit.
        """

    def can_accept(self, live_jobs: int) -> bool:
        """Is there enough free disk to accept more jobs, given how many are live?"""

    def known_keys(self, user: str, keys: list[str]) -> dict[str, KnownJob]:
        """The newest job with each of these keys; replaced jobs do not count."""

    def namesakes(self, keys: list[str]) -> list[Brief]:
        """All jobs with one of these keys, except replaced ones."""

    def briefs(self, ids: list[int]) -> list[Brief]:
        """These jobs by id; unknown and replaced ones are left out."""

    def submission(self, submission: str) -> SubmissionRow | None:
        """The `add` with this id, if there was one."""

    def last_of_input(self, user: str, name: str) -> SubmissionRow | None:
        """The newest finished `add` of this input of this user."""

    def last_submission(self, user: str) -> SubmissionRow | None:
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

        With `search`, only jobs whose command contains this text (`folded`) or whose specification is in `named`.
        `specs` maps every specification to its priority.
        """

    def jobs(self, ids: list[int]) -> list[StoredJob]:
        """These jobs with their newest attempt, in order of id; unknown ids are left out."""

    def tally(self, clauses: list[Clause]) -> dict[tuple[str, int], int]:
        """(group, state) → number of jobs, over the jobs that match any clause."""

    def attempts(self, job: int) -> list[StoredAttempt]:
        """All attempts of a job, by number."""

    def returned(self, jobs: list[int]) -> dict[int, tuple[int, str]]:
        """What calls of functions left last, by job: the number of that attempt, and a `Returned` as JSON."""

    def events(self, job: int) -> list[EventRow]:
        """The events of a job, oldest first."""

    def dependents(self, parents: list[Parent]) -> list[int]:
        """Dependents of these jobs and groups that were written as `Changes.edges`, ascending."""

    def children(self, parent: Parent, *, limit: int) -> tuple[list[int], int]:
        """The first `limit` jobs that ever depended on this job or group, ascending, and their total number. Some
        may belong to an unfinished submission."""

    def followers(self, parents: list[int]) -> list[int]:
        """All jobs that ever depended on one of these jobs, ascending."""

    def accounts(self, *, first: int, end: int) -> Accounts:
        """The sums of the hours from `first` up to `end`, and the running attempts. Use that began before `first`
        and continues is a step at that hour."""

    def minutes(self, *, since: int) -> list[MinuteRow]:
        """Minutes from this one on, in order. They are kept for a week."""

    def machine_hosts(self) -> list[str]:
        """Every machine that has a history, by name."""

    def machine_rows(self, *, host: str, since: int, until: int) -> list[MachineRow]:
        """The history of machines, by host and time: the row that was open at `since` and every later one before
        `until` (microseconds). An empty `host` means all hosts."""

    def past(self, *, since: float, until: float, limit: int) -> list[PastAttempt]:
        """At most `limit` ended attempts that overlap a window, by job."""

    def past_hosts(self, *, since: float, until: float, limit: int) -> tuple[int, set[str]]:
        """How many ended attempts overlap a window, and their hosts, without reading the attempts."""

    def past_sums(self, *, since: float, until: float, slices: int) -> list[PastSum]:
        """All ended attempts that overlap a window, summed by the slices in which they start and end."""

    def ended_between(self, *, since: float, until: float) -> int:
        """How many attempts ended in [`since`, `until`), removed jobs excluded."""

    def points(self, group: str, *, limit: int) -> list[Point]:
        """What the newest attempts of a learning group asked for and used, newest first."""

    def env(self, env_id: int) -> bytes:
        """A stored environment: NUL-separated K=V."""

    def segments_in_use(self) -> set[str]:
        """Names of the output segments that any attempt refers to."""

    def outputs(self, *, after: tuple[int, int], limit: int) -> list[StoredOutput]:
        """Outputs of ended attempts that printed something, in order, starting after `after`."""

    def pruned(self, segments: Collection[str]) -> set[str]:
        """Which of these segments were pruned, because of their age or for space."""

    def close(self) -> None:
        """Release what it holds. Safe to call twice."""

    def back_up(self, draft: Path, *, target: Path, progress: Progress) -> BackedUp:
        """Write one committed state of everything to an empty file. Blocks; commits go on meanwhile.

        The file is then complete and checked, but not synced. `target`: the name that it will get, for messages.
        Raises `RotaError`, `OSError` if the file cannot be written, or what `progress` raises.
        """


class Restoring(Protocol):
    """A backup that was checked and copied, but not put in place yet."""

    found: Found
    deployment: str  #: to which the backup belongs; empty: none

    def put_in_place(self, *, deployment: str, at: str, pause: bool) -> str | None:
        """Make it the store, marked as restored `at` this time and as belonging to `deployment`. Its generation
        is that of the store it replaces, if that is higher. `pause`: the next manager starts paused.

        Returns where the replaced store is kept, if there was one. Raises `RotaError` or `OSError`.
        """

    def close(self) -> None:
        """Remove the copy, if it was not put in place. Safe to call twice."""


class Adopting(Protocol):
    """A store that was checked, and that is about to be taken into a deployment."""

    deployment: str  #: to which it belongs so far; empty: none

    def check_unchanged(self) -> None:
        """Refuse a store that was changed since it was closed. Raises `StoreRefused`."""

    def accept_changes(self) -> None:
        """From now on, changes since it was closed are no reason to refuse it. Raises `OSError`."""

    def make_copy(self, *, deployment: str, at: str, origin: str, kind: str) -> list[int]:
        """Make it the store of a new deployment. Its leases are marked for the next manager as those of its
        `origin`, which is of this `kind`; returns their jobs. Raises `StoreRefused`."""

    def close(self) -> None:
        """Let go of it. Safe to call twice."""


class ClosedStore(Protocol):
    """A store that nothing has open. The caller holds the lock of its home, except for `check_backup`."""

    def exists(self) -> bool:
        """Is there anything that a restore would replace?"""

    def deployment(self) -> str:
        """The deployment to which it belongs; empty: none. Raises `RotaError`."""

    def back_up(self, draft: Path, *, target: Path, progress: Progress) -> BackedUp:
        """As `Store.back_up`. Raises `NotFound` if there is no store."""

    def check_backup(self, file: Path) -> None:
        """Refuse a file that cannot be a backup, without reading all of it. Raises `RotaError`."""

    def restoring(self, file: Path) -> Restoring:
        """Check a backup and copy it, so that it can be put in place. Raises `RotaError`."""

    def adopting(self) -> Adopting:
        """Check it, so that it can be taken into a deployment. Raises `NotFound`, `StoreRefused` or `OSError`."""
