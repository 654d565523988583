"""Everything the engine knows, as plain data, and the few functions that keep its indexes true.

Nothing here decides anything. Jobs are live, or finished and about to leave memory; of all others
only the outcome is kept, one byte each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable
from datetime import UTC, tzinfo
from typing import Any, NamedTuple

import msgspec

from rota.core.accounts.accounting import count_end
from rota.core.attempts.vacate_times import VacateTimes
from rota.core.effects import NotifySettled
from rota.core.events import FormerJob
from rota.core.hooks.hook_records import ServerHooks
from rota.core.jobs.dependency_groups import DepGroup
from rota.core.jobs.group_ancestry import GroupAncestries
from rota.core.jobs.job import Command, Job, Outcome, Parent, Reason, Spec
from rota.core.learning.model import CachedSize, Model
from rota.core.machines.energy_rules import EnergyRules
from rota.core.states import TERMINAL, TRANSITIONS, State, check_transition
from rota.core.turn import Turn
from rota.plan.need import Need
from rota.plan.placement import Placement, Reserved
from rota.plan.policy.policy import PATIENCE_S
from rota.plan.policy.quotas import Spent
from rota.plan.policy.usage_history import History
from rota.plan.site.records import KINDS
from rota.plan.size import Capacity, Size

#: In `World.outcomes`: a job that is live, and an id that names no job.
OPEN = 0
NO_JOB = 255

#: So many changed jobs are remembered by name; with one more, they are only many.
MOST_TOUCHED = 500

_STATES = max(State) + 1

#: Lines that a runner may add to the story of one job.
_MOST_NOTES = 100
#: Of so many jobs it is counted, beside those that it has leases for.
_MANY_NOTES = 1000


class Runner:
    """A runner that holds leases or is connected."""

    __slots__ = ("boot_id", "connected", "dead", "heard_at", "host", "id", "leases", "leaving", "made_for",
                 "notes", "pid", "seats", "silent", "start_time", "unseated")  # fmt: skip

    def __init__(self, id: str, host: str, *, boot_id: str = "", pid: int = 0, start_time: int = 0) -> None:
        self.id = id
        self.host = host
        self.boot_id = boot_id
        self.pid = pid
        self.start_time = start_time
        self.connected = False
        self.leaving = False  #: it will end when its jobs have
        self.heard_at = 0.0  #: monotonic
        self.silent = False  #: its jobs have been declared lost
        self.dead = False  #: it has been silent for so long that people call its host dead; nothing else changes
        self.leases: set[int] = set()  #: jobs
        self.made_for: Need | None = None  #: it is a host of its own, for jobs of this need
        self.seats: dict[int, Size] = {}
        #: size → leases beyond the seats of that size: sent ahead, to take over a seat
        self.unseated: defaultdict[Size, int] = defaultdict(int)
        self.notes: dict[int, int] = {}  #: job → lines of its story that came from here

    def may_note(self, job: int) -> bool:
        """May this runner add a line to the story of a job that it has a lease for? An honest one has few to add,
        and whoever took its token must not fill the disk with them."""
        if len(self.notes) > _MANY_NOTES:
            self.notes = {id: n for id, n in self.notes.items() if id in self.leases}
        self.notes[job] = self.notes.get(job, 0) + 1
        return self.notes[job] <= _MOST_NOTES


class Upload:
    """A submission of which not all chunks have arrived."""

    __slots__ = ("added", "after", "arrays", "check", "complete", "entries", "existing", "fresh", "jobs", "keys",
                 "known_entries", "lines", "replacing", "retried", "warnings")  # fmt: skip

    def __init__(self, *, check: bool) -> None:
        self.check = check  #: a question: nothing of it is written or numbered
        self.entries: list[int] = []  #: the job of each entry, by index
        self.lines: list[int] = []
        self.added: list[int] = []
        self.existing: list[int] = []
        self.fresh: set[int] = set()  #: new jobs whatever else is known
        self.retried: dict[int, Job | None] = {}  #: None: it is in memory
        self.jobs: dict[int, Job] = {}
        self.keys: dict[str, int] = {}
        self.after: list[tuple[int, Parent, int, bool]] = []  #: (entry, parent, condition, local)
        self.arrays: dict[int, int] = {}  #: number of an array in this submission → its id
        self.complete: list[int] = []
        self.warnings: list[str] = []
        self.replacing: dict[int, list[FormerJob]] = {}  #: new job → those whose place it takes
        self.known_entries: dict[int, KnownEntry] = {}  #: by entry, dependents that are there already


class KnownEntry(NamedTuple):
    """An entry of a submission that is there already, as it is asked for now."""

    job: int
    key: str
    cmd: Command
    spec: Spec
    spec_id: int
    input_bytes: int | None
    array: tuple[int, int] | None  #: number of its array in the submission, index
    former: FormerJob | None  #: what is known of it if it is complete and not in memory


class PendingMoves(NamedTuple):
    """What is still to be told of a promise: how often it was moved, when last, and why."""

    times: int
    at: float
    attempt: int
    cause: str


class World:
    """The whole state of a deployment."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.jobs: dict[int, Job] = {}
        self.keys: dict[str, int] = {}  #: identity of each job in memory
        self.specs: dict[int, Spec] = {}
        self.outcomes = bytearray([NO_JOB])
        self.replaced = bytearray()  #: by id, 1 for each job whose place another took; as long as need be
        #: job → the one that took its place, or 0, since a submission is on its way that may not know of it
        self.successors: dict[int, int] = {}
        #: group → number of jobs in each state, finished ones included
        self.counts: defaultdict[str, list[int]] = defaultdict(lambda: [0] * _STATES)
        #: parent → (dependent, condition) of live dependents → is it content, as it was told last; without
        #: those for whom the parent is done
        self.children: dict[Parent, dict[tuple[int, int], bool]] = {}
        self.unmet_parents: dict[int, int] = {}  #: dependent → parents that do not satisfy it yet
        self.blocked_by: dict[int, set[Parent]] = {}
        self.groups: defaultdict[str, DepGroup] = defaultdict(DepGroup)
        self.ancestry = GroupAncestries()  #: groups that jobs wait for, themselves or through others
        self.models: dict[str, Model] = {}  #: by learning group, the one not used for longest first
        self.sizes: dict[Size, Size] = {}  #: learned sizes, each kept once
        self.cached_sizes: dict[
            tuple[int, str], CachedSize
        ] = {}  #: (specification, learning group) → what its jobs take
        self.largest: Size | None = None  #: what the largest host has
        self.runners: dict[str, Runner] = {}
        self.runner_at: dict[str, str] = {}  #: host → the runner that new work goes to
        self.runner_hosts: dict[str, str] = {}  #: runner → its host, of all that ever joined
        self.parts_at: dict[str, set[int]] = {}  #: host → jobs that have a part there (`core.attempts.parts`)
        self.closing: set[int] = set()  #: jobs whose attempt is over and whose parts are being closed
        self.moved_parts: set[int] = set()  #: jobs of which another runner has a part than was first asked
        self.energy = EnergyRules()  #: when nodes may sleep
        #: node → when (monotonic) it was last seen to become idle, or to get into the state that its record says
        self.idle_since: dict[str, float] = {}
        self.energy_since: dict[str, float] = {}
        self.closed_hosts: set[str] = set()  #: those whose hours or time are over (`core.machines.host_hours`)
        self.hours_now: dict[str, tuple[bool, float, float]] = {}  #: hours → are they now; known from when to when
        self.energy_doubt = ""  #: what is wrong with its rules, as it was said last
        self.server_hooks = ServerHooks()  #: scripts on the manager's host (`core.hooks.server_scripts`)
        self.noop_jobs: set[int] = set()  #: jobs that hold resources and run nowhere (`core.attempts.noop_jobs`)
        self.special_hosts: dict[str, str] = {}  #: type of job → the host that commands of such jobs run on
        self.vacate_times = VacateTimes()  #: how long jobs may take to make room for others
        self.patience_s = PATIENCE_S  #: how long reservations wait for resources that are missing
        self.leaving: dict[int, int] = {}  #: job → batches not yet on disk after which it may leave memory
        self.capacity: dict[str, Capacity] = {}
        self.uploads: dict[str, Upload] = {}
        self.delayed_until: list[tuple[float, int]] = []  #: heap of (wall time, job) of delayed jobs
        #: kind → name → value of the site's records, as an administrator wrote them (`plan.site.records`)
        self.site: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
        self.site_version = 0  #: grows with every change of `site`
        self.on_site: Callable[[], None] | None = None  #: called when `site` has changed
        self.own_resources: dict[str, list[int]] = {}  #: ids on hosts that no record speaks of
        self.suspending: set[int] = set()  #: jobs that are suspended, or on the way there or back
        self.pending_extensions: set[int] = set()  #: jobs that asked for more walltime than could be granted yet
        self.reserved: dict[int, Reserved] = {}  #: what was granted to reservations
        self.spent: dict[Spent, int] = {}  #: what ended jobs used of periods of quotas
        self.usage_history = History()  #: what users and projects have used, for fair share
        #: job → when its story last told that its promise was moved, for a while; and what it has not told yet
        self.moves_noted: dict[int, float] = {}
        self.moves_pending: dict[int, PendingMoves] = {}
        #: host → what it does and since when (microseconds), as it was written down last
        self.host_states: dict[str, tuple[str, int]] = {}
        #: hosts that were there before this manager began, whose runners may be on their way back; and until when,
        #: by the steady clock (None: nobody has looked yet)
        self.awaited_hosts: set[str] = set()
        self.awaited_until: float | None = None
        self.next_job = 1
        #: job → state and attempt of those that changed since somebody last looked, up to one more than
        #: `MOST_TOUCHED`; None: nobody wants to know
        self.touched: dict[int, tuple[State, int]] | None = None
        self.paused = False
        self.zone: tzinfo = UTC  #: in which hours of the day are meant
        self.draining = False
        self.stopping = False  #: neither jobs nor anybody's wish can start anything any more

    @property
    def live(self) -> int:
        """How many jobs are in memory."""
        return len(self.jobs)

    def outcome(self, job: int) -> int:
        """OPEN, NO_JOB, or the number of the terminal state."""
        return self.outcomes[job] if 0 < job < len(self.outcomes) else NO_JOB

    def is_replaced(self, job: int) -> bool:
        """Has another taken its place? Then nothing happens to it any more, and nobody waits for it."""
        return job < len(self.replaced) and self.replaced[job] == 1

    def mark_replaced(self, job: int) -> None:
        if job >= len(self.replaced):
            self.replaced.extend(bytes(max(job + 1 - len(self.replaced), 4096)))
        self.replaced[job] = 1

    def give_back(self, ids: Container[int]) -> None:
        """Ids of a submission that was refused are given out again, as far as nobody has got later ones."""
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
    """What is known about a job, for an error that should never happen."""
    lease = f", lease {job.lease.token} at {job.lease.runner}" if job.lease else ""
    return f"job {job.id} attempt {job.attempt} tries {job.tries} {job.state.label}{lease}, reason {job.reason}"


