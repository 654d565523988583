"""What waits: which jobs could start if there were room, how many of each need, and how many use each limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Final

from rota.plan.need import LimitUse, Need, is_planned
from rota.plan.packing.job_classes import JobClass
from rota.plan.placement.explanation import Waiting
from rota.plan.placement.queue import Entrant, RankKey, Ready, rank_at
from rota.plan.policy.limits import Limits
from rota.plan.size import Size

#: Rank and first job.
_RANK: Final = itemgetter(0, 1)


def ready(job_classes: Iterable[JobClass], entrants: Mapping[int, Entrant]) -> list[Ready]:
    """The jobs of these classes, best rank first. Needs are not compared: that would cost more than the rest."""
    found = [(rank_at(each.key, head), head, each) for each in job_classes if (head := each.head()) is not None]
    found.sort(key=_RANK)
    return [Ready(each.key, each.need, len(each), head, entrants[head].spec) for _rank, head, each in found]


class Allowance:
    """Counts jobs as far as limits leave units, best rank first. What it takes is given back at the end."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._taken: list[tuple[tuple[LimitUse, ...], int]] = []

    def __enter__(self) -> Allowance:
        return self

    def __exit__(self, *_: object) -> None:
        for uses, number in self._taken:
            self._limits.give(uses, "", times=number)

    def most(self, uses: tuple[LimitUse, ...], number: int) -> int:
        """How many of so many jobs that use these limits could begin."""
        if not uses:
            return number
        if self._limits.stopped(uses) is not None:
            return 0
        room = self._limits.fitting(uses)
        return number if room is None else min(number, room)

    def take(self, uses: tuple[LimitUse, ...], number: int) -> None:
        """So many of them are counted."""
        if uses and number:
            self._limits.take(uses, "", times=number)
            self._taken.append((uses, number))


def demand(waiting: Iterable[Ready], limits: Limits) -> dict[Need, int]:
    """How many jobs of each need could start at once if there were room: limits serve the best rank first."""
    wanted: dict[Need, int] = {}
    with Allowance(limits) as allowance:
        for each in waiting:
            number = allowance.most(each.need.limits, each.number)
            allowance.take(each.need.limits, number)
            if number:
                wanted[each.need] = wanted.get(each.need, 0) + number
    return wanted


def wanting(job_classes: Iterable[JobClass]) -> dict[str, int]:
    """Limit → how many of the waiting jobs use it."""
    wanted: dict[str, int] = {}
    for job_class in job_classes:
        for use in job_class.need.limits:
            wanted[use.name] = wanted.get(use.name, 0) + len(job_class)
    return wanted


def firsts(job_classes: Iterable[JobClass], limits: Limits, most: int) -> tuple[list[tuple[int, Need]], int]:
    """The first job of each class that may take a core of ours, with its need, best rank first; and how many
    others."""
    waiting = [each for each in job_classes if is_planned(each.need) and each.head() is not None]
    # Stopped classes take no room from others.
    moving = [each for each in waiting if limits.stopped(each.need.limits) is None]
    found = [(each.heap[0], each.need) for each in sorted(moving, key=JobClass.rank)[:most]]
    return found, sum(map(len, waiting)) - len(found)


def copies(job_classes: Mapping[tuple[RankKey, Need], JobClass]) -> list[Waiting]:
    """A copy of all waiting jobs."""
    return [
        Waiting(rank.priority, need, job_class.heap[:], frozenset(job_class.gone), 0)
        for (rank, need), job_class in job_classes.items()
    ]


def never_fit(
    job_classes: Iterable[JobClass], refusal: Callable[[Size, str], str | None]
) -> Iterator[tuple[JobClass, str]]:
    """The classes of jobs that fit on no host, each with the reason."""
    for job_class in job_classes:
        if job_class.head() is not None and (why := refusal(job_class.need.size, job_class.need.pool)):
            yield job_class, why
