"""The state of a deployment as plain data, and the few functions that keep its indexes consistent.

Nothing here decides anything. Memory holds live jobs, and finished ones until their record is on disk. Of all
other jobs only the outcome is kept, one byte each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable
from datetime import UTC, tzinfo
from typing import Any, TypeVar

import msgspec

from rota.core.accounts.accounting import count_end
from rota.core.attempts.leases import Finished, HeldLease, LeaseRef, Started
from rota.core.bugs.ledger import Ledger
from rota.core.effects import NotifySettled
from rota.core.engine_settings import EngineSettings
from rota.core.events import RunnerJoined
from rota.core.jobs.dependency_groups import DepGroup
from rota.core.jobs.fate import Fate
from rota.core.jobs.group_ancestry import GroupAncestries
from rota.core.jobs.job import AttemptEnd, Job, Parent, Reason, Spec
from rota.core.jobs.outcome import Outcome
from rota.core.learning.model import CachedSize, Model
from rota.core.machines.ticket_grants import TicketGrants
from rota.core.rows import JobStateRow
from rota.core.states import TERMINAL, TRANSITIONS, State, check_transition
from rota.core.submit.upload import Upload
from rota.core.turn import Turn
from rota.plan.need import Need
from rota.plan.placement.given import Given
from rota.plan.placement.placement import Placement
from rota.plan.placement.queue import Offer
from rota.plan.policy.quotas import Spent
from rota.plan.policy.usage_history import History
from rota.plan.site.records import KINDS
from rota.plan.size import Capacity, Size

#: Values of `World.outcomes`: a live job, and an id without a job.
OPEN = 0
NO_JOB = 255

#: At most this many changed jobs are listed one by one; with one more, watchers reload everything.
MOST_TOUCHED = 500

_STATES = max(State) + 1

S = TypeVar("S")

#: Lines that one runner may add to the story of one job.
_MOST_NOTES = 100
#: Above this many jobs, a runner's counters are kept only for jobs that it has leases for.
_MANY_NOTES = 1000


class Runner:
    """A runner that is connected or holds leases."""

    __slots__ = ("boot_id", "connected", "dead", "heard_at", "host", "id", "leases", "leaving", "machine",
                 "made_for", "notes", "pid", "pool", "seats", "silent", "start_time", "unseated")  # fmt: skip

    def __init__(self, id: str, host: str, *, boot_id: str = "", pid: int = 0, start_time: int = 0) -> None:
        self.id = id
        self.host = host
        self.boot_id = boot_id
        self.pid = pid
        self.start_time = start_time
        self.connected = False
        self.leaving = False  #: it takes no more work and exits when its jobs have ended
        self.heard_at = 0.0  #: monotonic time of its last sign of life
        self.silent = False  #: its heartbeat timed out and its jobs are lost
        self.dead = False  #: silent for `dead_after`: its host is shown as dead; nothing else changes
        self.leases: set[int] = set()  #: ids of jobs
        #: set: the runner is an allocation of its own, for jobs of this need only
        self.made_for: Need | None = None
        self.pool = ""  #: the delegated pool that asked for it; empty: none did
        self.machine = ""  #: where it is, if its host has another name
        self.seats: dict[int, Size] = {}
        #: size → leases minus seats of that size: leases sent ahead of need wait for a seat
        self.unseated: defaultdict[Size, int] = defaultdict(int)
        self.notes: dict[int, int] = {}  #: job → lines that this runner added to its story

    def may_note(self, job: int) -> bool:
        """Count one more line by this runner in the story of a job; False: it has added too many.

        An honest runner adds few. The bound keeps the holder of a stolen token from filling the disk.
        """
        if len(self.notes) > _MANY_NOTES:
            self.notes = {id: n for id, n in self.notes.items() if id in self.leases}
        self.notes[job] = self.notes.get(job, 0) + 1
        return self.notes[job] <= _MOST_NOTES


class Preparation(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Something to be done before a lease is sent to its runner (`core.attempts.preparation`)."""

    name: str  #: unique
    #: Must it be done for a job with this grant?
    wanted: Callable[[World, Job, Given | None], bool]
    #: Begin it. When it is done, `preparation.go_on` must be called.
    begin: Callable[[World, Turn, Job], None]


