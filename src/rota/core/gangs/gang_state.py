"""The gangs that have members in memory. Data, and the few functions that keep it consistent."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from rota.core.events import Asker
from rota.core.gangs.roles import role
from rota.core.jobs.job import Job
from rota.core.states import TERMINAL, State
from rota.core.turn import Turn
from rota.core.world import NO_JOB, World

#: Key of `Changes.meta`: the state of gangs that job rows do not have.
GANGS: Final = "gangs"

#: A gang: its submission and its name.
GangKey = tuple[str, str]


class Arrivals(msgspec.Struct):
    """How often a member has reached a point (`core.gangs.meeting_points`)."""

    times: int = 0
    wait: str = ""  #: id of the latest arrival: a repeated message is no further one


class Caller(NamedTuple):
    """A process of a member that waits at a point."""

    by: Asker
    job: int
    point: str
    times: int  #: number of this arrival of the member


class Gang:
    """One gang with at least one member that has not ended."""

    __slots__ = ("arrived", "callers", "fell", "key", "members", "offered", "resumable", "roles", "user")

    def __init__(self, key: GangKey, user: str) -> None:
        self.key = key
        self.user = user
        self.members: list[int] = []  #: ids in input order, also of members that have ended
        self.roles: dict[int, str] = {}
        self.offered = 0  #: the id under which it was offered to the placement; 0: it is not in the queue
        self.fell: set[int] = set()  #: members that failed or were cancelled; they may have been removed since
        self.resumable: set[int] = set()  #: resuming members whose cores are free
        #: point → member → arrivals
        self.arrived: dict[str, dict[int, Arrivals]] = {}
        self.callers: dict[tuple[int, int], Caller] = {}  #: by connection and number

    @property
    def name(self) -> str:
        return self.key[1]


class Gangs:
    """State of the feature `gangs`."""

    def __init__(self) -> None:
        self.by_key: dict[GangKey, Gang] = {}
        self.dirty: dict[GangKey, None] = {}  #: gangs to be looked at before the next placing
        self.kept: dict[GangKey, KeptGang] = {}  #: stored gangs, after a restart, until they are rebuilt


class KeptGang(msgspec.Struct, frozen=True, array_like=True):
    """A gang as it is stored."""

    submission: str
    name: str
    ended: list[tuple[int, str]] = []  #: members that have ended, with their roles
    arrived: dict[str, dict[int, Arrivals]] = {}


def gang_of(world: World, job: Job) -> Gang:
    """The gang of a member. Makes the gang, or adds the member to it, if needed."""
    gangs = world.use(Gangs)
    key = (job.submission, job.spec.gang)
    gang = gangs.by_key.get(key)
    if gang is None:
        gang = gangs.by_key[key] = Gang(key, job.spec.user)
        kept = gangs.kept.pop(key, None)
        if kept is not None:
            gang.members = [id for id, _role in kept.ended]
            gang.roles = dict(kept.ended)
            gang.arrived = kept.arrived
    if job.id not in gang.roles:
        gang.members.append(job.id)
        gang.members.sort()  # ids are given in input order
        gang.roles[job.id] = ""
        _name(world, gang)
    return gang


def _name(world: World, gang: Gang) -> None:
    """Give the members their roles. A member that has ended and left memory keeps its role."""
    for place, id in enumerate(gang.members):
        if (job := world.jobs.get(id)) is not None:
            gang.roles[id] = role(job.spec.name, place, job.element)


def find_gang(world: World, id: int) -> Gang | None:
    """The gang of a job in memory; None: it is no member of one."""
    job = world.jobs.get(id)
    if job is None or not job.spec.gang or world.find(Gangs) is None:
        return None
    return world.use(Gangs).by_key.get((job.submission, job.spec.gang))


def open_members(world: World, gang: Gang) -> list[Job]:
    """The members that have not ended, in input order."""
    jobs = (world.jobs.get(id) for id in gang.members)
    return [job for job in jobs if job is not None and job.state not in TERMINAL]


def failed_members(world: World, gang: Gang) -> list[int]:
    """The members that have failed or were cancelled, in input order."""
    bad, fell = (State.FAILED, State.CANCELLED), gang.fell
    outcomes = ((id, world.outcome(id)) for id in gang.members)
    return [id for id, outcome in outcomes if outcome in bad or (outcome == NO_JOB and id in fell)]


def mark(world: World, gang: Gang) -> None:
    """Have this gang looked at before the next placing."""
    world.use(Gangs).dirty[gang.key] = None


def forget(world: World, gang: Gang) -> None:
    """All members have ended."""
    gangs = world.use(Gangs)
    gangs.by_key.pop(gang.key, None)
    gangs.dirty.pop(gang.key, None)


def store(world: World, turn: Turn) -> None:
    """Store what a restart needs: members that have ended and points that were reached."""
    kept = []
    for gang in world.use(Gangs).by_key.values():
        going = {job.id for job in open_members(world, gang)}
        ended = [(id, gang.roles[id]) for id in gang.members if id not in going]
        if going and (ended or gang.arrived):
            kept.append(KeptGang(*gang.key, ended, gang.arrived))
    turn.changes.meta[GANGS] = msgspec.json.encode(kept).decode()


def chosen(world: World, job: Job) -> None:
    """The placement has chosen this member, hence all: the gang has left the queue."""
    gang_of(world, job).offered = 0
