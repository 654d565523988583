"""Runner → manager: its identity, the leases it holds, and their results."""

from __future__ import annotations

from rota.core.attempts.leases import (
    Finished,
    HeldLease,
    JobProgress,
    LeaseRef,
    NodeFault,
    PartOpened,
    Paused,
    Phase,
    Started,
)
from rota.plan.site.node_facts import NodeFacts
from rota.wire.channels import Relayed
from rota.wire.greeting import Chunk, Hello, Message


class Join(Message, frozen=True, tag="join"):
    """A runner introduces itself, with what it still holds after a lost connection."""

    runner: str
    host: str
    boot_id: str
    pid: int
    start_time: int  #: field 22 of /proc/PID/stat
    cores: int
    mem: int
    disk: int
    held: list[HeldLease] = []
    seats: list[int] = []  #: open seats, busy or not
    ticket: str = ""  #: not in use: it keeps the places of the fields below, as the last release sends them
    node: NodeFacts | None = None  #: for the agent of a node: its resources
    parts: list[LeaseRef] = []  #: parts that may have processes left; all others are closed
    leaving: bool = False  #: it will exit when its jobs have ended
    now: float = 0.0  #: the runner's clock, by which it reports all times; 0: not reported
    tails: bool = False  #: it supports `Tail.tail`, `Took` and `Full`
    left_s: float | None = None  #: seconds until its allocation ends; None: not known, or never
    machine: str = ""  #: of a runner with a ticket: the name of the machine that it is on
    epoch: int = 0  #: how often a process has taken this runner's place; 0: none can
    unfit: str = ""  #: why nothing can be started on its host; empty: it can


class Report(Message, frozen=True, tag="report"):
    """Events at a runner since its last report; an empty report is a heartbeat.

    The runner keeps and repeats a report until `Ack` says that it is on disk. A job that started and ended between
    two reports is only in `ended`.
    """

    seq: int  #: 0: a heartbeat, not acknowledged
    started: list[Started] = []
    ended: list[Finished] = []
    returned: list[LeaseRef] = []  #: leases returned without execution
    closed: list[int] = []  #: seats returned because there was nothing left to run
    phases: list[Phase] = []  #: leases whose prologue or epilogue has begun
    faults: list[NodeFault] = []  #: hooks of the site that failed here
    paused: list[Paused] = []  #: attempts that have stopped or continued, as ordered
    opened: list[PartOpened] = []  #: parts for which this host is ready, or failed to get ready
    shut: list[LeaseRef] = []  #: parts without any process left
    leaving: bool = False  #: it will exit when its jobs have ended: send nothing more
    unfit: str | None = None  #: why nothing can be started on its host; empty: it can again; None: as before
    progress: list[JobProgress] = []  #: the latest that attempts said; only in heartbeats


class Settle(Message, frozen=True, tag="settle"):
    """The final account of a dead runner, from its journal and the process table.

    Its leases that are not in `ended` were never executed, unless `whole` is False: then the end of the journal
    may be missing (after a reboot or damage), and these leases are lost instead.
    """

    runner: str
    ended: list[Finished] = []
    whole: bool = True
    rebooted: bool = False  #: the machine has rebooted since: certainly no process is left


class Idle(Message, frozen=True, tag="idle"):
    """A runner with a ticket has been idle for a while; it leaves when told to."""


class Live(Message, frozen=True, tag="live"):
    """Live output of followed jobs."""

    chunks: list[Chunk]
    tail: int = 0  #: number of the `Tail` it answers; 0: for all readers of these jobs


class Full(Message, frozen=True, tag="full"):
    """An attempt has printed output that will not be kept completely. Does a reader need every byte?

    Answered by `Tail`: with `hold` if so, with `on=False` if not. Until then the runner stops reading the output.
    """

    job: int
    attempt: int
    held: bool = False  #: a reader needed it before the connection was lost; no answer means no


class Piece(Message, frozen=True, tag="piece"):
    """Output of an ended attempt, for the manager's copy of this segment; sent before the end is reported.

    It is kept only while the lease is valid, and only as much as the rules allow.
    """

    segment: str
    offset: int
    data: bytes
    job: int = 0  #: the job's owner; agents of the first release do not send it
    attempt: int = 0
    token: int = 0


class LiveEnd(Message, frozen=True, tag="live-end"):
    """All output of the followed job has been sent, or it is not on this host."""

    job: int
    attempt: int
    tail: int = 0
    out: int = -1  #: bytes printed to stdout, equal to the bytes sent if none were left out; -1: unknown
    err: int = -1


FromRunner = Hello | Join | Report | Settle | Idle | Live | LiveEnd | Full | Piece | Relayed