StepCallback = Callable[["World", Turn], None]
#: With the names of their features, which say where a bug is.
StepCallbacks = tuple[tuple[str, StepCallback], ...]
JobCallback = Callable[["World", Turn, Job], None]
EndCallback = Callable[["World", Turn, Job, AttemptEnd, str], None]
HostCallback = Callable[["World", Turn, str], None]
JoinCallback = Callable[["World", Turn, "Runner", RunnerJoined], None]
SiteCallback = Callable[["World", Turn, list[tuple[str, str, Any]]], None]
ClockCallback = Callable[["World", Turn, float], None]
HostCheck = Callable[["World", str], bool]
ReportCallback = Callable[["World", Turn, "Runner", list[Started], list[Finished], list[LeaseRef]], None]
LeaseCheck = Callable[["World", "Runner", HeldLease], bool]
JobCheck = Callable[["World", Job], bool]
Grants = Callable[["World"], TicketGrants]
WorldCheck = Callable[["World"], bool]
QueueCallback = Callable[["World", Turn | None, list[Job]], bool]
UnqueueCallback = Callable[["World", Job], bool]
Companions = Callable[["World", Job], Iterable[int]]
Selection = Callable[["World", str, list[int]], list[int]]
Judgement = Callable[["World", Job, Outcome], Fate | None]
UserRetry = Callable[["World", Turn, list[Job], str], dict[int, bool]]
RetryCheck = Callable[["World", Job, str, Outcome], bool | None]
NextTime = Callable[["World"], float | None]
Invariant = Callable[["World"], list[str]]


class Points:
    """Extension points: the functions that features in use add to shared paths, in the order of the features.

    Those in the life of a lease are empty in a deployment that uses no optional feature.
    """

    def __init__(self) -> None:
        self.on_timer: StepCallbacks = ()  #: time has passed; before jobs are placed
        self.before_placing: StepCallbacks = ()  #: all events are decided; before jobs are placed, once per step
        self.after_timer: StepCallbacks = ()  #: the same, after jobs were placed
        self.after_step: StepCallbacks = ()  #: jobs were placed; once per step
        self.step_over: StepCallbacks = ()  #: everything in this step is decided; the last of it
        self.stopping: StepCallbacks = ()  #: the manager stops: the last turn
        self.invariant: tuple[Invariant, ...] = ()  #: describes what is wrong, a sentence each
        self.next_due: tuple[NextTime, ...] = ()  #: wall time at which it wants a timer
        self.clock_moved: tuple[ClockCallback, ...] = ()  #: the wall clock was set by so many seconds
        self.site_changed: tuple[SiteCallback, ...] = ()  #: an administrator changed these records
        self.needs_plan: tuple[WorldCheck, ...] = ()  #: must jobs be planned ahead?
        self.node_removed: tuple[HostCallback, ...] = ()  #: an administrator removes this node, which still exists
        self.closes_host: tuple[HostCheck, ...] = ()  #: may no work go to this host, although it answers?
        self.runner_joined: tuple[JoinCallback, ...] = ()  #: a runner joined, and knows the rules
        self.runner_parted: tuple[HostCallback, ...] = ()  #: the connection to a host's runner ended
        #: a runner reported starts, ends and returns; also of leases that are no attempts
        self.runner_reported: tuple[ReportCallback, ...] = ()
        self.keeps_lease: tuple[LeaseCheck, ...] = ()  #: must a runner keep this lease, which is no attempt?
        self.awaits_host: tuple[HostCheck, ...] = ()  #: is the runner of this host expected to be silent?
        self.ticket_grants: tuple[Grants, ...] = ()  #: what tickets of runners grant; at most one
        #: These jobs, of one specification, became ready; True: the feature offers them to the placement itself.
        self.queued: tuple[QueueCallback, ...] = ()
        #: A job is no longer ready, and was not placed; True: the feature withdraws it itself.
        self.unqueued: tuple[UnqueueCallback, ...] = ()
        self.waits_with: tuple[Companions, ...] = ()  #: jobs without which this one is not ready, itself included
        #: An action is about these jobs; returns all that it must be about. Actions: kill, hold, release, suspend,
        #: resume, resumed (their cores are free), walltime.
        self.acts_on: tuple[Selection, ...] = ()
        #: What becomes of a job whose attempt has failed so, instead of a failure; None: it has failed.
        self.judged: tuple[Judgement, ...] = ()
        #: May another attempt follow one that failed with this code? None: the rules for all jobs decide.
        self.retried: tuple[RetryCheck, ...] = ()
        #: A user retries these jobs, which have ended; of those that the feature sees to itself: is one retried?
        self.retried_by_user: tuple[UserRetry, ...] = ()
        self.job_ended: tuple[JobCallback, ...] = ()  #: a job is in a terminal state
        self.preparation: tuple[Preparation, ...] = ()  #: before a lease is sent
        self.lease_voided: tuple[JobCallback, ...] = ()  #: a lease ends that was never executed
        self.attempt_started: tuple[JobCallback, ...] = ()  #: its execution began
        self.attempt_over: tuple[EndCallback, ...] = ()  #: nothing of an attempt is left; its lease is still there
        self.keeps_room: tuple[JobCheck, ...] = ()  #: does what the job held stay taken?
        self.lease_dropped: tuple[JobCallback, ...] = ()  #: what the job held is free, unless it stays taken
        self.job_reopened: tuple[JobCallback, ...] = ()  #: a finished job is about to wait again


