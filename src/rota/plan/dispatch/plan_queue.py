"""Jobs that wait for a plan, in lanes of which the first is in it.

Jobs that ask for the same stand in as many lanes as of them could run at once: whatever becomes free at one
moment, those whose turn it is are there. Those for whom a moment of their own matters stand alone.
"""

from __future__ import annotations

from typing import NamedTuple

from rota.plan.ask import Ask
from rota.plan.need import Need
from rota.plan.packing.job_classes import JobClass
from rota.plan.placement import Terms, Waiting
from rota.plan.planner.planner import Planner
from rota.plan.planner.search import shapes_of

#: Jobs that ask for the same stand in no more lanes than this.
_MOST_LANES = 10_000


class Key(NamedTuple):
    """What the jobs of a lane have in common, and which of their lanes it is."""

    priority: int
    need: Need
    group: int
    number: int


class PlanQueue:
    """Lanes that never are empty. While there is a plan each is looked after: in it, fresh or parked."""

    def __init__(self) -> None:
        self.lanes: dict[Key, JobClass] = {}
        self.where: dict[int, Key] = {}  #: job → its lane
        self.firsts: dict[Key, int] = {}  #: the job of each lane that is in the plan
        self.fresh: set[Key] = set()  #: lanes that should have another job in the plan
        self.parked: set[Key] = set()  #: lanes kept by a limit in a way that no plan foresees
        self._widths: dict[Need, int] = {}  #: how many of such jobs could run at once

    # -- jobs come and go

    def add(self, need: Need, priority: int, jobs: list[int], *, terms: Terms, planner: Planner | None) -> None:
        """These jobs (ids ascending, one at least) wait for a plan, which there may not be yet."""
        by_group: dict[int, list[int]] = {}
        alone = bool(need.terms) and _timed(terms.ask(jobs[0]))
        for job in jobs:
            group = -job if alone else need.terms or terms.group(job)
            by_group.setdefault(group, []).append(job)
        for group, some in by_group.items():
            width = 1 if alone or planner is None else self._at_once(need, some[0], terms, planner)
            by_lane: dict[int, list[int]] = {}
            for job in some:
                by_lane.setdefault(job % width, []).append(job)
            for number, part in by_lane.items():
                key = Key(priority, need, group, number)
                lane = self.lanes.get(key)
                if lane is None:
                    lane = self.lanes[key] = JobClass(priority, need)
                lane.add(part)
                self.where.update(dict.fromkeys(part, key))
                self.fresh.add(key)

    def _at_once(self, need: Need, job: int, terms: Terms, planner: Planner) -> int:
        """How many jobs like this could run at once on the present site."""
        width = self._widths.get(need)
        if width is None:
            least = min((shape.least for shape in shapes_of(planner.plan, terms.ask(job))), default=1)
            width = planner.plan.site.count // max(1, least)
            width = self._widths[need] = max(1, min(width, _MOST_LANES))
        return width

    def site_changed(self) -> None:
        """More or fewer of those that come could run at once."""
        self._widths.clear()

    def leave(self, job: int) -> bool:
        """This job waits no more. True if it was in the plan."""
        key = self.where.pop(job)
        lane = self.lanes[key]
        lane.gone.add(job)
        was_first = self.firsts.get(key) == job
        if was_first:
            del self.firsts[key]
        if len(lane):
            self.fresh.add(key)
        else:
            del self.lanes[key]
            self.fresh.discard(key)
            self.parked.discard(key)
        return was_first

    def hand_over(self) -> list[tuple[int, Need, list[int]]]:
        """All jobs leave: priority, need and jobs of each lane."""
        found = [(lane.priority, lane.need, sorted(lane.jobs())) for lane in self.lanes.values()]
        for each in (self.lanes, self.where, self.firsts, self.fresh, self.parked, self._widths):
            each.clear()
        return found

    # -- who is in the plan

    def to_plan(self) -> list[Key]:
        """Lanes that should have another job in the plan, best rank first."""
        return sorted(self.fresh, key=lambda key: (-key.priority, self.lanes[key].head() or 0))

    def put_in(self, key: Key, job: int) -> None:
        """The first job of this lane is in the plan."""
        self.parked.discard(key)
        self.firsts[key] = job

    def take_out(self, job: int) -> Key:
        """The job is not in the plan any more, and waits. Somebody must look after its lane."""
        key = self.where[job]
        del self.firsts[key]
        return key

    def before(self, job: int) -> int:
        """How many jobs that ask for the same are older."""
        key = self.where[job]
        alike = (lane for other, lane in self.lanes.items() if other[:3] == key[:3])
        return sum(1 for lane in alike for each in lane.jobs() if each < job)

    def unplanned_before(self, job: int) -> int:
        """How many jobs that go before this one are not in the plan yet."""
        own = self.where[job]
        found = 0
        for key, lane in self.lanes.items():
            if key.priority > own.priority:
                found += len(lane) - (key in self.firsts)
            elif key.priority == own.priority and key != own:
                first = self.firsts.get(key)
                found += sum(1 for each in lane.jobs() if each < job and each != first)
        return found

    def behind(self) -> int:
        """How many jobs are not in the plan, because others that ask for the same are."""
        return max(0, sum(map(len, self.lanes.values())) - len(self.firsts))

    def waiting(self, planner: Planner | None) -> list[Waiting]:
        """All lanes, those of jobs that ask for the same together."""
        total = planner.plan.site.count if planner is not None else 0
        found: dict[tuple[int, Need, int], Waiting] = {}
        gone: dict[tuple[int, Need, int], set[int]] = {}
        for key, lane in self.lanes.items():
            alike = (key.priority, key.need, key.group)
            together = found.get(alike)
            if together is None:
                width = max(1, total // max(1, self._widths.get(key.need, 1)))
                found[alike] = Waiting(key.priority, key.need, lane.heap[:], frozenset(), width)
            else:
                together.jobs.extend(lane.heap)
            if lane.gone:
                gone.setdefault(alike, set()).update(lane.gone)
        return [each._replace(gone=frozenset(gone.get(alike, ()))) for alike, each in found.items()]

    # -- what must be true

    def broken(self) -> list[str]:
        """A sentence for everything that does not agree with itself."""
        wrong = []
        waiting = {job: key for key, lane in self.lanes.items() for job in lane.jobs()}
        if waiting != self.where:
            wrong.append(f"plan: {len(waiting)} jobs stand in lanes, {len(self.where)} are known where")
        wrong += [f"plan: lane {key} is empty" for key, lane in self.lanes.items() if not len(lane)]
        for name, keys in (("first", self.firsts), ("fresh", self.fresh), ("parked", self.parked)):
            wrong += [f"plan: there is no lane {key}, but it is {name}" for key in keys if key not in self.lanes]
        wrong += [
            f"plan: job {job} is first in lane {key}, where it does not wait"
            for key, job in self.firsts.items()
            if self.where.get(job) != key
        ]
        return wrong


def _timed(ask: Ask) -> bool:
    """Is there a moment that matters to each job by itself, whoever is before it?"""
    return ask.at is not None or ask.types.expire is not None or ask.types.deadline is not None
