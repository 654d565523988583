"""Runner → manager: who it is, what it holds, and what became of that."""

from __future__ import annotations

from rota.core.attempts.leases import Finished, HeldLease, LeaseRef, NodeFault, PartOpened, Paused, Phase, Started
from rota.plan.site.node_facts import NodeFacts
from rota.wire.channels import Relayed
from rota.wire.greeting import Chunk, Hello, Message


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
    held: list[HeldLease] = []
    seats: list[int] = []  #: open seats, busy or not
    ticket: str = ""  #: what a delegated pool gave to a runner that it asked for
    node: NodeFacts | None = None  #: it is the agent of a node: what there is
    parts: list[LeaseRef] = []  #: parts of which something may be left; others are closed
    leaving: bool = False  #: it will end when its jobs have
    now: float = 0.0  #: what time it is for this runner, in which it tells all times; 0: not told
    tails: bool = False  #: it knows `Tail.tail`, `Took` and `Full`


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
    phases: list[Phase] = []  #: leases whose prologue or epilogue has begun
    faults: list[NodeFault] = []  #: hooks of the site that failed here
    paused: list[Paused] = []  #: attempts that were told to stand still, or to go on, and do
    opened: list[PartOpened] = []  #: parts for which this host is ready, or cannot be
    shut: list[LeaseRef] = []  #: parts of which nothing is left
    leaving: bool = False  #: it will end when its jobs have: nothing more should be sent


class Settle(Message, frozen=True, tag="settle"):
    """The whole truth about a dead runner, from its journal and the process table.

    Leases of that runner that are not in `ended` were never executed, unless `whole` is False: then the
    journal may have lost its end (a restart of the machine, damage), and they are lost instead.
    """

    runner: str
    ended: list[Finished] = []
    whole: bool = True
    rebooted: bool = False  #: the machine was started anew since: certainly nothing of it is left


class Idle(Message, frozen=True, tag="idle"):
    """A runner with a ticket has had nothing to do for a while; it leaves when it is told to."""


class Live(Message, frozen=True, tag="live"):
    """Pieces of output of jobs that somebody follows."""

    chunks: list[Chunk]
    tail: int = 0  #: of `Tail`, whose reader they are for; 0: for everybody who follows these jobs


class Full(Message, frozen=True, tag="full"):
    """An attempt has printed something that will not be kept as it is. Does somebody want every byte of it?

    Answered by `Tail`: with `hold` if so, with `on=False` if not. Until then the runner reads no more of it.
    """

    job: int
    attempt: int
    held: bool = False  #: somebody wanted it before the connection was lost; no answer means no


class Piece(Message, frozen=True, tag="piece"):
    """Output of an ended attempt, for the copy of this segment at the manager; sent before the end is told.

    It is kept only while the lease is valid, and no more of it than the rules say.
    """

    segment: str
    offset: int
    data: bytes
    job: int = 0  #: whose it is; agents of the first release do not say
    attempt: int = 0
    token: int = 0


class LiveEnd(Message, frozen=True, tag="live-end"):
    """The followed job's output has all been sent (or it is not here)."""

    job: int
    attempt: int
    tail: int = 0
    out: int = -1  #: bytes that it printed to stdout, as many as were sent if nothing was left out; -1: not known
    err: int = -1


FromRunner = Hello | Join | Report | Settle | Idle | Live | LiveEnd | Full | Piece | Relayed
