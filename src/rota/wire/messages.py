"""All messages of the protocol, version 1. Arrays of fields: new fields go last, with a default.

A connection begins with `Hello` from the one who connects, answered by `Welcome` or `Failure`.
After that a client sends requests (each with its own number `n`) and gets `Reply`, `Item` or
`Failure` with the same number; a runner sends reports and gets work.
"""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Raw, Struct, UnsetType

from rota.core.job import Command, Element
from rota.core.leases import Finished, Held, LeaseRef, Started
from rota.plan.size import Size

PROTOCOL: Final = 1


class Message(Struct, frozen=True, array_like=True, gc=False):
    """Base of everything on the wire."""


# ------------------------------------------------------------------ the beginning of a connection


class Hello(Message, frozen=True, tag="hello"):
    """The first message. A token is needed except on the Unix socket, where the peer's uid counts."""

    protocol: int
    role: str  #: user, admin or runner: what the peer wants to be
    token: str = ""
    software: str = ""


class Welcome(Message, frozen=True, tag="welcome"):
    protocol: int
    role: str
    user: str
    generation: int  #: grows with every start of the manager
    deployment: str


class Failure(Message, frozen=True, tag="failure"):
    """Request `n` was refused; n = 0 concerns the connection, which is then closed."""

    n: int
    code: str
    message: str
    hint: str = ""


class Reply(Message, frozen=True, tag="reply"):
    n: int
    body: Raw


class Item(Message, frozen=True, tag="item"):
    """One piece of a stream that request `n` opened; a `Reply` ends the stream."""

    n: int
    body: Raw


# ------------------------------------------------------------------ requests of clients


class NewUse(Message, frozen=True):
    """A use of a limit as a client sends it. What the number after the colon means depends on the limit:
    units to take, or the capacity of a limit that only jobs declare."""

    name: str
    number: int | None = None
    exclusive: bool = False


class NewSpec(Message, frozen=True):
    """A specification as a client sends it: user and environment are filled in by the manager."""

    cwd: str
    group: str
    name: str
    project: str
    queue: str
    priority: int
    size: Size
    walltime_s: float | None
    retries: int
    backoff_s: float
    no_retry_over_s: float | None
    scratch: bool
    pipefail: bool
    env: int  #: index into the submission's environments
    limits: tuple[NewUse, ...] = ()
    dep_groups: tuple[str, ...] = ()
    live: bool = True
    allow_empty_group: bool = False
    learn: str = ""
    override: str = ""
    given: tuple[str, ...] = ()
    on_success: tuple[str, ...] = ()
    on_failure: tuple[str, ...] = ()
    on_exit: tuple[str, ...] = ()
    stdout: str = ""
    stderr: str = ""
    request: tuple[str, ...] = ()
    where: str = ""
    types: tuple[str, ...] = ()
    at: float | None = None


class NewElement(Message, frozen=True):
    """An entry that is an element of an array."""

    entry: int
    array: int  #: arrays of a submission are numbered from 0
    index: int


class NewAfter(Message, frozen=True):
    """A dependency as a client sends it."""

    entry: int  #: index in the submission that has it
    parent: int | str  #: a job's id, a dependency group, or, if `local`, the index of another entry
    condition: int = 1
    local: bool = False
    elements: tuple[int, int] | None = None  #: `parent` is an array, of which those from index to index are meant


class Add(Message, frozen=True, tag="add"):
    """One chunk of a submission. Chunks come in order; nothing is visible before the last."""

    n: int
    submission: str  #: made by the client; a repeat gets the first answer
    first: int  #: index of the first command of this chunk
    cmds: list[Command]
    specs: list[NewSpec] = []  #: appended to those of earlier chunks
    envs: list[bytes] = []  #: appended likewise; NUL-separated K=V
    spec_of: list[int] | None = None  #: for each command; None: all use spec 0
    lines: list[int] | None = None  #: line in the input of each command, for errors; None: index + 1
    after: list[NewAfter] = []
    more: bool = False
    fresh: bool = False  #: new jobs even if the same were added before
    check: bool = False  #: say what would happen, add nothing
    allow_unsatisfiable: bool = False
    fresh_entries: list[int] = []  #: indexes in the submission that are `fresh` while others are not
    allowed_entries: list[int] = []  #: likewise for `allow_unsatisfiable`
    elements: list[NewElement] = []
    inputs: list[tuple[int, int]] = []  #: (entry, bytes of its input)


