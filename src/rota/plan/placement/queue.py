"""The part of a placement that knows what waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple, Protocol

from rota.plan.ask import Request
from rota.plan.need import Need
from rota.plan.policy.limits import Limits


class RankKey(NamedTuple):
    """Which job goes first: the lowest key, and of equal keys the oldest job."""

    behind: int  #: the negative priority
    stage: int = 0  #: of a pipeline: how many stages are after it
    depth: int = 0  #: of a pipeline: the negative length of what waits for it

    @property
    def priority(self) -> int:
        return -self.behind


@lru_cache(maxsize=1024)
def rank_of(priority: int) -> RankKey:
    """The rank key of jobs that are in no pipeline. Equal keys are one object, which is quick to compare."""
    return RankKey(-priority)


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


class Entrant(Protocol):
    """What a placement may know of one job that was offered: records, which do not change while it waits."""

    @property
    def spec(self) -> Request: ...
    @property
    def spec_id(self) -> int:
        """Jobs of one specification ask for the same."""

    @property
    def submitted_at(self) -> float: ...


class Queue(Protocol):
    """What waits for room, and what holds it back."""

    limits: Limits

    entrants: Mapping[int, Entrant]  #: all jobs that were offered and still wait, or have a lease

    def offer(self, offer: Offer) -> None:
        """These jobs wait for room."""

    def withdraw(self, need: Need, rank: RankKey, job: int) -> None:
        """This job no longer waits. Need and rank are those with which it was offered."""

    needs: Callable[[int], Need] | None  #: what a waiting job needs now; asked before it is chosen

    def sizes_changed(self) -> None:
        """What jobs need may have changed since they were offered."""

    def limit_changed(self, name: str) -> None:
        """A limit in `limits` was declared anew, or its hours began or ended."""

    def wanting(self) -> dict[str, int]:
        """Limit → how many of the waiting jobs use it."""

    def demand(self) -> dict[Need, int]:
        """How many of the waiting jobs of each need could begin at once, were there room for all."""
