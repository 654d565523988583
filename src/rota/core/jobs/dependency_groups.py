"""Dependency groups: their members, and the verdicts that follow for jobs that wait for a whole group.

A group is live: it may grow at any time. It keeps counts of its members, and its dependents are re-evaluated only
when one of its verdicts changes.
"""

from __future__ import annotations

from collections import Counter

from rota.core.jobs.dependency_rules import UNDECIDED, Verdict
from rota.core.jobs.group_ancestry import GroupAncestry
from rota.core.states import State


class DepGroup:
    """The members of one dependency group."""

    __slots__ = ("after", "announced", "bad", "blocked", "complete", "known", "latest", "open")

    def __init__(self) -> None:
        self.known = False  #: it has, or once had, a member
        self.open: dict[int, None] = {}  #: members that have not ended
        self.blocked = 0  #: how many of these are blocked
        self.bad: dict[int, None] = {}  #: members that failed or were cancelled
        self.complete = 0
        self.latest = 0  #: the member that completed last, if known
        #: ancestry of its members → number of members with it
        self.after: Counter[GroupAncestry] = Counter()
        self.announced = self.verdicts()  #: the verdicts that dependents know of

    def join(self, job: int, state: State) -> None:
        self.known = True
        self._count(job, state, 1)

    def leave(self, job: int, state: State) -> None:
        self._count(job, state, -1)

    def wait_for(self, reach: GroupAncestry | None, more: int = 1) -> None:
        """Count a member with this ancestry; with -1, discount it."""
        if reach is not None:
            self.after[reach] += more
            if not self.after[reach]:
                del self.after[reach]

    def move(self, job: int, old: State, new: State) -> None:
        self._count(job, old, -1)
        self._count(job, new, 1)

    def _count(self, job: int, state: State, more: int) -> None:
        if state is State.COMPLETE:
            self.complete += more
            if more > 0:
                self.latest = job
            elif self.latest == job:
                self.latest = 0
            return
        members = self.bad if state in (State.FAILED, State.CANCELLED) else self.open
        if more > 0:
            members[job] = None
        else:
            members.pop(job, None)
        if state is State.BLOCKED:
            self.blocked += more

    def verdict(self, condition: int) -> Verdict:
        """The verdict for a dependent with this condition."""
        return self.verdicts()[condition - 1]

    def verdicts(self) -> tuple[Verdict, Verdict, Verdict]:
        """The verdicts for `Condition.OK`, `ANY` and `NOT_OK`, in this order."""
        stuck = self.blocked > 0
        if not (self.open or self.complete or self.bad):
            # Without members: a group that never had one makes its dependents wait; removed members satisfy them.
            return ((True, False),) * 3 if self.known else (UNDECIDED,) * 3
        if self.open:
            return (False, stuck or bool(self.bad)), (False, stuck), (False, stuck or self.complete > 0)
        return (not self.bad, bool(self.bad)), (True, False), (not self.complete, self.complete > 0)
