"""One attempt, from its lease until nothing of it is left, with its seat and its pipes. Data only.

These classes refer to each other, so they share a module. It imports nothing that acts on tasks.
"""

from __future__ import annotations

from rota.core.attempts.leases import Started
from rota.core.jobs.command import Call, is_shell
from rota.core.jobs.outcome import Outcome
from rota.launcher.base import Launcher, OutputPipes, Usage
from rota.launcher.scratch import Scratch
from rota.plan.size import Size
from rota.runner.contain import process_mark
from rota.runner.contain.fence import Fence
from rota.runner.end.behaviour_progress import BehaviourProgress
from rota.runner.end.returned import CallFile
from rota.runner.enter.exec_stream import Conduit
from rota.runner.output.capture import Captured
from rota.runner.report.journal import Intent, Key, Spawned, pack
from rota.runner.start.cores import Share
from rota.runner.start.environment import Environment, index_entry, job_entry
from rota.runner.start.hook_process import Script
from rota.wire.orders import Grant


class Pipes:
    """The output pipes of a launcher, used by one job after the other."""

    __slots__ = ("err", "held", "launcher", "out", "polled", "read", "task")

    def __init__(self, launcher: Launcher, held: OutputPipes | None = None) -> None:
        """`held`: made before. Raises `OSError`."""
        self.launcher = launcher
        self.held = held = launcher.output_pipes() if held is None else held
        self.out, self.err = held.out, held.err
        self.polled = held.polled
        self.read = held.read
        self.task: Task | None = None


class Seat:
    """Room for one job at a time."""

    __slots__ = ("ahead", "id", "pipes", "queue", "quiet", "share", "waits")

    def __init__(self, id: int, queue: LeaseQueue) -> None:
        self.id = id
        self.queue = queue
        self.ahead: list[Task] = []  #: what its launcher starts next by itself, in that order
        self.quiet = False  #: has its last job ended so that its launcher could have started the next?
        self.waits = False  #: no job has it, but its launcher may just be starting one
        self.share: Share | None = None  #: of the host's cores, picked for its first job without an allocation
        self.pipes: Pipes | None = None


class LeaseQueue:
    """The waiting leases of one size, lowest rank first, and the free seats of that size."""

    __slots__ = ("free", "heap", "size", "waiting")

    def __init__(self, size: Size) -> None:
        self.size = size
        self.free: list[Seat] = []
        self.heap: list[tuple[int, Key]] = []
        self.waiting = 0  #: fewer than in the heap if some were recalled


