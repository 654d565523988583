"""Manager → runner: what to run, how to behave, what to end."""

from __future__ import annotations

from rota.core.attempts.leases import LeaseRef
from rota.core.jobs.job import Command, Element
from rota.plan.size import Size
from rota.wire.channels import InChannel, StartChannel
from rota.wire.greeting import Failure, Message, Welcome


class RunSpec(Message, frozen=True):
    """What a runner must know to run jobs of one specification."""

    id: int
    env: int
    cwd: str
    user: str
    name: str
    group: str
    size: Size
    walltime_s: float | None
    scratch: bool
    pipefail: bool
    on_success: tuple[str, ...] = ()
    on_failure: tuple[str, ...] = ()
    on_exit: tuple[str, ...] = ()
    stdout: str = ""
    stderr: str = ""
    interactive: bool = False
    checkpoint_s: float | None = None  #: so long before its walltime is over it gets `signal`
    signal: str = ""  #: by which it is asked for a checkpoint; empty: USR2
    done_at_walltime: bool = False  #: the end of its walltime is its normal end


class Allocation(Message, frozen=True):
    """What the planner gave to one attempt, for its runner."""

    cpu_list: str = ""  #: cores of the runner's host by the kernel's numbers, like 0-3,8; empty: any
    nodes: tuple[tuple[str, int], ...] = ()  #: hosts and how many cores of each; empty: no `ROTA_NODEFILE`
    walltime_s: float | None = None  #: where it is not that of the specification


class Grant(Message, frozen=True):
    """One lease. `rank` orders the queue inside the runner, lowest first."""

    job: int
    attempt: int
    token: int
    spec: int
    cmd: Command
    rank: int
    size: Size | None = None  #: where it is not that of the specification
    element: Element | None = None
    allocation: Allocation | None = None


class Part(Message, frozen=True):
    """What a lease has on a host beside its first: processes may be started there, though no command is.

    Answered by `Report.opened` when the host is ready, each time it is sent.
    """

    job: int
    attempt: int
    token: int
    spec: int
    allocation: Allocation
    size: Size | None = None  #: where it is not that of the specification
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
    interactive_grace_s: float = 60.0  #: how long the terminal of a job waits for somebody
    prologue: str = ""  #: a script of the site that runs before each job; empty: none
    epilogue: str = ""  #: the same after each
    hook_timeout_s: float = 60.0  #: how long each of them may run
    containment_script: str = ""  #: of the site, which holds jobs together instead of control groups
    suspend_hook: str = ""  #: a script of the site that runs just after a job was suspended; empty: none
    resume_hook: str = ""  #: the same just before it goes on
    walltime_warning_s: float = 0.0  #: so long before its walltime is over a job gets `warn_signal`; 0: never
    warn_signal: str = "CONT"
    checkpoint_grace_s: float = 30.0  #: how long a job may write a checkpoint before it is ended for others
    output_spool: int = -1  #: bytes on disk for output that an attached reader has not taken; -1: never ask `Full`


class Work(Message, frozen=True, tag="work"):
    """Seats and leases. The runner starts the lowest rank whose size equals that of a free seat."""

    grants: list[Grant]
    seats: list[Seat] = []
    specs: list[RunSpec] = []  #: those used by `grants` and `parts` that this connection has not seen
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
    """Stop all processes of these attempts, or let them go on. Answered by `Report.paused`, each time."""

    leases: list[LeaseRef]
    on: bool = True


class Signal(Message, frozen=True, tag="signal"):
    """Send a signal, by its name without SIG."""

    leases: list[LeaseRef]
    signal: str
    everything: bool = True  #: to all processes; else to the process group of the first


class SetWalltime(Message, frozen=True, tag="set-walltime"):
    """This attempt has another walltime, from its beginning on."""

    lease: LeaseRef
    walltime_s: float


class ClosePart(Message, frozen=True, tag="close-part"):
    """End everything in these parts; `Report.shut` says when nothing is left of them, also of unknown ones."""

    leases: list[LeaseRef]


class Recall(Message, frozen=True, tag="recall"):
    """Hand back these leases unless they have started."""

    leases: list[LeaseRef]


class Tail(Message, frozen=True, tag="tail"):
    """Send the output of this attempt from its beginning as `Live`; `on=False` stops it.

    `on=False` without a tail answers `Full`: nobody wants every byte.
    """

    job: int
    attempt: int
    on: bool = True
    tail: int = 0  #: number of this reader; each has a place of its own in the output
    hold: bool = False  #: it gets every byte: rather than lose one, let the job wait
    window: int = -1  #: bytes that may be sent beyond what it has taken; -1: any


class Took(Message, frozen=True, tag="took"):
    """The reader of a tail has dealt with the output up to these offsets."""

    job: int
    attempt: int
    tail: int
    out: int
    err: int
    window: int


class Leave(Message, frozen=True, tag="leave"):
    """The manager stops. `kill`: end all jobs first. Otherwise keep them and their reports; unstarted
    leases have been recalled; leave when nothing runs."""

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