def move(world: World, job: Job, state: State) -> None:
    """Change a job's state, if the table allows it."""
    old = job.state
    if state not in TRANSITIONS[old]:
        check_transition(old, state, story=story(job))
    counts = world.counts[job.spec.group]
    counts[old] -= 1
    counts[state] += 1
    job.state = state
    if world.touched is not None:
        touch(world, (job,))
    for name in job.spec.dep_groups:
        world.groups[name].move(job.id, old, state)


def memberships(world: World, job: Job) -> tuple[str, ...]:
    """The dependency groups that a job is in. Who was replaced has left them."""
    return () if world.is_replaced(job.id) else job.spec.dep_groups


def touch(world: World, jobs: Iterable[Job]) -> None:
    """Something about these jobs changed; of very many only the first are looked at."""
    touched = world.touched
    if touched is None:
        return
    for job in jobs:
        if len(touched) > MOST_TOUCHED:
            return
        touched[job.id] = (job.state, job.attempt)


def write(turn: Turn, job: Job) -> None:
    """Have the job's present state written at the end of this batch."""
    reason = job.reason
    turn.changes.job_states[job.id] = (
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
    """The job, already READY, waits for room from now on."""
    job.ready_at = turn.wall
    world.placement.offer(job.need, priority=job.spec.priority, jobs=[job.id])


def dequeue(world: World, job: Job) -> None:
    """The job is about to leave READY other than by being placed."""
    world.placement.withdraw(job.need, priority=job.spec.priority, job=job.id)


def finish(
    world: World, turn: Turn, job: Job, state: State, *, reason: Reason | None, outcome: Outcome | None
) -> None:
    """Put a job into a terminal state: the one terminal record of this opening."""
    move(world, job, state)
    job.reason = reason
    job.ended_at = turn.wall
    job.due_at = None
    world.outcomes[job.id] = state
    _tally(turn, job, 1, job.spec.dep_groups)
    count_end(turn, job, state)
    write(turn, job)
    leave(world, turn, job.id)
    turn.effects.append(NotifySettled(job, state, outcome))


def reopen(world: World, turn: Turn, job: Job) -> None:
    """Take back the terminal record: the job, still in its terminal state, will move on."""
    world.outcomes[job.id] = OPEN
    _tally(turn, job, -1, job.spec.dep_groups)
    job.ended_at = None
    job.reason = None
    job.kill = False


def erase(world: World, turn: Turn, job: Job) -> None:
    """Forget that a job, in a terminal state, ever was."""
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
    turn.changes.removed.append((job.id,))


def _tally(turn: Turn, job: Job, more: int, groups: tuple[str, ...]) -> None:
    """The store counts finished jobs by group and state, and complete members of dependency groups."""
    changes, state = turn.changes, job.state
    key = (job.spec.group, int(state))
    changes.tally[key] = changes.tally.get(key, 0) + more
    if state is State.COMPLETE:
        for name in groups:
            changes.dep_groups[name] = changes.dep_groups.get(name, 0) + more


def leave(world: World, turn: Turn, id: int) -> None:
    """The job may leave memory once this batch is on disk."""
    world.leaving[id] = world.leaving.get(id, 0) + 1
    turn.batch.leaving.append(id)


def forget(world: World, ids: list[int]) -> None:
    """These batches' `leaving` are on disk: finished jobs leave memory.

    They stay if they were re-opened, if a later batch must be on disk first, or if an upload is about
    to re-open them.
    """
    wanted = {id for upload in world.uploads.values() for id in upload.retried}
    for id in ids:
        batches = world.leaving.pop(id) - 1
        if batches:
            world.leaving[id] = batches
            continue
        job = world.jobs.get(id)
        if job is not None and job.state in TERMINAL and id not in wanted:
            del world.jobs[id]
            if world.keys.get(job.key) == id:
                del world.keys[job.key]
