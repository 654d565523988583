"""The records of delegated pools: an intent for each runner that was asked for, and what an engine says about it.

An *intent* is on disk before the engine is asked. Its name is unique and carries the deployment's id, so what
exists can be found after any crash.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from rota.plan.need import Need


class RunnerState(IntEnum):
    """How far a requested runner is. The numbers are stored."""

    ASKED = 1  #: on disk; the engine is being asked, or the manager died meanwhile
    SUBMITTED = 2  #: the engine took it; no survey has shown it yet
    PENDING = 3  #: the engine has it, and it waits there
    RUNNING = 4  #: the engine started it, or it has joined
    UNKNOWN = 5  #: it may exist: the submission timed out, or a survey did not show it
    GONE = 6  #: nothing of it is left; its row is removed

    @property
    def label(self) -> str:
        return self.name.lower()


#: States in which no runner has been started, as far as is known: it can be withdrawn and no job is lost.
NOT_STARTED = frozenset({RunnerState.ASKED, RunnerState.SUBMITTED, RunnerState.PENDING, RunnerState.UNKNOWN})


class Wanted(Struct, frozen=True, gc=False):
    """How many runners of one need a pool should have, busy ones included."""

    number: int
    seconds: float  #: allocation time to ask for


class Group(Struct, frozen=True):
    """Runners of one kind: the errors and the back-off of an engine are kept for each group."""

    pool: str
    need: Need


class Seen(Struct, frozen=True, gc=False):
    """A runner that a survey of the engine shows."""

    name: str
    engine_id: str
    state: RunnerState  #: PENDING, RUNNING or GONE
    host: str = ""  #: where it runs, if the engine says so


class Blank(Struct, frozen=True, gc=False):
    """A name and a ticket's hash for an intent to be made. The driver makes them: they are random."""

    name: str
    ticket: str  #: hash of its secret


class Intent:
    """A runner that was asked for, or is about to be."""

    __slots__ = (
        "asked_at", "engine_id", "fenced", "host", "judged", "key", "left", "missed", "missed_since", "name",
        "need", "parted_at", "pool", "runner", "running_since", "seconds", "seen", "state",
        "ticket", "withdrawn", "worked",
    )  # fmt: skip

    def __init__(self, name: str, *, pool: str, need: Need, seconds: float, ticket: str, asked_at: float) -> None:
        self.name = name
        self.pool = pool
        self.need = need
        self.seconds = seconds
        self.ticket = ticket  #: hash of its secret
        self.asked_at = asked_at  #: wall time
        self.key = ""  #: hash of the key that its ticket is bound to; empty: it has not joined yet
        self.engine_id = ""  #: empty: not known yet
        self.state = RunnerState.ASKED
        self.withdrawn = False  #: its ticket is void, and the engine is told to remove it
        self.runner = ""  #: id of the runner that joined with its ticket
        # What follows is not stored.
        self.host = ""  #: where the engine says it runs
        self.seen = False  #: a survey has shown it
        self.missed = 0  #: successive surveys that did not show it
        self.missed_since = 0.0  #: monotonic time of the first of them
        self.running_since = 0.0  #: monotonic time at which it was first seen running
        self.fenced = False  #: it is silent, and the engine, which does not show it, is told to remove it
        self.judged = False  #: its fruitless end was noted
        self.worked = False  #: its runner has had a job
        self.left = False  #: its runner has said goodbye; its ticket is used up
        self.parted_at = 0.0  #: monotonic time at which the connection to its runner ended; 0: it is connected
