"""Matches jobs in memory against the clauses of selectors, as the store matches those on disk."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import lru_cache

from rota.core.jobs.command import one_line
from rota.core.jobs.job import Job, Spec
from rota.core.jobs.report_groups import has_prefix, is_in, names_of
from rota.manager.views.selectors import is_range
from rota.store.base import Clause, in_pool
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

    def __init__(
        self,
        clauses: list[Clause],
        hosts: Callable[[Job], tuple[str, ...]],
        exits: Callable[[Job], int | None],
    ) -> None:
        """`hosts` and `exits`: where the newest attempt of a job is or was, and its exit code."""
        self._hosts = hosts
        self._exits = exits
        self._about_hosts = any(clause.host or clause.pool for clause in clauses)
        self._about_exits = any(clause.exits for clause in clauses)
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
        hosts = self._hosts(job) if self._about_hosts else ()
        exit_code = self._exits(job) if self._about_exits else None
        return any(matches(clause, job, hosts, exit_code) for clause in clauses)

    def _left_open(self, spec: Spec) -> list[Clause] | bool:
        left = []
        named = [clause for name in names_of(spec.group) for clause in self._by_group.get(name, ())]
        for clause in (*named, *(self._by_group.get("", ()) if spec.group else ())):
            if _specified(clause, spec):
                if clause == _of_spec(clause):
                    return True
                left.append(clause)
        return left or False


def _of_spec(clause: Clause) -> Clause:
    """What a clause says about specifications."""
    return Clause(
        group=clause.group,
        group_prefix=clause.group_prefix,
        user=clause.user,
        queue=clause.queue,
        project=clause.project,
        name="" if " " in clause.name else clause.name,
        gang=clause.gang,
        name_prefix="" if " " in clause.name_prefix else clause.name_prefix,
    )


def matches(clause: Clause, job: Job, hosts: tuple[str, ...], exit_code: int | None) -> bool:
    """Does a job in memory match, whose newest attempt is on these hosts, or ended with this exit code?"""
    return (
        (not clause.low or clause.low <= job.id <= clause.high)
        and (not clause.state or clause.state == job.state)
        and (not clause.group or is_in(clause.group, job.spec.group))
        and _specified(clause, job.spec)
        and (not clause.name or clause.name == job.spec.name or clause.name == job.name)
        and (not clause.name_prefix or job.name.startswith(clause.name_prefix))
        and (not clause.submission or clause.submission == job.submission)
        and (not clause.host or clause.host in hosts)
        and (not clause.pool or clause.pool == job.spec.pool or any(in_pool(clause, host) for host in hosts))
        and (not clause.array or _in_array(clause, job))
        and (clause.exits is None or (exit_code is not None and clause.exits[0] <= exit_code <= clause.exits[1]))
        and (not clause.before or (job.submitted_at if job.ended_at is None else job.ended_at) < clause.before)
        and (not clause.cmd_text or _finder(clause.cmd_text)(one_line(job.cmd)) is not None)
    )


@lru_cache(64)
def _finder(text: str) -> Callable[[str], re.Match[str] | None]:
    """Searches for a text, `folded` on both sides: many times as fast as folding each command."""
    return re.compile(re.escape(text), re.IGNORECASE | re.ASCII).search


def _specified(clause: Clause, spec: Spec) -> bool:
    """Can jobs of a specification match the clause, apart from its group? A name may go on with an element."""
    return (
        (not clause.user or clause.user == spec.user)
        and (not clause.queue or clause.queue == spec.queue)
        and (not clause.project or clause.project == spec.project)
        and (not clause.name or clause.name == spec.name or clause.name.startswith(f"{spec.name} "))
        and (not clause.gang or clause.gang == spec.gang)
        and (
            not clause.name_prefix
            or spec.name.startswith(clause.name_prefix)
            or clause.name_prefix.startswith(f"{spec.name} ")
        )
        and (not clause.group_prefix or has_prefix(clause.group_prefix, spec.group))
    )


def _in_array(clause: Clause, job: Job) -> bool:
    element = job.element
    if element is None or element.array != clause.array:
        return False
    return not clause.indexes or any(low <= element.index <= high for low, high in clause.indexes)
