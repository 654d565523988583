"""Provisioning in the engine, as data: its state, events and effects."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from rota.core.effects import Effect
from rota.core.events import Asker, Event
from rota.core.jobs.job import Job
from rota.core.jobs.outcome import Outcome
from rota.core.machines.provisioning import ProvisionLimits

#: The name of the preparation.
PROVISION: Final = "provision"
#: Key of `Changes.meta` for `StoredProvisioning`.
STORED: Final = "provisioning"
#: Lengths that are remembered of each kind, and kinds.
_KEPT: Final = 9
_MOST_KINDS: Final = 1000
#: Commands of deploy hosts whose end is waited for.
_MOST_ERRANDS: Final = 10_000


class StoredProvisioning(Struct, frozen=True, array_like=True, gc=False):
    """What a restart must not lose, besides what is stored with attempts."""

    avoid: dict[int, tuple[str, ...]] = {}  #: job → hosts where its machines could not be made ready
    took: dict[str, list[float]] = {}  #: what machines were made into → seconds, the newest last
    spent: dict[int, float] = {}  #: job → how long machines were provisioned for its earlier attempts


class Provisions:
    """State of the feature `provisioning`."""

    __slots__ = ("asked", "avoiding", "errands", "jobs", "lengths", "limits", "spent", "took")

    def __init__(self) -> None:
        self.limits = ProvisionLimits()
        self.jobs: set[int] = set()  #: jobs whose machines are being provisioned
        self.avoiding: set[int] = set()  #: jobs that avoid machines
        self.asked: set[int] = set()  #: tokens of commands for the deploy host whose tickets are being made
        #: token of a command that a deploy host has → job, attempt, machine, until its end is reported
        self.errands: dict[int, tuple[int, int, str]] = {}
        self.spent: dict[int, float] = {}  #: job → seconds for its earlier attempts
        self.took: dict[str, list[float]] = {}
        self.lengths: dict[str, float] = {}  #: what machines are made into → how long that usually takes

    def sent(self, token: int, about: tuple[int, int, str]) -> None:
        """A deploy host has this command, or will have it."""
        self.errands[token] = about
        while len(self.errands) > _MOST_ERRANDS:
            del self.errands[next(iter(self.errands))]

    def learn(self, what: str, seconds: float) -> None:
        """Record how long machines took to become this."""
        seen = self.took.pop(what, [])
        self.took[what] = [*seen, round(seconds, 3)][-_KEPT:]
        while len(self.took) > _MOST_KINDS:
            oldest = next(iter(self.took))
            del self.took[oldest]
            self.lengths.pop(oldest, None)
        self.lengths[what] = sorted(self.took[what])[len(self.took[what]) // 2]


# ------------------------------------------------------------------ events


class ProvisionBegan(Event, frozen=True):
    """The command on the manager's host that makes a machine ready is about to be run."""

    job: int
    attempt: int
    host: str
    token: int
    ticket: str = ""  #: hash of the secret in the ticket that it is given


class TicketMade(Event, frozen=True):
    """There is a ticket for a command that the deploy host will run."""

    job: int
    attempt: int
    host: str
    token: int
    ticket: str  #: hash of its secret


class ProvisionEnded(Event, frozen=True):
    """That command is over."""

    job: int
    attempt: int
    host: str
    token: int
    wrong: str = ""  #: what failed; empty: nothing


class NodeReady(Event, frozen=True):
    """`rota node ready` was called for a machine that is being provisioned."""

    host: str
    ticket: str = ""  #: hash of the secret of its ticket; empty: an administrator called it
    by: Asker | None = None


# ------------------------------------------------------------------ effects


class RunProvision(Effect, frozen=True):
    """Run the command of a node on the manager's host when it is its turn. Repeated after a restart of the
    manager, which ends a command of an earlier manager first."""

    job: int
    attempt: int
    host: str
    token: int
    command: str
    what: str  #: what the job asked for
    about: dict[str, str]  #: environment variables that describe the job
    via: str = ""  #: the deploy host, which runs it instead: it only needs a ticket now


class BeginProvision(Effect, frozen=True):
    """Run the command now: its beginning and the hash of its ticket are on disk."""

    job: int
    attempt: int
    host: str
    token: int


class SendErrand(Effect, frozen=True):
    """Have the agent of the deploy host run the command of a node: the hash of its ticket is on disk."""

    runner: str
    job: Job
    order: RunProvision
    limit_s: float


class KeepProvisionOutput(Effect, frozen=True):
    """Keep the output of the command on a machine."""

    job: int
    attempt: int
    host: str
    outcome: Outcome


class SendProvision(Effect, frozen=True):
    """Have a runner run the job's provision command on its machine."""

    runner: str
    jobs: list[Job]  #: one
    attempt: int
    token: int
    limit_s: float


class StopProvision(Effect, frozen=True):
    """End the commands on the manager's host for this attempt, and withdraw its tickets."""

    job: int
    attempt: int
