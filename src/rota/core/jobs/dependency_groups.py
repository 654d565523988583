"""Dependency groups: who is in them, and what that means for those who wait for a whole group.

A group is live: it may grow at any time. Waiting for one means waiting for all that are in it, so a
group keeps counts, and its dependents are looked at only when what it says to them changes.
"""

from __future__ import annotations

from collections import Counter

from rota.core.jobs.group_ancestry import GroupAncestry
from rota.core.states import State

#: What a parent says to a dependent: (it may run, it never will as things are).
Verdict = tuple[bool, bool]

_WAITING: Verdict = (False, False)


class DepGroup:
    """The members of one dependency group."""

    __slots__ = ("after", "announced", "bad", "blocked", "complete", "known", "latest", "open")

    def __init__(self) -> None:
        self.known = False  #: it has, or had, a member
        self.open: dict[int, None] = {}  #: members that have not ended
        self.blocked = 0  #: of these, how many are blocked
        self.bad: dict[int, None] = {}  #: members that failed or were cancelled
        self.complete = 0
        self.latest = 0  #: the member that completed last, if it is known
        #: what members wait for, themselves or through jobs they wait for → how many of them
        self.after: Counter[GroupAncestry] = Counter()
        self.announced = self.verdicts()  #: what dependents have been told

    def join(self, job: int, state: State) -> None:
        self.known = True
        self._count(job, state, 1)

    def leave(self, job: int, state: State) -> None:
        self._count(job, state, -1)

    def wait_for(self, reach: GroupAncestry | None, more: int = 1) -> None:
        """A member with this reach came, or (-1) was removed."""
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
        """What the group says to a dependent with this condition."""
        return self.verdicts()[condition - 1]

    def verdicts(self) -> tuple[Verdict, Verdict, Verdict]:
        """For `Condition.OK`, `ANY` and `NOT_OK`, in this order."""
        stuck = self.blocked > 0
        if not (self.open or self.complete or self.bad):
            # Nobody ever came, or all were removed: who is removed is waited for no more.
            return ((True, False),) * 3 if self.known else (_WAITING,) * 3
        if self.open:
            return (False, stuck or bool(self.bad)), (False, stuck), (False, stuck or self.complete > 0)
        return (not self.bad, bool(self.bad)), (True, False), (not self.complete, self.complete > 0)
