"""The rows that one turn of the engine wants written, in one transaction.

Each list holds tuples in the column order of the statement that writes it (`store/sqlite/sql`), so a
store encodes a whole list at once and runs one statement over it.
"""

from __future__ import annotations

from typing import Any

Row = tuple[Any, ...]


class Changes:
    """Rows to write. Merging two `Changes` in order equals committing them one after the other."""

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
        #: (id, user, at, count, answer JSON or None while it is still being uploaded, its input or None)
        self.submissions: list[Row] = []
        #: (submission id,): uploads that will never be finished; their jobs are in `undone`
        self.dropped: list[Row] = []
        #: (id,): jobs of uploads that were refused. They go before anything of this batch is written: it may give
        #: their ids to others
        self.undone: list[Row] = []
        #: (id, digest, base64 of NUL-separated K=V)
        self.envs: list[Row] = []
        #: (id, JSON of the Spec)
        self.specs: list[Row] = []
        #: (id, key, submission, spec id, group, user, cmd, state, submitted_at, ready_at, reason code,
        #: reason message, after JSON or None, input_bytes, array, index); cmd as by `command_to_text`
        self.jobs: list[Row] = []
        #: id → (id, state, attempt, tries, due_at, ready_at, ended_at, reason code, reason message, floor
        #: JSON or None); the last word of the batch about a job, written after everything else
        self.job_states: dict[int, Row] = {}
        #: (job, number) → (job, number, JSON of what the attempt has been given by now)
        self.regiven: dict[tuple[int, int], Row] = {}
        #: job → (job, spec id, group, user, input_bytes): jobs that were modified
        self.respecified: dict[int, Row] = {}
        #: job → (job, after JSON or None): what jobs wait for that were added again, or whose parent was replaced;
        #: the pairs are in `edges` and `children`, and take the place of those that were there
        self.reafter: dict[int, Row] = {}
        #: (job, the job that took its place or 0): it can be re-opened no more
        self.replaced: list[Row] = []
        #: (parent, dependent): a job's id or a dependency group's name, for those that a group can re-open
        self.edges: list[Row] = []
        #: (parent, dependent): the same for all, only to look at
        self.children: list[Row] = []
        #: dependency group → how many complete members more; 0 makes it known
        self.dep_groups: dict[str, int] = {}
        #: limit → its declaration as JSON, or None when it is withdrawn
        self.limits: dict[str, str | None] = {}
        #: (kind, name) of a site record → its value as JSON, or None when it is removed
        self.site: dict[tuple[str, str], str | None] = {}
        #: (learning group, place, at, mem, disk, time_s, outcome, input_bytes, given mem, disk and time_s, job,
        #: asked mem, disk and time_s or None each)
        self.observations: list[Row] = []
        #: (learning group,): everything observed before this batch is forgotten
        self.forgotten: list[Row] = []
        #: (job, number, token, runner, host, leased_at, spec id, size JSON where it is not the spec's, what the
        #: planner gave as JSON or None)
        self.attempts: list[Row] = []
        #: (job, number, started_at, pid, seat)
        self.starts: list[Row] = []
        #: (job, number, state label of the attempt's outcome, exit_code, signal, reason code, message,
        #: started_at, ended_at, cpu_s, peak_mem, peak_disk, segment, offset, out_len, err_len, out_total,
        #: err_total, behaviours JSON or None, what is known of its output as JSON or None)
        self.ends: list[Row] = []
        #: (job, number): leases that were never executed; the attempt row is marked void
        self.voids: list[Row] = []
        #: (segment,): files of output that are removed because of their age or for space
        self.pruned: list[Row] = []
        #: (id,)
        self.removed: list[Row] = []
        #: (at, job, attempt, kind, text): the story, for what is not routine
        self.events: list[Row] = []
        #: (id, host, boot_id, pid, start_time, joined_at)
        self.runners: list[Row] = []
        #: (group, terminal state number) → how many finished jobs more
        self.tally: dict[tuple[str, int], int] = {}
        #: key → value, small facts about the deployment
        self.meta: dict[str, str] = {}
        #: (hour, user, project, queue) → what is added to each of its columns (`core.accounts.accounting`)
        self.accounts: dict[tuple[int, str, str, str], list[int]] = {}
        #: minute since 1970 → what is added to each of its columns
        self.minutes: dict[int, list[int]] = {}
        #: (host, microseconds since 1970, state): what a host does from then on
        self.host_states: list[Row] = []

        #: seconds by which the times of jobs and attempts that have not ended are moved, before all else
        self.moved_by = 0.0

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)
