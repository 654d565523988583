"""The rows that a batch of decisions writes, in one transaction.

Each list holds records in the column order of its statement (`store/sqlite/sql`), so a store encodes a whole list
at once and runs one statement over it.
"""

from __future__ import annotations

from rota.core.accounts.sums import AccountKey, AccountSums, MinuteSums
from rota.core.rows import (
    AfterRow,
    AttemptRow,
    EdgeRow,
    EndRow,
    EnvRow,
    EventRow,
    GivenRow,
    IntentRow,
    JobRow,
    JobStateRow,
    MachineRow,
    ObservationRow,
    RekeyedRow,
    ReplacedRow,
    RespecifiedRow,
    ReturnedRow,
    RunnerRow,
    SpecRow,
    StartRow,
    SubmissionRow,
    VoidRow,
)


class Changes:
    """Rows to write. Merging two `Changes` in order equals committing one after the other."""

    __slots__ = (
        "accounts",
        "attempts",
        "children",
        "dep_groups",
        "dropped",
        "edges",
        "ends",
        "envs",
        "events",
        "forgotten",
        "intents",
        "job_states",
        "jobs",
        "limits",
        "machines",
        "meta",
        "minutes",
        "moved_by",
        "observations",
        "pruned",
        "reafter",
        "regiven",
        "rekeyed",
        "removed",
        "replaced",
        "respecified",
        "returned",
        "runners",
        "site",
        "specs",
        "starts",
        "submissions",
        "tally",
        "undone",
        "voids",
    )  # fmt: skip

    def __init__(self) -> None:
        self.submissions: list[SubmissionRow] = []
        #: abandoned uploads; their jobs are in `undone`
        self.dropped: list[str] = []
        #: jobs of refused uploads. Deleted before anything else is written, because the batch may reuse their ids.
        self.undone: list[int] = []
        self.envs: list[EnvRow] = []
        self.specs: list[SpecRow] = []
        self.jobs: list[JobRow] = []
        #: by job; written after everything else
        self.job_states: dict[int, JobStateRow] = {}
        #: by (job, number): what the attempt has now
        self.regiven: dict[tuple[int, int], GivenRow] = {}
        #: by job: modified jobs
        self.respecified: dict[int, RespecifiedRow] = {}
        #: by job: modified jobs that are another job by now
        self.rekeyed: dict[int, RekeyedRow] = {}
        #: by job: jobs whose dependencies changed. Their rows in `edges` and `children` replace the stored ones.
        self.reafter: dict[int, AfterRow] = {}
        #: jobs that can never be re-opened
        self.replaced: list[ReplacedRow] = []
        #: only dependents that a group can re-open
        self.edges: list[EdgeRow] = []
        #: all dependents, for display only
        self.children: list[EdgeRow] = []
        #: dependency group → change of its number of complete members; 0 makes the group known
        self.dep_groups: dict[str, int] = {}
        #: limit → declaration as JSON, or None to withdraw it
        self.limits: dict[str, str | None] = {}
        #: (kind, name) of a site record → value as JSON, or None to remove it
        self.site: dict[tuple[str, str], str | None] = {}
        self.observations: list[ObservationRow] = []
        #: learning groups whose observations from before this batch are dropped
        self.forgotten: list[str] = []
        self.attempts: list[AttemptRow] = []
        self.starts: list[StartRow] = []
        self.ends: list[EndRow] = []
        #: what calls of functions left; their ends are in `ends`
        self.returned: list[ReturnedRow] = []
        #: leases that were never executed; the attempt's row is marked void
        self.voids: list[VoidRow] = []
        #: output segments removed for age or space
        self.pruned: list[str] = []
        #: removed jobs
        self.removed: list[int] = []
        #: lines of stories
        self.events: list[EventRow] = []
        self.runners: list[RunnerRow] = []
        #: (report group, terminal state) → change of the number of finished jobs
        self.tally: dict[tuple[str, int], int] = {}
        #: key → value: small facts about the deployment; None: it is not known any more
        self.meta: dict[str, str | None] = {}
        #: increments (`core.accounts.accounting`)
        self.accounts: dict[AccountKey, AccountSums] = {}
        #: minute since 1970 → increments
        self.minutes: dict[int, MinuteSums] = {}
        #: the history of machines
        self.machines: list[MachineRow] = []

        #: by name: runners that delegated pools were asked for; None: nothing of it is left
        self.intents: dict[str, IntentRow | None] = {}

        #: Seconds by which to shift the times of unended jobs and attempts, before any other row is written.
        self.moved_by = 0.0

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)
