"""Manager → runner: what to run, how to behave, what to end."""

from __future__ import annotations

from rota.core.attempts.leases import LeaseRef
from rota.core.jobs.command import Command
from rota.core.jobs.element import Element
from rota.plan.size import Size
from rota.wire.channels import InChannel, StartChannel
from rota.wire.greeting import Failure, Message, Welcome
from rota.wire.job_structs import RunSpec


class Allocation(Message, frozen=True):
    """The planner's allocation of one attempt, for its runner."""

    cpu_list: str = ""  #: cores of the runner's host in the kernel's numbering, like 0-3,8; empty: any
    nodes: tuple[tuple[str, int], ...] = ()  #: hosts and the number of cores on each; empty: no `ROTA_NODEFILE`
    walltime_s: float | None = None  #: if not that of the specification
    gang_hosts: str = ""  #: of a member of a gang: a line for each member, `name=host1,host2`


class Errand(Message, frozen=True):
    """This lease runs a command of the site for another host, and not its job. The command gets the agent's own
    environment."""

    ticket: bytes = b""  #: content of a private file, whose path the command gets as `ROTA_TICKET`


class Grant(Message, frozen=True):
    """One lease. `rank` orders the queue inside the runner, lowest first."""

    job: int
    attempt: int
    token: int
    spec: int
    cmd: Command
    rank: int
    size: Size | None = None  #: if not that of the specification
    element: Element | None = None
    allocation: Allocation | None = None
    errand: Errand | None = None


class Part(Message, frozen=True):
    """The part of a lease on a further host: processes may be started there, but no command is.

    Answered by `Report.opened` when the host is ready, each time it is sent.
    """

    job: int
    attempt: int
    token: int
    spec: int
    allocation: Allocation
    size: Size | None = None  #: if not that of the specification
    element: Element | None = None


class Seat(Message, frozen=True):
    """Room for jobs of one size, one at a time, until the runner gives it back."""

    seat: int
    size: Size


class Rules(Message, frozen=True, tag="rules"):
    """How a runner must behave; sent after `Join` is accepted, and when the settings change."""

    touch_s: float
    orphan_after_s: float
    grace_s: float
    keep_output: int  #: bytes kept of each stream; beyond it, head and tail
    containment: str  #: auto, cgroup, session
    forget: list[LeaseRef] = []  #: leases and parts the runner holds that are no longer valid: end them
    behaviour_timeout_s: float = 300.0
    enforce_memory: str = "auto"  #: auto: only when the host is nearly full; cgroup: always, by the kernel
    interactive_grace_s: float = 60.0  #: how long the terminal of a job waits for a connection
    prologue: str = ""  #: a script of the site that runs before each job; empty: none
    epilogue: str = ""  #: the same after each
    hook_timeout_s: float = 60.0  #: how long each of them may run
    containment_script: str = ""  #: a script of the site that contains jobs instead of control groups
    suspend_hook: str = ""  #: a script of the site that runs just after a job was suspended; empty: none
    resume_hook: str = ""  #: the same just before it is resumed
    walltime_warning_s: float = 0.0  #: a job gets `warn_signal` this long before its walltime ends; 0: never
    warn_signal: str = "CONT"
    checkpoint_grace_s: float = 30.0  #: time for a checkpoint before a job is ended in favour of others
    output_spool: int = -1  #: bytes on disk for output not yet taken by an attached reader; -1: never ask `Full`


class Work(Message, frozen=True, tag="work"):
    """Seats and leases. The runner starts the lowest rank whose size equals that of a free seat."""

    grants: list[Grant]
    seats: list[Seat] = []
    specs: list[RunSpec] = []  #: specifications used by `grants` and `parts` that are new to this connection
    envs: list[tuple[int, bytes]] = []  #: likewise
    parts: list[Part] = []


class Ack(Message, frozen=True, tag="ack"):
    """Reports up to `seq` are on disk."""

    seq: int


class Kill(Message, frozen=True, tag="kill"):
    """End these attempts: TERM to the whole tree, grace, KILL. Unstarted ones are returned."""

    leases: list[LeaseRef]
    checkpoint: str = ""  #: first this signal, and time to write a checkpoint


class Suspend(Message, frozen=True, tag="suspend"):
    """Stop all processes of these attempts, or continue them. Answered by `Report.paused`, each time."""

    leases: list[LeaseRef]
    on: bool = True


class Signal(Message, frozen=True, tag="signal"):
    """Send a signal, by its name without SIG."""

    leases: list[LeaseRef]
    signal: str
    everything: bool = True  #: to all processes; otherwise to the process group of the first


class SetWalltime(Message, frozen=True, tag="set-walltime"):
    """This attempt has a new walltime, counted from its start."""

    lease: LeaseRef
    walltime_s: float


class ClosePart(Message, frozen=True, tag="close-part"):
    """End everything in these parts. `Report.shut` confirms when nothing is left, also for unknown parts."""

    leases: list[LeaseRef]


class Recall(Message, frozen=True, tag="recall"):
    """Hand back these leases unless they have started."""

    leases: list[LeaseRef]


class Tail(Message, frozen=True, tag="tail"):
    """Send the output of this attempt from its beginning as `Live`; `on=False` stops it.

    `on=False` without a tail answers `Full`: no reader needs every byte.
    """

    job: int
    attempt: int
    on: bool = True
    tail: int = 0  #: number of this reader; each has its own position in the output
    hold: bool = False  #: the reader gets every byte: block the job rather than lose one
    window: int = -1  #: bytes that may be sent ahead of the reader; -1: any


class Took(Message, frozen=True, tag="took"):
    """The reader of a tail has processed the output up to these offsets."""

    job: int
    attempt: int
    tail: int
    out: int
    err: int
    window: int


class Leave(Message, frozen=True, tag="leave"):
    """The manager stops. `kill`: end all jobs first. Otherwise keep jobs and reports, and leave when nothing runs;
    unstarted leases have been recalled."""

    kill: bool = False


ToRunner = (
    Welcome
    | Failure
    | Rules
    | Work
    | Ack
    | Kill
    | Suspend
    | Signal
    | SetWalltime
    | ClosePart
    | Recall
    | Tail
    | Took
    | Leave
    | StartChannel
    | InChannel
)