class World:
    """The whole state of a deployment."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.jobs: dict[int, Job] = {}
        placement.entrants = self.jobs
        self.keys: dict[str, int] = {}  #: identity key → job, for jobs in memory
        self.specs: dict[int, Spec] = {}
        self.outcomes = bytearray([NO_JOB])
        self.replaced = bytearray()  #: by id: 1 for a replaced job; grows on demand
        #: job → its successor or 0. Filled only while an upload is under way, which may not know of the
        #: replacement.
        self.successors: dict[int, int] = {}
        #: report group → number of jobs by state, finished ones included
        self.counts: defaultdict[str, list[int]] = defaultdict(lambda: [0] * _STATES)
        #: parent → (live dependent, condition) → is it satisfied, as last announced? Without dependents for which
        #: the parent's outcome is final.
        self.children: dict[Parent, dict[tuple[int, int], bool]] = {}
        self.unmet_parents: dict[int, int] = {}  #: dependent → number of parents that do not satisfy it yet
        self.blocked_by: dict[int, set[Parent]] = {}
        self.groups: defaultdict[str, DepGroup] = defaultdict(DepGroup)
        #: which dependency groups each job waits for, directly or through its parents
        self.ancestry = GroupAncestries()
        self.models: dict[str, Model] = {}  #: learning group → model, least recently used first
        self.sizes: dict[Size, Size] = {}  #: learned sizes, each stored once
        self.cached_sizes: dict[
            tuple[int, str], CachedSize
        ] = {}  #: (specification, learning group) → learned size
        self.largest: Size | None = None  #: capacity of the largest host
        self.runners: dict[str, Runner] = {}
        self.runner_at: dict[str, str] = {}  #: host → runner that gets new work
        self.runner_hosts: dict[str, str] = {}  #: runner → host, for every runner that ever joined
        #: finished job → batches that must be committed before it may leave memory
        self.evicting: dict[int, int] = {}
        self.capacity: dict[str, Capacity] = {}
        self.uploads: dict[str, Upload] = {}
        self.delayed_until: list[tuple[float, int]] = []  #: heap of (wall time, job) for delayed jobs
        #: kind → name → record of the site, as written by an administrator (`plan.site.records`)
        self.site: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
        self.site_version = 0  #: grows with every change of `site`
        self.on_site: Callable[[], None] | None = None  #: called when `site` has changed
        #: (host records, node records, do they need a plan?): a cache (`core.site.plan_facts`)
        self.host_rules: tuple[object, object, bool] = (None, None, False)
        #: host → ids of its resources, for hosts without resource records
        self.own_resources: dict[str, list[int]] = {}
        self.spent: dict[Spent, int] = {}  #: resource-time that ended jobs used of quota periods
        self.usage_history = History()  #: past use by user and project, for fair share
        self.next_job = 1
        #: Jobs that changed since the watchers were last served → (state, attempt); at most one more than
        #: `MOST_TOUCHED`. None: there are no watchers.
        self.touched: dict[int, tuple[State, int]] | None = None
        self.paused = False
        self.bugs = Ledger()  #: bugs that were met, and what is left out because of them
        self.zone: tzinfo = UTC  #: local time zone, for hours of the day
        self.draining = False
        self.stopping = False  #: the manager is shutting down: nothing starts any more
        self.settings = EngineSettings()
        self.points = Points()
        #: Called when a feature comes into use, with the class of its state (`core.feature`).
        self.on_first_use: Callable[[type[Any]], None] | None = None
        self._states: dict[type[Any], Any] = {}

    def use(self, kind: type[S]) -> S:
        """The state of a feature, by its class. Makes it at first use: from then on the feature is in use."""
        found: S | None = self._states.get(kind)
        if found is None:
            found = self._states[kind] = kind()
            if self.on_first_use is not None:
                self.on_first_use(kind)
        return found

    def find(self, kind: type[S]) -> S | None:
        """The state of a feature if it is in use, else None."""
        return self._states.get(kind)

    @property
    def live(self) -> int:
        """The number of jobs in memory."""
        return len(self.jobs)

    def outcome(self, job: int) -> int:
        """Return OPEN, NO_JOB, or the number of the terminal state."""
        return self.outcomes[job] if 0 < job < len(self.outcomes) else NO_JOB

    def is_replaced(self, job: int) -> bool:
        """Has another job taken its place? If so, it never changes again and no job waits for it."""
        return job < len(self.replaced) and self.replaced[job] == 1

    def mark_replaced(self, job: int) -> None:
        if job >= len(self.replaced):
            self.replaced.extend(bytes(max(job + 1 - len(self.replaced), 4096)))
        self.replaced[job] = 1

    def give_back(self, ids: Container[int]) -> None:
        """Reuse the ids of a refused submission, unless later ids are taken."""
        while self.next_job - 1 in ids:
            self.next_job -= 1

    def new_job_id(self) -> int:
        job = self.next_job
        self.next_job = job + 1
        missing = job - len(self.outcomes)
        if missing >= 0:
            self.outcomes.extend(bytes([NO_JOB]) * (missing + 4096))
        return job


def story(job: Job) -> str:
    """Describe a job for an error that should never happen."""
    lease = f", lease {job.lease.token} at {job.lease.runner}" if job.lease else ""
    return f"job {job.id} attempt {job.attempt} tries {job.tries} {job.state.label}{lease}, reason {job.reason}"


def move(world: World, job: Job, state: State) -> None:
    """Change a job's state. Raises `IllegalTransition` if the table forbids it."""
    old = job.state
    if state not in TRANSITIONS[old]:
        check_transition(old, state, story=story(job), job=job.id)
    counts = world.counts[job.spec.group]
    counts[old] -= 1
    counts[state] += 1
    job.state = state
    if world.touched is not None:
        touch(world, (job,))
    for name in job.spec.dep_groups:
        world.groups[name].move(job.id, old, state)


