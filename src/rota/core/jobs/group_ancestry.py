"""Group ancestry: the dependency groups that a job waits for, directly or through its parents.

Kept for ended jobs too, because a growing group may re-open them. Jobs with equal ancestry share one node. A node
refers to its parents' nodes instead of listing their groups, so a link of a chain costs at most one node, and none
if it waits for no group of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rota.core.jobs.job import Parent


class GroupAncestry:
    """The groups waited for directly, and the ancestry of the parents. Compared by identity."""

    __slots__ = ("groups", "parents")

    def __init__(self, groups: frozenset[str], parents: frozenset[GroupAncestry]) -> None:
        self.groups = groups
        self.parents = parents

    def all_groups(self) -> set[str]:
        """All groups in this ancestry, direct or not."""
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
    """The ancestry of every job that has one."""

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
        """Compute the ancestry of a job, and of its parents as far as unknown. Iterative: chains may be long.

        `parents` is called only for jobs of unknown ancestry.
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