class Drop(Message, frozen=True, tag="drop"):
    """Forget a submission of which not all chunks were sent."""

    n: int
    submission: str


class ListJobs(Message, frozen=True, tag="jobs"):
    n: int
    selectors: list[str]
    limit: int = 1000
    cursor: int = 0


class Status(Message, frozen=True, tag="status"):
    n: int
    selectors: list[str]


class Show(Message, frozen=True, tag="show"):
    n: int
    job: int


class Act(Message, frozen=True, tag="act"):
    """kill, retry, remove, hold, release, confirm-dead."""

    n: int
    verb: str
    selectors: list[str]
    cascade: bool = False  #: remove: with everything that depends on them


class SpecChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What is to be changed of a specification: only what is here is sent, by name. A field that one side
    does not know is refused rather than lost."""

    name: str | UnsetType = UNSET
    group: str | UnsetType = UNSET
    project: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    cpus: int | UnsetType = UNSET  #: hundredths of a core
    mem: int | UnsetType = UNSET
    disk: int | UnsetType = UNSET
    time_s: float | UnsetType = UNSET
    gpus: int | UnsetType = UNSET
    walltime_s: float | UnsetType | None = UNSET
    retries: int | UnsetType = UNSET
    backoff_s: float | UnsetType = UNSET
    no_retry_over_s: float | UnsetType | None = UNSET
    pipefail: bool | UnsetType = UNSET
    limits: tuple[NewUse, ...] | UnsetType = UNSET
    learn: str | UnsetType = UNSET
    override: str | UnsetType = UNSET
    input_bytes: int | UnsetType | None = UNSET
    on_success: tuple[str, ...] | UnsetType = UNSET
    on_failure: tuple[str, ...] | UnsetType = UNSET
    on_exit: tuple[str, ...] | UnsetType = UNSET
    stdout: str | UnsetType = UNSET
    stderr: str | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    request: tuple[str, ...] | UnsetType = UNSET
    where: str | UnsetType = UNSET
    types: tuple[str, ...] | UnsetType = UNSET


class Modify(Message, frozen=True, tag="modify"):
    """Change jobs that are not running."""

    n: int
    selectors: list[str]
    spec: SpecChange


class Why(Message, frozen=True, tag="why"):
    """What keeps a job from running?"""

    n: int
    job: int


class PlanFor(Message, frozen=True, tag="plan"):
    """When and where would such a job run? Nothing is submitted."""

    n: int
    spec: NewSpec
    user: str = ""  #: whose job it would be; empty: that of who asks


class Gantt(Message, frozen=True, tag="gantt"):
    """What runs and what is planned, of what lies between two moments (Unix seconds; None: no bound)."""

    n: int
    since: float | None = None
    until: float | None = None
    limit: int = 10_000  #: at most so many jobs, those that begin first


class ListLimits(Message, frozen=True, tag="limits"):
    n: int


class SetLimit(Message, frozen=True, tag="limit"):
    """NAME:N, NAME:unlimited, NAME@HH:MM-HH:MM, NAME:N@HH:MM-HH:MM; of one host if one is named."""

    n: int
    text: str
    host: str = ""


class GetSite(Message, frozen=True, tag="site"):
    """Records of the site of these kinds; no kind: all."""

    n: int
    kinds: list[str] = []


class SetSite(Message, frozen=True, tag="set-site"):
    """Change records of the site, all of them or none: (kind, name, value as JSON; null removes it).

    `base` is the version that the changes were made from: if there is another one by now they are refused
    with the code `changed`. -1: whatever it is.
    """

    n: int
    changes: list[tuple[str, str, str | None]]
    about: str = ""
    base: int = -1


class Learned(Message, frozen=True, tag="learned"):
    """What is known about a learning group, or about all (no name)."""

    n: int
    name: str = ""
    forget: bool = False


class Watch(Message, frozen=True, tag="watch"):
    """Stream `Progress` until every selected job is settled; then a `Reply` with `Settled`."""

    n: int
    selectors: list[str]
    outputs: bool = False  #: with what the jobs printed, once each has ended
    follow: bool = False  #: with what they print while they run


class ReadOutput(Message, frozen=True, tag="output"):
    n: int
    job: int
    attempt: int = 0  #: 0: the newest
    stream: int = 1  #: 1 stdout, 2 stderr
    offset: int = 0
    limit: int = 1 << 20


class Control(Message, frozen=True, tag="control"):
    """status, stop (with kill), pause, drain, resume, backup (with path, force; `Item`s tell the share that is
    done), token-add, token-list, token-remove, doctor."""

    n: int
    verb: str
    args: dict[str, str] = {}


class Stop(Message, frozen=True, tag="stop"):
    """Close the stream that request `stream` opened."""

    n: int
    stream: int


# ------------------------------------------------------------------ answers to clients


class Ended(Message, frozen=True):
    """A job that has settled, in `Progress`."""

    job: int
    state: int
    exit_code: int | None
    signal: int | None
    reason: str  #: code
    message: str
    cmd: str
    attempt: int
    out: bytes = b""  #: whole, if it is at most 64 KiB; else ask with `ReadOutput`
    err: bytes = b""
    out_len: int = 0
    err_len: int = 0
    out_total: int = 0  #: bytes that it wrote; more than `out_len` when the middle was left out
    err_total: int = 0


class Chunk(Message, frozen=True):
    """A piece of live output."""

    job: int
    attempt: int
    stream: int
    offset: int
    data: bytes


class Progress(Message, frozen=True):
    """What has happened to watched jobs since the last item."""

    ended: list[Ended]
    counts: dict[str, int]  #: by state, of all watched jobs
    chunks: list[Chunk] = []


class OutputPart(Message, frozen=True):
    data: bytes
    total: int  #: bytes that are kept
    written: int  #: bytes that the job wrote
    done: bool  #: the attempt has ended and this part reaches its end
    attempt: int = 0


# ------------------------------------------------------------------ runner → manager


class Join(Message, frozen=True, tag="join"):
    """A runner presents itself, and what it still holds after a lost connection."""

    runner: str
    host: str
    boot_id: str
    pid: int
    start_time: int  #: field 22 of /proc/PID/stat
    cores: int
    mem: int
    disk: int
    held: list[Held] = []
    seats: list[int] = []  #: open seats, busy or not
    ticket: str = ""  #: what a delegated pool gave to a runner that it asked for


class Report(Message, frozen=True, tag="report"):
    """What happened at a runner since its last report; an empty one is a touch.

    The runner keeps and repeats a report until `Ack` says that it is on disk. A job that started and
    ended between two reports is only in `ended`.
    """

    seq: int  #: 0: a touch, not acknowledged
    started: list[Started] = []
    ended: list[Finished] = []
    returned: list[LeaseRef] = []  #: leases handed back, never executed
    closed: list[int] = []  #: seats that had nothing left to run and are given back


class Settle(Message, frozen=True, tag="settle"):
    """The whole truth about a dead runner, from its journal and the process table.

    Leases of that runner that are not in `ended` were never executed, unless `whole` is False: then the
    journal may have lost its end (a restart of the machine, damage), and they are lost instead.
    """

    runner: str
    ended: list[Finished] = []
    whole: bool = True


class Idle(Message, frozen=True, tag="idle"):
    """A runner with a ticket has had nothing to do for a while; it leaves when it is told to."""


class Live(Message, frozen=True, tag="live"):
    """Pieces of output of jobs that somebody follows."""

    chunks: list[Chunk]


class LiveEnd(Message, frozen=True, tag="live-end"):
    """The followed job's output has all been sent (or it is not here)."""

    job: int
    attempt: int


# ------------------------------------------------------------------ manager → runner


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


FromClient = (
    Hello | Add | Drop | ListJobs | Status | Show | Act | Modify | Why | PlanFor | Gantt | ListLimits | SetLimit
    | GetSite | SetSite | Learned | Watch
    | ReadOutput | Control | Stop
)  # fmt: skip
ToClient = Welcome | Failure | Reply | Item
FromRunner = Hello | Join | Report | Settle | Idle | Live | LiveEnd
ToRunner = Welcome | Failure | Rules | Work | Ack | Kill | Recall | Tail | Leave
