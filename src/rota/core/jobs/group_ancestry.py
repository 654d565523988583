"""Which dependency groups a job waits for, itself or through jobs that it waits for.

Kept for ended jobs too: a group that grows may open them again. Jobs that reach the same groups in the same
way share one node, and a node refers to others instead of listing what they reach, so a chain costs a node
a link at most, and nothing for links that wait for no group of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rota.core.jobs.job import Parent


class GroupAncestry:
    """Groups that are waited for directly, and what is reached through parents. Compared by identity."""

    __slots__ = ("groups", "parents")

    def __init__(self, groups: frozenset[str], parents: frozenset[GroupAncestry]) -> None:
        self.groups = groups
        self.parents = parents

    def all_groups(self) -> set[str]:
        """Everything that is reached, direct or not."""
        found: set[str] = set()
        seen = {self}
        pending = [self]
        while pending:
            node = pending.pop()
            found |= node.groups
            pending += node.parents - seen
            seen |= node.parents
        return found


class GroupAncestries:
    """The reach of every job that has one."""

    def __init__(self) -> None:
        self._of: dict[int, GroupAncestry] = {}
        self._nodes: dict[tuple[frozenset[str], frozenset[GroupAncestry]], GroupAncestry] = {}

    def __contains__(self, job: object) -> bool:
        return job in self._of

    def __iter__(self) -> Iterator[int]:
        return iter(self._of)

    def get(self, job: int) -> GroupAncestry | None:
        return self._of.get(job)

    def forget(self, job: int) -> None:
        self._of.pop(job, None)

    def find(self, job: int, parents: Callable[[int], Iterable[Parent]]) -> None:
        """Work out the reach of a job whose own parents, and theirs, are given. (Chains may be long.)

        For jobs whose reach is known, `parents` is not asked.
        """
        stack = [job]
        entered: set[int] = set()
        while stack:
            id = stack[-1]
            if id in self._of:
                stack.pop()
                continue
            theirs = list(parents(id))
            if id not in entered:
                entered.add(id)
                unknown = [each for each in theirs if isinstance(each, int) and each not in self._of]
                if unknown:
                    stack += [each for each in unknown if each not in entered]
                    continue
            stack.pop()
            node = self._node(theirs)
            if node is not None:
                self._of[id] = node

    def _node(self, parents: Iterable[Parent]) -> GroupAncestry | None:
        groups = frozenset(each for each in parents if isinstance(each, str))
        through = frozenset(
            node for each in parents if isinstance(each, int) and (node := self._of.get(each)) is not None
        )
        if not groups:
            if not through:
                return None
            if len(through) == 1:
                return next(iter(through))
        node = self._nodes.get((groups, through))
        if node is None:
            node = self._nodes[groups, through] = GroupAncestry(groups, through)
        return node