def memberships(world: World, job: Job) -> tuple[str, ...]:
    """The dependency groups of a job; a replaced job has left them."""
    return () if world.is_replaced(job.id) else job.spec.dep_groups


def touch(world: World, jobs: Iterable[Job]) -> None:
    """Record that these jobs changed, for watchers. Stops at `MOST_TOUCHED`."""
    touched = world.touched
    if touched is None:
        return
    for job in jobs:
        if len(touched) > MOST_TOUCHED:
            return
        touched[job.id] = (job.state, job.attempt)


def write(turn: Turn, job: Job) -> None:
    """Write the job's current state with this batch."""
    reason = job.reason
    turn.changes.job_states[job.id] = JobStateRow(
        job.id,
        int(job.state),
        job.attempt,
        job.tries,
        job.due_at,
        job.ready_at,
        job.ended_at,
        reason.code if reason else None,
        reason.message if reason else None,
        msgspec.json.encode(job.floor).decode() if job.floor is not None else None,
    )


def enqueue(world: World, turn: Turn, job: Job) -> None:
    """Offer the job, already READY, to the placement."""
    job.ready_at = turn.wall
    for queued in world.points.queued:
        if queued(world, turn, [job]):
            return
    world.placement.offer(Offer(job.spec, job.need, job.rank_key, [job.id]))


