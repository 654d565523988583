"""The interface of a launcher: what the runner asks of it, and the records that pass between them.

Two kinds implement it: `InsideLauncher` in the runner's own process, and a client of a launcher that is a process
of its own. A runner may have several launchers: one for new leases, others for tasks that it adopted. Each task
refers to its launcher.

Calls block until they are done. A launcher decides nothing: it does not choose what runs, and it ends nothing
unless `limits` told it to and there is no runner. It keeps the order of things: what a process wrote can be read
before its end is told, and an end is told before the number of that process is given to another.

Not built yet, with a place here for each:

- *A target user.* `StartOrder.user`. Everything that is done for a job on its files goes through this package, so
  it can be done as that user: opening output files, `chdir`, scratch directories, removal of trees.
- *Many outcomes from one start.* A process that executes several calls writes a record for each to its file. The
  runner reads it, so the launcher needs no notion of outcomes.
- *File operations of staging.* Functions beside those in `trees.py` and `scratch.py`, later executed as the user.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, Protocol

import msgspec

from rota.launcher.variables import Variables

#: A lease: job, attempt, token.
Key = tuple[int, int, int]
#: What is started: the command of a job, one of its behaviours, a hook of the site for it, a process that enters
#: it (`rota exec`), a containment script of the site; or a template, for no lease.
Kind = Literal["command", "behaviour", "hook", "exec", "script", "template"]
#: The file to execute (None: to be looked for in PATH), and its arguments beginning with its name.
Words = tuple[bytes | None, list[bytes]]
SHELL = b"/bin/sh"


class Refused(Exception):
    """The system cannot start anything at the moment; later it may."""


class CannotRun(Exception):
    """This command cannot be started, now or (if `permanent`) later."""

    def __init__(
        self, exit_code: int | None, message: str, *, reason: str = "not_found", permanent: bool = True
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.message = message
        self.reason = reason
        self.permanent = permanent


class NotReady(Exception):
    """This template forks nothing now, and nothing was begun. `why`: empty (it is not ready yet), `import`,
    `threads`, `changed`, `large` or `gone`; after all but the first it is to be ended."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class OutputPipes(Protocol):
    """Pipes for stdout and stderr of one job after the other. What one has written must be read before the next
    begins.

    `out` and `err` are descriptors, unique in this process, by which the two streams are known. Where `polled` is
    set they become readable when there is output. Elsewhere `Launcher.receive` tells which have output.
    """

    @property
    def out(self) -> int: ...

    @property
    def err(self) -> int: ...

    @property
    def polled(self) -> bool: ...

    def read(self, stream: int, size: int, /) -> bytes:
        """At most `size` bytes of this stream (`out` or `err`). Raises `BlockingIOError` if there are none now."""
        ...

    def close(self) -> None: ...


# -------------------------------------------------------------- standard input, output and error of a process


class Captured(msgspec.Struct, frozen=True):
    """Output to pipes, or appended to a file where one is named; input is empty.

    The launcher opens the files. A file that cannot be opened raises `CannotRun` with reason `output_file`, or
    `Refused`.
    """

    pipes: OutputPipes
    out: str = ""  #: path of a file for stdout
    err: str = ""


class OnTerminal(msgspec.Struct, frozen=True):
    """A new pseudo-terminal, which becomes its controlling terminal. `Begun.fds`: the master side."""

    rows: int
    cols: int


class Piped(msgspec.Struct, frozen=True):
    """Three new pipes. `Begun.fds`: our ends, to write to stdin and to read stdout and stderr."""


class IntoFile(msgspec.Struct, frozen=True):
    """Output to a file without a name; input is empty. `Begun.fds`: the file."""

    directory: str  #: on whose file system


class Discarded(msgspec.Struct, frozen=True):
    """Empty input, output to nowhere."""


Stdio = Captured | OnTerminal | Piped | IntoFile | Discarded


# -------------------------------------------------------------- a start, and an end


class User(msgspec.Struct, frozen=True):
    """Whose rights a process gets. Not built yet."""

    uid: int
    gid: int
    groups: Sequence[int] = ()


class StartOrder(msgspec.Struct, frozen=True):
    """One process to start, as the leader of a session of its own."""

    key: Key  #: for which lease
    kind: Kind
    words: Words
    variables: Variables
    cwd: bytes
    stdio: Stdio
    cgroups: Sequence[str] = ()  #: directories of groups that it joins before it executes `words`
    cores: Collection[int] = ()  #: to which it is bound; empty: it runs where the launcher may
    user: User | None = None  #: not built yet: such an order is refused
    #: content of a file without a name that it gets as descriptor 3 and may write to; the last of `Begun.fds`
    file: bytes | None = None
    # Only where `Launcher.forks` is set.
    template: bool = False  #: it gets a socket as descriptor 3, by which it is asked to fork
    fork_of: int = 0  #: do not execute `words`, have this template fork


class Begun(msgspec.Struct, frozen=True):
    """A process that was started."""

    pid: int
    start_time: int  #: clock ticks since boot, give or take a tick
    fds: tuple[int, ...] = ()  #: see the kinds of `stdio`; they now belong to the caller, and do not block
    unbound: str = ""  #: why it could not be bound to its cores; it runs anyway


class Decided(msgspec.Struct, frozen=True):
    """What became of a lease that was held ahead."""

    key: Key
    begun: Begun | None = None  #: None: it was not started, and is held no longer
    at: float = 0.0  #: when it began (`time.monotonic`)
    doubt: CannotRun | None = None  #: the launcher has died, and it cannot be told whether it had begun


