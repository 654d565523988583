"""What a job is: its shared specification, its size, its own row of state and its lease.

Live jobs are small on purpose (a million of them fit in memory): everything that the jobs of one
submission share is one `Spec`, stored once and referred to.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec
from msgspec import Struct

from rota.core.output.output_report import OutputReport
from rota.core.states import State
from rota.plan.language.types import HOLDERS
from rota.plan.need import LimitUse, Need
from rota.plan.placement import Given, Opened
from rota.plan.size import Floor, Size

#: A command: text for ``/bin/sh -c``, or an argument list that is executed directly.
Command = str | list[str]


#: How a stored command begins that is an argument list, or a text that begins like one of these marks.
_LIST, _TEXT = "\x01", "\x02"
_arguments = msgspec.json.Decoder(list[str])


def command_to_text(cmd: Command) -> str:
    """A command as one text column. `command_from_text` gives back exactly what went in."""
    if not isinstance(cmd, str):
        return _LIST + msgspec.json.encode(cmd).decode()
    return _TEXT + cmd if cmd[:1] in (_LIST, _TEXT) else cmd


def command_from_text(text: str) -> Command:
    """The command that was stored as this text."""
    mark = text[:1]
    if mark == _LIST:
        return _arguments.decode(text[1:])
    return text[1:] if mark == _TEXT else text


class Condition(IntEnum):
    """What a parent must have done before its dependent may run. The numbers are stored."""

    OK = 1  # afterok: complete
    ANY = 2  # afterany: complete, failed or cancelled
    NOT_OK = 3  # afternotok: failed or cancelled


#: What a job may wait for: another job, by its id, or a dependency group, by its name.
Parent = int | str


class After(Struct, frozen=True, array_like=True, gc=False):
    """A dependency on one other job, or on all that are or will be in a dependency group."""

    parent: Parent
    condition: Condition = Condition.OK


class Element(Struct, frozen=True, array_like=True, gc=False):
    """A job's place in an array, which is named by the id of its first job."""

    array: int
    index: int


class Reason(Struct, frozen=True, array_like=True, gc=False):
    """Why a job is where it is: a stable code and a sentence."""

    code: str
    message: str


class AsWritten(Struct, frozen=True, array_like=True, gc=False):
    """What a user asked for, where the rules of the site made something else of it. As in `Spec`."""

    size: Size
    walltime_s: float | None
    given: tuple[str, ...]
    request: tuple[str, ...]
    priority: int | None = None  #: None: as it is


class Spec(Struct, frozen=True, kw_only=True, gc=False):
    """Everything that many jobs of one submission have in common. Stored once, never changed."""

    user: str
    cwd: str
    env: int  #: id of the stored environment
    group: str = "default"
    name: str = ""
    project: str = ""
    queue: str = "default"
    priority: int = 0
    size: Size = Size()
    walltime_s: float | None = None
    retries: int = 0
    backoff_s: float = 30.0
    no_retry_over_s: float | None = None
    scratch: bool = False
    pipefail: bool = False
    limits: tuple[LimitUse, ...] = ()
    dep_groups: tuple[str, ...] = ()  #: others may depend on these
    live: bool = True  #: members that join a group later are waited for as well
    allow_empty_group: bool = False
    learn: str = ""  #: learning group; empty: the program's name
    override: str = ""  #: no, higher, always; empty: higher for what is `given`, no for the rest
    given: tuple[str, ...] = ()  #: of mem, disk and time, those that the user gave
    on_success: tuple[str, ...] = ()  #: behaviours: "run: CMD", "cleanup", "remove"
    on_failure: tuple[str, ...] = ()
    on_exit: tuple[str, ...] = ()
    stdout: str = ""  #: file patterns; empty: kept by Rota
    stderr: str = ""
    request: tuple[str, ...] = ()  #: alternatives, as they were given; none: `size` on one host
    where: str = ""  #: a property expression that every group of the request must satisfy
    types: tuple[str, ...] = ()  #: "besteffort", "inner=12"…; times in them are Unix seconds
    at: float | None = None  #: an advance reservation: when it starts
    checkpoint_s: float | None = None  #: so long before its walltime is over it gets `signal`
    signal: str = ""  #: that which asks for a checkpoint; empty: USR2
    interactive: bool = False  #: its command has a terminal, which somebody is attached to
    job_key: str = ""  #: SHA-256 of a secret: whoever shows that may enter the job
    retry_on: tuple[str, ...] | None = (
        None  #: of `plan.language.retry_codes`; None: all but walltime, where it can help
    )
    wrote: AsWritten | None = None  #: what was asked for, where rules changed that; None: this

    @property
    def on_terms(self) -> bool:
        """Does it ask for more than a size? Then it needs a plan."""
        return bool(self.request or self.types or self.where or self.at is not None or self.queue != "default")

    @property
    def done_at_walltime(self) -> bool:
        """Is the end of its walltime its normal end? It only holds resources, or somebody's terminal."""
        return self.interactive or not HOLDERS.isdisjoint(self.types)