class Task:
    """What the runner knows about an attempt.

    A short job never needs most fields, so their defaults live on the class until they are set.
    """

    over = False
    part = False  #: has it no command of its own (`parts`)?
    plain = True  #: nothing has happened to it but what happens to a short, quiet job
    status: int | None = None  #: of wait(2), once the first process has been reaped
    usage: Usage | None = None  #: of the same
    out: Captured | None = None
    err: Captured | None = None
    cpu_s = 0.0  #: of adopted orphans
    peak_mem = 0
    peak_disk = 0
    sampled = False
    reason = ""  #: why the runner ends it
    message = ""
    deadline: float | None = None  #: when its walltime, or that of its present behaviour, is over
    kill_at: float | None = None  #: when grace is over; TERM has been sent if set
    doubtful = False  #: others may hold its pipes
    share: Share | None = None  #: of the host's cores
    fence: Fence | None = None  #: around all its processes, once there is one
    frozen = False  #: all its processes are stopped
    suspended_since: float | None = None  #: since when it is suspended (monotonic); None: it is not
    suspended_at = 0.0  #: the same, wall time
    suspended_s = 0.0  #: how long it was suspended before
    suspend_wanted = False  #: should it be suspended?
    in_suspend_hook = False  #: the suspend or resume hook of the site runs for it
    walltime_s: float | None = None  #: if it was changed while the task ran
    warned: tuple[tuple[float, str], ...] = ()  #: warnings before the walltime that were sent
    index_entry: bytes | None = None  #: of an element of an array
    behaviours: BehaviourProgress | None = None  #: the command has ended, its behaviours have not
    scratch: Scratch | None = None
    console: Conduit | None = None  #: the terminal of an interactive job
    script: Script | None = None  #: a hook of the site that runs for it
    preparing = False  #: its prologue runs, its command has not begun
    prepared = False  #: its prologue is done
    concluding: Outcome | None = None  #: how it ended, while its epilogue runs
    nodefile: str | None = None  #: where it is, once it has been written
    call_file: CallFile | None = None  #: of a command that is the call of a function
    ticket: str | None = None  #: the same of the file with its ticket
    runs = 0  #: processes that a lasting launcher has started for it (`keeping`), but for those that entered it
    noted: bytes = b""  #: what its launcher knows of it (`keeping`)
    follows: Task | None = None  #: after which its launcher starts it (`start.ahead`)
    told_at = 0.0  #: when what it says about its progress was looked at (monotonic)
    told_size = 0  #: how much it had said then
    left = False  #: its seat and its pipes are those of the next task already
    limits: tuple[float | None, float, tuple[str, ...]] | None = None  #: the same of its limits
    _known: dict[int, int] | None = None

    # Set when it waits, starts or ends.
    queue: LeaseQueue
    launcher: Launcher  #: of all its processes
    seat: Seat
    pipes: Pipes
    pid: int
    start_time: int  #: clock ticks since boot, give or take a tick
    started_at: float
    began: float  #: monotonic
    ended_at: float

    def __init__(self, key: Key, grant: Grant, env: Environment) -> None:
        """Prepares as much as possible when the lease comes: many come at once, and the same work costs a
        fraction of what it costs between two processes."""
        job, attempt, token = key
        spec = env.spec
        self.key = key
        self.grant = grant
        self.env = env
        self.spec = spec
        self.block = pack((Intent(job, attempt, token, env.scratch_goes),))
        self.job_entry = job_entry(job)
        self.lease_entry = process_mark.entry(token)
        #: The command line, if nothing is special about it and a plain shell can run it.
        self.text: bytes | None = None
        if grant.element is not None:
            self.index_entry = index_entry(grant.element.index)
        if isinstance(grant.cmd, str) and env.plain:
            text = grant.cmd.encode("utf-8", "surrogateescape")
            if b"\0" not in text:
                self.text = text

    def fill_environment(self) -> None:
        """Make the variables of its specification those of this task."""
        env = self.env
        env.fill(self.job_entry, self.key[1], self.lease_entry)
        if self.index_entry is not None:
            env.at_index(self.index_entry)
        env.on_cores(None if self.share is None else self.share.entry)
        if self.scratch is not None:
            env.in_scratch(self.scratch)

    @property
    def is_errand(self) -> bool:
        """Does it run a command of the site for another host?"""
        return not self.part and self.grant.errand is not None

    @property
    def shell(self) -> bool:
        """Is it run by a shell, whose exit codes 126 and 127 have a meaning?"""
        return is_shell(self.grant.cmd)

    @property
    def calls(self) -> bool:
        """Is its command the call of a function?"""
        return not self.part and isinstance(self.grant.cmd, Call)

    @property
    def can_checkpoint(self) -> bool:
        """Does its command run now, so that it can write a checkpoint when asked?"""
        return not self.preparing and self.status is None and self.suspended_since is None

    def started(self) -> Started:
        """Its start, for a report."""
        return Started(*self.key, self.seat.id, self.started_at, self.pid)

    def spawned(self) -> Spawned:
        """Its process, for the journal."""
        return Spawned(*self.key, self.pid, self.start_time, self.seat.id, self.started_at)

    @property
    def known(self) -> dict[int, int]:
        """Descendants that were seen: pid -> start time."""
        if self._known is None:
            self._known = {}
        return self._known
