"""The part of a placement that knows what waits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, Protocol

from rota.plan.ask import Request
from rota.plan.need import LimitUse, Need
from rota.plan.policy.limits import Limits
from rota.plan.size import Floor, Size


class RankKey(NamedTuple):
    """Which job goes first: the lowest key, and of equal keys the oldest job."""

    behind: int  #: the negative priority
    session: int = 0  #: of a pipeline: its number, one of those that jobs have; 0: it is in none
    stage: int = 0  #: of a pipeline: how many stages are after it
    depth: int = 0  #: of a pipeline: the negative length of what waits for it

    @property
    def priority(self) -> int:
        return -self.behind


@lru_cache(maxsize=1024)
def rank_of(priority: int) -> RankKey:
    """The rank key of jobs that are in no pipeline. Equal keys are one object, which is quick to compare."""
    return RankKey(-priority)


#: Of one waiting job, lowest first. All ranks can be compared.
Rank = tuple[RankKey, *tuple[int, ...]]


def rank_at(key: RankKey, job: int) -> Rank:
    """The rank of a job with this key. All jobs of a session go where its number is among the jobs."""
    if not key.session:
        return key, job
    return rank_of(-key.behind), key.session, key.stage, key.depth, job


class Offer(NamedTuple):
    """Jobs of one specification that wait for room."""

    request: Request  #: shared by all jobs of the specification
    need: Need  #: with the size of the next attempt, as far as it is known
    rank: RankKey
    jobs: list[int]  #: ids, ascending
    pool: str = ""  #: where they may run; empty: anywhere

    @property
    def user(self) -> str:
        return self.request.user


class GangOffer(NamedTuple):
    """A gang that waits for room: all members begin in one decision, or none."""

    gang: int  #: its id: the lowest id of its members
    members: tuple[Offer, ...]  #: of one job each, in input order
    same: str = ""  #: a property that has one value on all their resources
    share: bool = False  #: may members share hosts?
    names: tuple[str, ...] = ()  #: the roles of the members, for sentences; empty: their ids

    @property
    def jobs(self) -> list[int]:
        """The ids of its members, in input order."""
        return [member.jobs[0] for member in self.members]

    @property
    def rank(self) -> RankKey:
        """The best of its members."""
        return min(member.rank for member in self.members)


class Ready(NamedTuple):
    """Equal jobs that wait for room: of one rank key and need, and of one specification if that is on terms. There
    may be several of these for equal jobs."""

    rank: RankKey
    need: Need
    number: int
    first: int  #: the oldest of them
    request: Request  #: of that one


class Entrant(Protocol):
    """What a placement may know of one job that was offered: records, which do not change while it waits."""

    @property
    def spec(self) -> Request: ...
    @property
    def spec_id(self) -> int:
        """Jobs of one specification ask for the same."""

    @property
    def submitted_at(self) -> float:
        """Of a job of a session of a pipeline: when that was started."""

    @property
    def rank_key(self) -> RankKey: ...
    @property
    def learning_group(self) -> str: ...
    @property
    def floor(self) -> Floor | None:
        """The least it asks for after its own failures."""

    @property
    def input_bytes(self) -> int | None: ...
    @property
    def avoid(self) -> tuple[str, ...]:
        """Hosts that it must not get: its machines could not be provisioned there."""


class LearnedSizes(Protocol):
    """What a learning group has learned: a record that never changes."""

    def size(self, request: Request, floor: Floor | None, input_bytes: int | None) -> Size:
        """The size of the next attempt of such a job."""


class Queue(Protocol):
    """What waits for room, and what holds it back."""

    limits: Limits

    entrants: Mapping[int, Entrant]  #: all jobs that were offered and still wait, or have a lease
    provision_s: Mapping[str, float]  #: what machines are made into → how long that usually takes

    def offer(self, offer: Offer) -> None:
        """These jobs wait for room."""

    def withdraw(self, need: Need, rank: RankKey, job: int) -> None:
        """This job no longer waits. Need and rank are those with which it was offered."""

    def offer_gang(self, offer: GangOffer) -> None:
        """These jobs wait for room together. They were not offered one by one."""

    def withdraw_gang(self, gang: int) -> None:
        """The members of this gang, by its id, no longer wait."""

    def learned(self, group: str, sizes: LearnedSizes | None) -> None:
        """A learning group has learned this; None: it was forgotten. Jobs that wait get their sizes from it before
        they begin (`Decisions.resized`)."""

    def limit_changed(self, name: str) -> None:
        """A limit in `limits` was declared anew, or its hours began or ended."""

    def hold(self, job: int, uses: tuple[LimitUse, ...]) -> tuple[LimitUse, ...]:
        """Keep units for a job between two attempts, after `released`. Returns the limits that the need of its
        next offer must name: those that are not kept, because they are of a host."""

    def let_go(self, job: int) -> None:
        """Give back the units that were kept for this job."""

    def shut(self, name: str, job: int) -> None:
        """This job wants the limit alone: no other begins to share it, whatever its rank, until `reopen`."""

    def reopen(self, name: str, job: int) -> None:
        """This job does not want the limit alone any more."""

    def wanting(self) -> dict[str, int]:
        """Limit → how many of the waiting jobs use it."""

    def ready(self) -> list[Ready]:
        """All that wait for room, best rank first, whether a plan has a place for them or not. Costs no more than
        to sort their kinds, however many they are."""

    def demand(self) -> dict[Need, int]:
        """How many of the waiting jobs of each need could begin at once, were there room for all."""