def dequeue(world: World, job: Job) -> None:
    """Withdraw a job that leaves READY without having been placed."""
    for unqueued in world.points.unqueued:
        if unqueued(world, job):
            return
    world.placement.withdraw(job.need, job.rank_key, job.id)


def finish(
    world: World, turn: Turn, job: Job, state: State, *, reason: Reason | None, outcome: Outcome | None
) -> None:
    """Move a job to a terminal state and write the one terminal record of this opening."""
    move(world, job, state)
    job.reason = reason
    job.ended_at = turn.wall
    job.due_at = None
    world.outcomes[job.id] = state
    _tally(turn, job, 1, job.spec.dep_groups)
    count_end(turn, job, state)
    write(turn, job)
    evict_after_commit(world, turn, job.id)
    turn.effects.append(NotifySettled(job, state, outcome))
    for ended in world.points.job_ended:
        ended(world, turn, job)


def acted_on(world: World, action: str, jobs: list[int]) -> list[int]:
    """All jobs that an action on these must be about (`Points.acts_on`)."""
    for acts_on in world.points.acts_on:
        jobs = acts_on(world, action, jobs)
    return jobs


def reopen(world: World, turn: Turn, job: Job) -> None:
    """Take back the terminal record. The caller moves the job, still in its terminal state, on."""
    for reopened in world.points.job_reopened:
        reopened(world, turn, job)
    world.outcomes[job.id] = OPEN
    _tally(turn, job, -1, job.spec.dep_groups)
    job.ended_at = None
    job.reason = None
    job.kill = False


def erase(world: World, turn: Turn, job: Job) -> None:
    """Remove all traces of a job in a terminal state."""
    touch(world, (job,))
    groups = memberships(world, job)
    _tally(turn, job, -1, groups)
    world.counts[job.spec.group][job.state] -= 1
    for name in groups:
        world.groups[name].leave(job.id, job.state)
        world.groups[name].wait_for(world.ancestry.get(job.id), -1)
    world.outcomes[job.id] = NO_JOB
    world.children.pop(job.id, None)
    world.ancestry.forget(job.id)
    world.jobs.pop(job.id, None)
    if world.keys.get(job.key) == job.id:
        del world.keys[job.key]
    turn.changes.job_states.pop(job.id, None)
    turn.changes.removed.append(job.id)


def _tally(turn: Turn, job: Job, more: int, groups: tuple[str, ...]) -> None:
    """Update the store's counts of finished jobs by report group, and of complete members by dependency group."""
    changes, state = turn.changes, job.state
    key = (job.spec.group, int(state))
    changes.tally[key] = changes.tally.get(key, 0) + more
    if state is State.COMPLETE:
        for name in groups:
            changes.dep_groups[name] = changes.dep_groups.get(name, 0) + more


def evict_after_commit(world: World, turn: Turn, id: int) -> None:
    """Let the job leave memory once this batch is on disk."""
    world.evicting[id] = world.evicting.get(id, 0) + 1
    turn.batch.leaving.append(id)


def evict_finished(world: World, ids: list[int]) -> None:
    """Drop finished jobs from memory: the batches that wrote them are on disk.

    A job stays if it was re-opened, if a later batch about it is not on disk yet, or if an upload is about to
    re-open it.
    """
    wanted = {id for upload in world.uploads.values() for id in upload.retried}
    for id in ids:
        batches = world.evicting.pop(id) - 1
        if batches:
            world.evicting[id] = batches
            continue
        job = world.jobs.get(id)
        if job is not None and job.state in TERMINAL and id not in wanted:
            del world.jobs[id]
            if world.keys.get(job.key) == id:
                del world.keys[job.key]