class Usage(Protocol):
    """Resources that a process and the children it waited for have used: as in `resource.struct_rusage`."""

    @property
    def ru_utime(self) -> float: ...

    @property
    def ru_stime(self) -> float: ...

    @property
    def ru_maxrss(self) -> int: ...


#: A process that has ended: its pid, its status as of wait(2), and its usage.
Ended = tuple[int, int, Usage]


class Launcher(Protocol):
    """Starts processes on behalf of jobs, holds their pipes, and reaps them."""

    @property
    def pid(self) -> int:
        """The parent of all processes that it starts, and of their orphans."""
        ...

    @property
    def fd(self) -> int:
        """Readable when `receive` has something to do. -1: SIGCHLD says that a child has ended."""
        ...

    @property
    def forks(self) -> bool:
        """Does it start templates and their forks? Else orders for these are refused."""
        ...

    @property
    def lasting(self) -> bool:
        """Do its processes outlive this one? Only then are `note`, `release` and `limits` called."""
        ...

    # ---------------------------------------------------------- starting

    def output_pipes(self) -> OutputPipes:
        """New pipes. Raises `OSError`."""
        ...

    def start_shell(
        self, key: Key, text: bytes, variables: Variables, cwd: bytes, pipes: OutputPipes, cores: Collection[int]
    ) -> int:
        """The pid of `/bin/sh -c text` for a command whose output is captured. Raises `Refused` or `CannotRun`.

        The way of nearly all jobs: it does as little as possible, and takes arguments instead of an order. Unlike
        with `start`, what the shell forks within its first microseconds may not be bound to the cores.
        """
        ...

    def start(self, order: StartOrder) -> Begun:
        """Start a process. Raises `Refused`, `CannotRun` or `NotReady`; then nothing of it is left."""
        ...

    def end_template(self, pid: int) -> str:
        """Let this template end, if it has not; why it has, as far as it said so (as in `NotReady`)."""
        ...

    def run(self, order: StartOrder, limit_s: float) -> int | None:
        """Start a process and wait for its end, which `reap` does not tell: its status, or None if it took too
        long and was killed. Raises `Refused` or `CannotRun`."""
        ...

    def rest(self) -> None:
        """No job is left for now: keep no directory busy."""
        ...

    # ---------------------------------------------------------- leases held ahead: only where `lasting` is set

    def hold(
        self,
        key: Key,
        text: bytes,
        variables: Variables,
        cwd: bytes,
        pipes: OutputPipes,
        cores: Collection[int],
        *,
        after: Key,
        note: bytes,
        until: float,
    ) -> None:
        """Start a shell, as `start_shell` does, once the lease `after` has ended quietly (`ahead`), and not later
        than `until` (`time.monotonic`). `note`: as of the method of that name. Returns at once; `decided` tells
        what became of it. Raises `Refused`."""
        ...

    def withdraw(self, key: Key) -> bool:
        """A lease that is held must not be started. True: it never will be. Else `decided` tells its fate. Leases
        that are held after it are held no longer, which `decided` tells."""
        ...

    def decided(self) -> Collection[Decided]:
        """What became of leases that are no longer held, each once. To be asked after `receive`, before output is
        read and before an end is asked for: the pipes belong to the last one that has begun."""
        ...

    # ---------------------------------------------------------- ending

    def receive(self) -> Collection[int]:
        """`fd` is readable: take in what the launcher tells. Returns the streams that have output."""
        ...

    def reap(self, pid: int = -1) -> Ended | None:
        """The next child that has ended (this very one, if `pid` is given), or None. Each is returned once.

        Children that it did not start are orphans of those that it did.
        """
        ...

    def alone(self, pid: int) -> bool:
        """Was nothing left of anything that had ended when the end of this process was told, which `reap` has just
        returned? False if that is not known: then `children` tells."""
        ...

    def children(self) -> int:
        """How many children it has now. One that has ended counts until `reap` returns it. After this call
        everything can be read that children which no longer count have written to their pipes."""
        ...

    def signal(self, pid: int, number: int, *, group: int = 0) -> None:
        """Signal the process group of a child that was not returned by `reap` yet, so its number is still its own;
        or another `group` of its session. Raises `OSError`."""
        ...

    def is_own(self, recorded: int) -> bool:
        """Can this peak of memory (bytes, of a child) be the launcher's own? A child begins its life in the
        launcher's memory, and the kernel counts that."""
        ...

    # ---------------------------------------------------------- for the runner's successor

    def flush(self) -> None:
        """Send what was noted, released and held, at the latest now."""
        ...

    def note(self, key: Key, state: bytes) -> None:
        """Keep this about a lease for the next runner, instead of what was noted before."""
        ...

    def release(self, key: Key) -> None:
        """The end of this lease is recorded elsewhere: forget it."""
        ...

    def limits(
        self, key: Key, *, end_at: float | None, kill_grace_s: float, cgroups: Collection[str] = ()
    ) -> None:
        """When the processes of this lease are ended if there is no runner then (`time.monotonic`, which all
        processes of a machine share; None: never), how long they have between TERM and KILL, and the groups of its
        fence if that was made after the start."""
        ...


def shell(text: bytes) -> Words:
    """What executes a command line."""
    return SHELL, [b"sh", b"-c", text]


def refuse_unbuilt(order: StartOrder) -> None:
    """Refuse an order that would start with other rights than it says."""
    if order.user is not None:
        raise CannotRun(None, "this launcher starts nothing for other users yet")