class Behaved(Struct, frozen=True, array_like=True, gc=False):
    """What became of one behaviour after an attempt."""

    behaviour: str  #: as it was given: "run: CMD", "cleanup", "remove"
    ok: bool
    message: str = ""


class Outcome(Struct, frozen=True, array_like=True, gc=False):
    """How an attempt ended, as the runner saw it. All sizes in bytes, all times in seconds."""

    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""  #: a reason code when the runner knows more than the exit: walltime, not_found…
    message: str = ""
    started_at: float | None = None
    ended_at: float = 0.0
    cpu_s: float = 0.0
    peak_mem: int = 0
    peak_disk: int = 0
    segment: str = ""  #: where the output lies: stdout, then stderr, at this offset
    offset: int = 0
    out_len: int = 0
    err_len: int = 0
    out_total: int = 0  #: bytes the job wrote; more than out_len when the middle was left out
    err_total: int = 0
    permanent: bool = False  #: trying again cannot help (not executable, not found, bad cwd)
    behaviours: tuple[Behaved, ...] = ()
    kept: OutputReport | None = None  #: of the output; None: there is none, or an older runner kept it
    most_mem: int = 0  #: the most its peak can have been, where `peak_mem` is 0: not known; 0: nor is this
    by_wall_clock: bool = False  #: `ended_at` is not measured from its start: nobody saw it end


class Part(Struct, gc=False):
    """What a lease has on a host beside its first: whose it is, and whether it is ready."""

    runner: str = ""  #: empty: nobody has been asked for it
    open: bool = False


class Ended(Struct, frozen=True, array_like=True, gc=False):
    """How an attempt ended whose parts are still to be closed, and what becomes of its job then."""

    state: State  #: READY: it waits again
    reason: Reason | None = None
    again: str = ""  #: why it is queued again, at no cost
    outcome: Outcome | None = None  #: None: it was never executed


class Lease(Struct, gc=False):
    """The manager's grant of one attempt to one runner."""

    token: int
    runner: str
    leased_at: float
    started_at: float | None = None
    seat: int = 0  #: 0 until the runner says in which seat it started
    pid: int = 0
    restored: bool = False  #: from a backup: that nobody holds it does not prove that it never ran
    given: Given | None = None  #: what the planner gave it; None: a seat of its size
    parts: dict[str, Part] | None = None  #: by host, those of which something may be there (`core.attempts.parts`)
    withheld: Opened | None = None  #: its seat, until all parts are open and it is sent
    ended: Ended | None = None  #: it is over on its first host
    host: str = ""  #: its first host, once it is over there
    broken: str = ""  #: why it is being ended: a part of it is gone
    frozen: set[str] | None = None  #: hosts that said that its processes stand still


class Job(Struct, gc=False):
    """One job that is still in memory: live, or finished and not yet safely on disk."""

    id: int
    key: str
    spec: Spec
    spec_id: int
    cmd: Command
    state: State
    submission: str
    submitted_at: float
    attempt: int = 0  #: number of the newest attempt
    tries: int = 0  #: attempts that count against the retries since the last opening
    reason: Reason | None = None
    ready_at: float | None = None
    due_at: float | None = None
    ended_at: float | None = None
    after: tuple[After, ...] = ()
    lease: Lease | None = None
    kill: bool = False  #: a kill was asked for; the next end is a cancellation
    preempted: int = 0  #: it is being ended because this job begins on its resources
    learned: Size | None = None  #: what it takes, where that is not what was asked
    floor: Floor | None = None  #: the least it asks for after its own failures
    input_bytes: int | None = None
    element: Element | None = None

    @property
    def size(self) -> Size:
        """What it takes of a host: as asked, or as learned."""
        return self.learned or self.spec.size

    @property
    def need(self) -> Need:
        spec = self.spec
        return Need(self.learned or spec.size, spec.limits, self.spec_id if spec.on_terms else 0)

    @property
    def retries_left(self) -> int:
        return max(0, self.spec.retries - self.tries)
