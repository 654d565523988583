"""The rows that a batch of decisions writes, in one transaction.

Each list holds tuples in the column order of its statement (`store/sqlite/sql`), so a store encodes a whole list
at once and runs one statement over it.
"""

from __future__ import annotations

from typing import Any

Row = tuple[Any, ...]


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
        "host_states",
        "job_states",
        "jobs",
        "limits",
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
        #: (id, user, at, count, answer as JSON or None while the upload goes on, input or None)
        self.submissions: list[Row] = []
        #: (submission,): abandoned uploads; their jobs are in `undone`
        self.dropped: list[Row] = []
        #: (id,): jobs of refused uploads. Deleted before anything else is written, because the batch may reuse
        #: their ids.
        self.undone: list[Row] = []
        #: (id, digest, base64 of NUL-separated K=V)
        self.envs: list[Row] = []
        #: (id, JSON of the Spec)
        self.specs: list[Row] = []
        #: (id, key, submission, spec id, group, user, cmd, state, submitted_at, ready_at, reason code, reason
        #: message, after as JSON or None, input_bytes, array, index); cmd as encoded by `command_to_text`
        self.jobs: list[Row] = []
        #: id → (id, state, attempt, tries, due_at, ready_at, ended_at, reason code, reason message, floor as JSON
        #: or None). The job's state at the end of the batch; written after everything else.
        self.job_states: dict[int, Row] = {}
        #: (job, number) → (job, number, JSON of what the attempt has now)
        self.regiven: dict[tuple[int, int], Row] = {}
        #: job → (job, spec id, group, user, input_bytes) for modified jobs
        self.respecified: dict[int, Row] = {}
        #: job → (job, key, cmd, key before this batch) for modified jobs that are another job by now
        self.rekeyed: dict[int, Row] = {}
        #: job → (job, after as JSON or None) for jobs whose dependencies changed. Their rows in `edges` and
        #: `children` replace the stored ones.
        self.reafter: dict[int, Row] = {}
        #: (job, successor or 0): the job can never be re-opened
        self.replaced: list[Row] = []
        #: (parent, dependent), parent being a job id or a group name: only dependents that a group can re-open
        self.edges: list[Row] = []
        #: (parent, dependent) for all dependents, for display only
        self.children: list[Row] = []
        #: dependency group → change of its number of complete members; 0 makes the group known
        self.dep_groups: dict[str, int] = {}
        #: limit → declaration as JSON, or None to withdraw it
        self.limits: dict[str, str | None] = {}
        #: (kind, name) of a site record → value as JSON, or None to remove it
        self.site: dict[tuple[str, str], str | None] = {}
        #: (learning group, place, at, mem, disk, time_s, outcome, input_bytes, given mem, given disk, given
        #: time_s, job, asked mem or None, asked disk or None, asked time_s or None)
        self.observations: list[Row] = []
        #: (learning group,): drop all observations from before this batch
        self.forgotten: list[Row] = []
        #: (job, number, token, runner, host, leased_at, spec id, size as JSON if not the specification's, the
        #: planner's grant as JSON or None)
        self.attempts: list[Row] = []
        #: (job, number, started_at, pid, seat)
        self.starts: list[Row] = []
        #: (job, number, label of the outcome's state, exit_code, signal, reason code, message, started_at,
        #: ended_at, cpu_s, peak_mem, peak_disk, segment, offset, out_len, err_len, out_total, err_total,
        #: behaviours as JSON or None, output report as JSON or None)
        self.ends: list[Row] = []
        #: (job, number): leases that were never executed; the attempt's row is marked void
        self.voids: list[Row] = []
        #: (segment,): output files removed for age or space
        self.pruned: list[Row] = []
        #: (id,): removed jobs
        self.removed: list[Row] = []
        #: (at, job, attempt, kind, text): lines of stories
        self.events: list[Row] = []
        #: (id, host, boot_id, pid, start_time, joined_at)
        self.runners: list[Row] = []
        #: (report group, terminal state) → change of the number of finished jobs
        self.tally: dict[tuple[str, int], int] = {}
        #: key → value: small facts about the deployment
        self.meta: dict[str, str] = {}
        #: (hour, user, project, queue) → increments of its columns (`core.accounts.accounting`)
        self.accounts: dict[tuple[int, str, str, str], list[int]] = {}
        #: minute since 1970 → increments of its columns
        self.minutes: dict[int, list[int]] = {}
        #: (host, microseconds since 1970, state that begins then)
        self.host_states: list[Row] = []

        #: Seconds by which to shift the times of unended jobs and attempts, before any other row is written.
        self.moved_by = 0.0

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)
