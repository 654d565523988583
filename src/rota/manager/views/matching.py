"""Matches jobs in memory against the clauses of selectors, as the store matches those on disk."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

from rota.core.jobs.job import Job, Spec
from rota.core.jobs.report_groups import is_in, names_of
from rota.manager.views.selectors import is_range
from rota.store.base import Clause
from rota.store.sqlite.clauses import merge_spans


class IdRanges:
    """A set of ids, as ordered ranges without overlap."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self.ranges = merge_spans(ranges)
        self._lows = [low for low, _ in self.ranges]

    def __contains__(self, id: int) -> bool:
        place = bisect_right(self._lows, id) - 1
        return place >= 0 and id <= self.ranges[place][1]


class Matching:
    """Matches jobs in memory against clauses. Ids are looked up in ranges. A specification is compared once
    for all its jobs, so hundreds of clauses about groups cost no more than one."""

    def __init__(self, clauses: list[Clause], hosts: Callable[[Job], tuple[str, ...]]) -> None:
        self._hosts = hosts
        self._by_group: dict[str, list[Clause]] = {}
        self._ids = IdRanges((clause.low, clause.high) for clause in clauses if is_range(clause))
        for clause in clauses:
            if not is_range(clause):
                self._by_group.setdefault(clause.group, []).append(clause)
        #: by identity: (specification, clauses that it leaves open, or True if one asks for nothing else)
        self._open: dict[int, tuple[Spec, list[Clause] | bool]] = {}

    def has(self, job: Job) -> bool:
        if job.id in self._ids:
            return True
        spec = job.spec  # the loop may replace it meanwhile
        known = self._open.get(id(spec))
        if known is None:
            known = self._open[id(spec)] = (spec, self._left_open(spec))
        left = known[1]
        return left if isinstance(left, bool) else self._any(left, job)

    def _any(self, clauses: list[Clause], job: Job) -> bool:
        hosts = self._hosts(job)
        return any(matches(clause, job, hosts) for clause in clauses)

    def _left_open(self, spec: Spec) -> list[Clause] | bool:
        left = []
        named = [clause for name in names_of(spec.group) for clause in self._by_group.get(name, ())]
        for clause in (*named, *(self._by_group.get("", ()) if spec.group else ())):
            if _specified(clause, spec):
                of_spec = Clause(group=clause.group, user=clause.user, queue=clause.queue, project=clause.project)
                if clause == of_spec:
                    return True
                left.append(clause)
        return left or False


def matches(clause: Clause, job: Job, hosts: tuple[str, ...]) -> bool:
    """Does a job in memory, whose newest attempt is on these hosts, match?"""
    return (
        (not clause.low or clause.low <= job.id <= clause.high)
        and (not clause.state or clause.state == job.state)
        and (not clause.group or is_in(clause.group, job.spec.group))
        and _specified(clause, job.spec)
        and (not clause.submission or clause.submission == job.submission)
        and (not clause.host or clause.host in hosts)
        and (not clause.array or _in_array(clause, job))
    )


def _specified(clause: Clause, spec: Spec) -> bool:
    """Does a specification match the clause, apart from its group?"""
    return (
        (not clause.user or clause.user == spec.user)
        and (not clause.queue or clause.queue == spec.queue)
        and (not clause.project or clause.project == spec.project)
    )


def _in_array(clause: Clause, job: Job) -> bool:
    element = job.element
    if element is None or element.array != clause.array:
        return False
    return not clause.indexes or any(low <= element.index <= high for low, high in clause.indexes)
