"""Messages between an agent and its launcher process.

The messages are fixed. A later version may add messages, and fields with defaults at the end of these. Anything
else closes the connection.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from rota.launcher.base import Key, Kind

VERSION: Final = 1
#: Spoken here: the own version, and that of the last release, whose launchers may still hold jobs.
#: Each has a golden file.
SPOKEN: tuple[int, ...] = (1,)
#: The variable by which processes of a lease are known that have left its sessions and lost their ancestors.
MARK: Final = b"ROTA_LEASE"

Pid = Annotated[int, Meta(gt=1, lt=1 << 31)]
Count = Annotated[int, Meta(ge=0, lt=1 << 62)]
Stream = Annotated[int, Meta(ge=0, le=1)]
Seconds = Annotated[float, Meta(ge=0.0)]
#: A signal, as the kernel has them.
Signal = Annotated[int, Meta(ge=0, le=64)]


class Message(Struct, frozen=True, array_like=True):
    """Base of all messages."""


# -------------------------------------------------------------- what an agent says


class Attach(Message, frozen=True, tag="attach"):
    """First message: proves that this agent may have the launcher. Answered by `Welcome` or `Unwelcome`."""

    version: int
    boot_id: str
    directory: str  #: of the launcher, as the agent knows it
    epoch: Count  #: the highest one has the launcher
    secret: bytes  #: empty on the connection that the launcher was started with


class Obey(Message, frozen=True, tag="obey"):
    """The rules from now on."""

    keep_output: Count  #: bytes kept of each stream
    orphan_after_s: Seconds  #: everything ends after this time without an agent
    grace_s: Seconds  #: between TERM and KILL, if `Limit` says nothing else


class MakePipes(Message, frozen=True, tag="make_pipes"):
    """Answered by `PipesMade` or `Failed`."""


class ClosePipes(Message, frozen=True, tag="close_pipes"):
    pipes: Count


class ToPipes(Message, frozen=True, tag="captured"):
    """See `base.Captured`."""

    pipes: Count
    out: str = ""
    err: str = ""


class ToTerminal(Message, frozen=True, tag="terminal"):
    rows: int
    cols: int


class ToAgent(Message, frozen=True, tag="piped"):
    """See `base.Piped`."""


class ToFile(Message, frozen=True, tag="file"):
    directory: str


class ToNothing(Message, frozen=True, tag="discarded"):
    pass


WireStdio = ToPipes | ToTerminal | ToAgent | ToFile | ToNothing


class Start(Message, frozen=True, tag="start"):
    """See `base.StartOrder`. Answered by `Started` or `NotStarted`."""

    key: Key
    kind: Kind
    path: bytes | None
    argv: Annotated[list[bytes], Meta(min_length=1)]
    variables: list[bytes]
    search: bytes
    cwd: bytes
    stdio: WireStdio
    cgroups: list[str] = []
    cores: list[Count] = []
    serial: Count = 0  #: by which the agent finds this start in the journal
    plain: bool = False  #: a shell with captured output: see `base.Launcher.start_shell`
    file: bytes | None = None  #: see `base.StartOrder.file`


class Hold(Message, frozen=True, tag="hold"):
    """Start this without further orders, with the pipes of the lease `after`, when that has ended quietly.
    Answered by one of `Begun`, `Dropped` and `Withdrawn`, at any time."""

    start: Start
    note: bytes  #: of its lease
    after: Key  #: may itself be held
    until: float  #: it is not started later than this (CLOCK_MONOTONIC)


class Withdraw(Message, frozen=True, tag="withdraw"):
    """Do not start what is held for this lease. Answered by `Withdrawn`."""

    key: Key


class Send(Message, frozen=True, tag="signal"):
    """Signal the process group of a child, or another `group` of its session. Answered by `Done`."""

    pid: Pid
    number: Signal
    group: Count = 0


class CountChildren(Message, frozen=True, tag="count"):
    """Answered by `Children`, when everything that ended processes wrote is in the spools."""


class Took(Message, frozen=True, tag="took"):
    """The agent has all output of a stream before this offset."""

    pipes: Count
    stream: Stream
    upto: Count


class Note(Message, frozen=True, tag="note"):
    key: Key
    state: bytes


class Release(Message, frozen=True, tag="release"):
    key: Key


class Limit(Message, frozen=True, tag="limit"):
    """When the processes of a lease are ended if there is no agent then (CLOCK_MONOTONIC)."""

    key: Key
    end_at: float | None
    grace_s: Seconds
    cgroups: list[str] = []  #: directories of the groups that hold them


class Leave(Message, frozen=True, tag="leave"):
    """Exit as soon as no process is left and every lease was released; with `kill` end everything first."""

    kill: bool = False


FromAgent = (
    Attach
    | Obey
    | MakePipes
    | ClosePipes
    | Start
    | Send
    | CountChildren
    | Took
    | Note
    | Release
    | Limit
    | Leave
    | Hold
    | Withdraw
)


# -------------------------------------------------------------- what a launcher says


class Spent(Message, frozen=True):
    """Resources that a process has used, under the names of `resource.struct_rusage`."""

    ru_utime: float = 0.0
    ru_stime: float = 0.0
    ru_maxrss: int = 0


class Welcome(Message, frozen=True, tag="welcome"):
    """`HeldPipes` and `HeldTask` follow, as many as said here."""

    version: int
    pid: Pid
    start_time: Count
    pipes: Count = 0
    tasks: Count = 0


class HeldPipes(Message, frozen=True, tag="held_pipes"):
    """Comes with six descriptors (see `SpooledPipes.fds`)."""

    pipes: Count
    keep: tuple[Count, Count]
    trimmed: tuple[Count, Count]


class HeldProcess(Message, frozen=True):
    """A process of a lease that was not released."""

    pid: Pid
    start_time: Count
    kind: Kind
    status: int | None = None  #: None: it runs
    spent: Spent = Spent()
    ended_at: float = 0.0  #: wall time
    fds: Count = 0  #: its descriptors that are sent (see `HOLDS`)


class HeldTask(Message, frozen=True, tag="held_task"):
    """A lease that was not released. Comes with the descriptors of its processes."""

    key: Key
    note: bytes
    processes: list[HeldProcess]
    pipes: int = -1  #: to which its last process writes
    ended_for: str = ""  #: why the launcher has ended it: `walltime`, `orphaned`


class Unwelcome(Message, frozen=True, tag="unwelcome"):
    why: str


class Replaced(Message, frozen=True, tag="replaced"):
    """Another agent has taken this launcher."""


class PipesMade(Message, frozen=True, tag="pipes"):
    """Comes with six descriptors (see `SpooledPipes.fds`)."""

    pipes: Count


class Started(Message, frozen=True, tag="started"):
    """See `base.Begun`. Comes with descriptors."""

    pid: Pid
    start_time: Count
    fds: Count = 0
    unbound: str = ""


class NotStarted(Message, frozen=True, tag="not_started"):
    """See `base.CannotRun`; or (`later`) `base.Refused`."""

    later: bool
    message: str
    exit_code: int | None = None
    reason: str = ""
    permanent: bool = False


class Begun(Message, frozen=True, tag="begun"):
    """A lease held ahead was started."""

    key: Key
    pid: Pid
    start_time: Count
    at: float  #: when (CLOCK_MONOTONIC)


class Dropped(Message, frozen=True, tag="dropped"):
    """A lease held ahead was dropped without being started: the agent decides."""

    key: Key


class Withdrawn(Message, frozen=True, tag="withdrawn"):
    """`never`: it was held and will not be started. Else `Begun` or `Dropped` came before."""

    never: bool


class Done(Message, frozen=True, tag="done"):
    errno: int = 0


class Children(Message, frozen=True, tag="children"):
    count: Count


class Exited(Message, frozen=True, tag="exited"):
    """A child was reaped: one that was started, or an orphan of such."""

    pid: Pid
    status: int
    spent: Spent
    alone: bool = False  #: nothing was left of anything that had ended, and all that it wrote was told


class Wrote(Message, frozen=True, tag="wrote"):
    """These streams have something new in their spools."""

    streams: list[tuple[Count, Stream]]


FromLauncher = (
    Welcome
    | HeldPipes
    | HeldTask
    | Unwelcome
    | Replaced
    | PipesMade
    | Started
    | NotStarted
    | Done
    | Children
    | Exited
    | Wrote
    | Begun
    | Dropped
    | Withdrawn
)

decode_from_agent = msgspec.msgpack.Decoder(FromAgent).decode
decode_from_launcher = msgspec.msgpack.Decoder(FromLauncher).decode
