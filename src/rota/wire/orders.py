"""Manager → runner: what to run, how to behave, what to end."""

from __future__ import annotations

from rota.core.job import Command, Element
from rota.core.leases import LeaseRef
from rota.plan.size import Size
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
    forget: list[LeaseRef] = []  #: leases the runner holds that are no longer valid: end them
    behaviour_timeout_s: float = 300.0
    enforce_memory: str = "auto"  #: auto: only when the host is nearly full; cgroup: always, by the kernel


class Work(Message, frozen=True, tag="work"):
    """Seats and leases. The runner starts the lowest rank whose size equals that of a free seat."""

    grants: list[Grant]
    seats: list[Seat] = []
    specs: list[RunSpec] = []  #: those used by `grants` that this connection has not seen
    envs: list[tuple[int, bytes]] = []  #: likewise


class Ack(Message, frozen=True, tag="ack"):
    """Reports up to `seq` are on disk."""

    seq: int


class Kill(Message, frozen=True, tag="kill"):
    """End these attempts: TERM to the whole tree, grace, KILL. Unstarted ones are returned."""

    leases: list[LeaseRef]


class Recall(Message, frozen=True, tag="recall"):
    """Hand back these leases unless they have started."""

    leases: list[LeaseRef]


class Tail(Message, frozen=True, tag="tail"):
    """Send the output of this running attempt from its beginning as `Live`; `on=False` stops it."""

    job: int
    attempt: int
    on: bool = True


class Leave(Message, frozen=True, tag="leave"):
    """The manager stops. `kill`: end all jobs first. Otherwise keep them and their reports; unstarted
    leases have been recalled; leave when nothing runs."""

    kill: bool = False


ToRunner = Welcome | Failure | Rules | Work | Ack | Kill | Recall | Tail | Leave
