"""The queue of a plan: jobs in job classes, of which the first job is in the plan.

Equal jobs are spread over as many job classes as could run at once, so that the plan has enough of them to fill
what becomes free at one moment. A job with a start time, an expiry or a deadline has a class of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rota.plan.ask import Ask
from rota.plan.dispatch.asks import Asks
from rota.plan.need import Need
from rota.plan.packing.job_classes import JobClass
from rota.plan.placement.explanation import Waiting
from rota.plan.placement.queue import GangOffer, RankKey, rank_at
from rota.plan.planner.planner import Planner
from rota.plan.planner.search import shapes_of

#: Equal jobs are spread over at most so many job classes.
_MOST_CLASSES = 10_000


class QueueKey(NamedTuple):
    """What the jobs of a job class have in common, and the number of the class among those of equal jobs."""

    rank: RankKey
    need: Need
    group: int
    number: int


class PlanQueue:
    """Job classes, none of them empty. While there is a plan, each has a job in it, or is fresh or parked."""

    def __init__(self, asks: Asks) -> None:
        self._asks = asks
        self.classes: dict[QueueKey, JobClass] = {}
        self.gangs: dict[QueueKey, GangOffer] = {}  #: job classes that are gangs: all members, the first is its id
        self.where: dict[int, QueueKey] = {}  #: job → its job class
        self.firsts: dict[QueueKey, int] = {}  #: the job of each job class that is in the plan
        self.fresh: set[QueueKey] = set()  #: job classes that should have another job in the plan
        self.parked: set[QueueKey] = set()  #: job classes that wait for a limit in a way that no plan foresees
        self._widths: dict[Need, int] = {}  #: how many equal jobs could run at once
        #: reservation group → its job classes; None until somebody asks for one
        self._groups: dict[Need, set[QueueKey]] | None = None

    # -- jobs come and go

    def add(self, need: Need, rank: RankKey, jobs: list[int], *, planner: Planner | None) -> None:
        """Add waiting jobs (ids ascending, at least one). `planner` is None while there is no plan."""
        by_group: dict[int, list[int]] = {}
        alone = bool(need.terms) and _timed(self._asks.waiting(jobs[0], need))
        for job in jobs:
            group = -job if alone or self._asks.alone(job) else need.terms or self._asks.group(job)
            by_group.setdefault(group, []).append(job)
        for group, some in by_group.items():
            width = 1 if alone or planner is None else self._at_once(need, some[0], planner)
            by_class: dict[int, list[int]] = {}
            for job in some:
                by_class.setdefault(job % width, []).append(job)
            for number, part in by_class.items():
                key = QueueKey(rank, need, group, number)
                job_class = self.classes.get(key)
                if job_class is None:
                    job_class = self.classes[key] = JobClass(rank, need)
                    if self._groups is not None:
                        self._groups.setdefault(need.group, set()).add(key)
                job_class.add(part)
                self.where.update(dict.fromkeys(part, key))
                self.fresh.add(key)

    def add_gang(self, offer: GangOffer) -> None:
        """Add the members of a waiting gang: they are a job class of their own, and one entry of the plan."""
        need = next(each.need for each in offer.members if each.jobs[0] == offer.gang)
        key = QueueKey(offer.rank, need, -offer.gang, 0)
        job_class = self.classes[key] = JobClass(key.rank, key.need)
        if self._groups is not None:
            self._groups.setdefault(key.need.group, set()).add(key)
        self.gangs[key] = offer
        jobs = sorted(offer.jobs)
        job_class.add(jobs)
        self.where.update(dict.fromkeys(jobs, key))
        self.fresh.add(key)

    def gang_of(self, job: int) -> GangOffer | None:
        """The gang that this job is a member of."""
        return self.gangs.get(self.where[job]) if self.gangs else None

    def _at_once(self, need: Need, job: int, planner: Planner) -> int:
        """How many jobs like this could run at once on the present site."""
        width = self._widths.get(need)
        if width is None:
            least = min(
                (shape.least for shape in shapes_of(planner.plan, self._asks.waiting(job, need))), default=1
            )
            width = planner.plan.site.count // max(1, least)
            width = self._widths[need] = max(1, min(width, _MOST_CLASSES))
        return width

    def site_changed(self) -> None:
        """The number of jobs that could run at once may have changed."""
        self._widths.clear()

    def leave(self, job: int) -> bool:
        """This job waits no more. True if it was in the plan."""
        key = self.where.pop(job)
        job_class = self.classes[key]
        job_class.gone.add(job)
        was_first = self.firsts.get(key) == job
        if was_first:
            del self.firsts[key]
        if len(job_class):
            self.fresh.add(key)
        else:
            del self.classes[key]
            self.gangs.pop(key, None)
            self.fresh.discard(key)
            self.parked.discard(key)
            if self._groups is not None:
                self._forget(self._groups, key)
        return was_first

    def first_of(self, group: Need, may_go: Callable[[QueueKey, int], bool]) -> QueueKey | None:
        """Of the job classes of this reservation group whose first job may go, the one of best rank."""
        if self._groups is None:
            self._groups = {}
            for key in self.classes:
                self._groups.setdefault(key.need.group, set()).add(key)
        heads = (
            (rank_at(key.rank, head), head, key)
            for key in self._groups.get(group, ())
            if (head := self.classes[key].head()) is not None and may_go(key, head)
        )
        found = min(heads, default=None, key=lambda each: each[:2])
        return None if found is None else found[2]

    @staticmethod
    def _forget(groups: dict[Need, set[QueueKey]], key: QueueKey) -> None:
        group = key.need.group
        groups[group].discard(key)
        if not groups[group]:
            del groups[group]

    def hand_over(self) -> list[tuple[Need, RankKey, list[int]]]:
        """All jobs leave: need, rank key and jobs of each job class. Gangs are left to `hand_over_gangs`."""
        found = [
            (job_class.need, job_class.key, sorted(job_class.jobs()))
            for key, job_class in self.classes.items()
            if key not in self.gangs
        ]
        for each in (self.classes, self.where, self.firsts, self.fresh, self.parked, self._widths):
            each.clear()
        self._groups = None
        return found

    def hand_over_gangs(self) -> list[GangOffer]:
        """All gangs leave, after all other jobs."""
        found = list(self.gangs.values())
        self.gangs.clear()
        return found

    # -- which jobs are in the plan

    def to_plan(self) -> list[QueueKey]:
        """Job classes that should have another job in the plan, best rank first."""
        return sorted(self.fresh, key=lambda key: rank_at(key.rank, self.classes[key].head() or 0))

    def put_in(self, key: QueueKey, job: int) -> None:
        """The first job of this job class is in the plan."""
        self.parked.discard(key)
        self.firsts[key] = job

    def take_out(self, job: int) -> QueueKey:
        """The job left the plan and waits. The caller must mark the returned job class as fresh or parked."""
        key = self.where[job]
        del self.firsts[key]
        return key

    def before(self, job: int) -> int:
        """How many equal jobs are older."""
        key = self.where[job]
        alike = (job_class for other, job_class in self.classes.items() if other[:3] == key[:3])
        return sum(1 for job_class in alike for each in job_class.jobs() if each < job)

    def unplanned_before(self, job: int) -> int:
        """How many jobs that go before this one are not in the plan yet."""
        own = self.where[job]
        rank = rank_at(own.rank, job)
        found = 0
        for key, job_class in self.classes.items():
            if key.rank != own.rank:
                if rank_at(key.rank, job_class.head() or 0) < rank:
                    found += len(job_class) - (key in self.firsts)
            elif key != own:
                first = self.firsts.get(key)
                found += sum(1 for each in job_class.jobs() if each < job and each != first)
        return found

    def behind(self) -> int:
        """How many jobs are not in the plan, because equal jobs are."""
        return max(0, sum(map(len, self.classes.values())) - len(self.firsts))

    def waiting(self, planner: Planner | None) -> list[Waiting]:
        """All job classes, with those of equal jobs put together."""
        total = planner.plan.site.count if planner is not None else 0
        found: dict[tuple[RankKey, Need, int], Waiting] = {}
        gone: dict[tuple[RankKey, Need, int], set[int]] = {}
        for key, job_class in self.classes.items():
            alike = (key.rank, key.need, key.group)
            together = found.get(alike)
            if together is None:
                width = max(1, total // max(1, self._widths.get(key.need, 1)))
                found[alike] = Waiting(key.rank.priority, key.need, job_class.heap[:], frozenset(), width)
            else:
                together.jobs.extend(job_class.heap)
            if job_class.gone:
                gone.setdefault(alike, set()).update(job_class.gone)
        return [each._replace(gone=frozenset(gone.get(alike, ()))) for alike, each in found.items()]

    # -- invariants

    def broken(self) -> list[str]:
        """A sentence for each broken invariant."""
        wrong = []
        waiting = {job: key for key, job_class in self.classes.items() for job in job_class.jobs()}
        if waiting != self.where:
            wrong.append(f"plan: {len(waiting)} jobs stand in job classes, {len(self.where)} are known where")
        wrong += [
            f"plan: job class {key} is empty" for key, job_class in self.classes.items() if not len(job_class)
        ]
        for name, keys in (("first", self.firsts), ("fresh", self.fresh), ("parked", self.parked)):
            wrong += [
                f"plan: there is no job class {key}, but it is {name}" for key in keys if key not in self.classes
            ]
        wrong += [
            f"plan: job {job} is first in job class {key}, where it does not wait"
            for key, job in self.firsts.items()
            if self.where.get(job) != key
        ]
        return wrong


def _timed(ask: Ask) -> bool:
    """Has the job a start time, an expiry or a deadline?"""
    return ask.at is not None or ask.types.expire is not None or ask.types.deadline is not None
