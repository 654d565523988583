"""What makes the elements of a session, and their work at its stages, the same as in an earlier session. Pure.

An element has a key; a cell where the work was ok has a mark. A stage whose mark is right need not run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rota.core.pipelines.progress import Progress
from rota.core.pipelines.route import Route


class Identities(Protocol):
    """What makes an element, and its work at a stage, the same as before."""

    def key(self, element: int, digest: str, parents: list[str]) -> str:
        """`{key}`, from the file that a stage redefines and the keys of its dependencies."""

    def mark(self, element: int, stage: int, key: str) -> int:
        """8 bytes of the identity of the work at a stage; never 0."""


class Marks:
    """The keys of all elements, and the marks of all cells, which are in `Progress`."""

    def __init__(
        self,
        route: Route,
        progress: Progress,
        identities: Identities,
        *,
        depends: Sequence[Sequence[int]],
        dependents: Sequence[Sequence[int]],
    ) -> None:
        self._route = route
        self._progress = progress
        self._identities = identities
        self._depends = depends
        self._dependents = dependents
        #: of the file that is part of what each element is; empty if there is none
        self.digests: list[str | None] = [None] * len(depends) if route.redefining is not None else []
        self.keys: list[str | None] = [None] * len(depends)
        self._remembers = any(progress.marks)  #: something was done by an earlier session

    def remember(self) -> None:
        """Marks came from an earlier session."""
        self._remembers = any(self._progress.marks)

    # -- keys

    def key(self, element: int) -> str | None:
        """`{key}` of an element; None: it is not known yet."""
        if self.keys[element] is None and not self.digests:
            self._find_all(element)
        return self.keys[element]

    def needs_key(self, stage: int) -> bool:
        """Does the work at this stage see the key, because the file that makes it may have changed before?"""
        return self._route.key_from is not None and stage >= self._route.key_from

    def compute(self, element: int, digest: str) -> None:
        """Compute the key of an element; those of its dependencies are known."""
        parents = [key for parent in self._depends[element] if (key := self.keys[parent]) is not None]
        self.keys[element] = self._identities.key(element, digest, parents)

    def recall(self) -> None:
        """Compute the keys that were known before a restart."""
        for element, digest in enumerate(self.digests):  # dependencies first
            if digest is None or self.keys[element] is not None:
                continue
            if all(self.keys[parent] is not None for parent in self._depends[element]):
                self.compute(element, digest)

    def forget(self, element: int) -> None:
        """The file of an element is about to change."""
        self.digests[element] = self.keys[element] = None

    def _find_all(self, element: int) -> None:
        """Compute the keys of an element and of all that it depends on, where no stage redefines any."""
        pending = [element]
        while pending:
            each = pending[-1]
            unknown = [parent for parent in self._depends[each] if self.keys[parent] is None]
            if unknown:
                pending += unknown
                continue
            self.compute(each, "")
            pending.pop()

    def _key_at(self, element: int, stage: int) -> str:
        """The key as the work at this stage sees it; empty before it is known."""
        return (self.key(element) or "") if not self.digests or self.needs_key(stage) else ""

    # -- marks

    def done_before(self, element: int, stage: int) -> bool:
        """Was this very work done by an earlier session?"""
        mark = self._progress.marks[self._progress.cell(element, stage)] if self._remembers else 0
        if not mark or self._looks_outside(stage):
            return False
        return mark == self._identities.mark(element, stage, self._key_at(element, stage))

    def _looks_outside(self, stage: int) -> bool:
        """Does the condition of this stage say what has changed outside? Then it is asked in each session."""
        return stage == self._route.redefining and self._route.conditional[stage]

    def set(self, element: int, stage: int) -> None:
        """The work of an element at a stage is done."""
        mark = self._identities.mark(element, stage, self._key_at(element, stage))
        self._progress.set_mark(self._progress.cell(element, stage), mark)

    def begin_anew(self, element: int, stage: int) -> None:
        """The stage runs, perhaps again: so do the later ones, and the stages of others that need it."""
        if not self._remembers:
            return
        # After the stage that redefines the element, the key says whether anything has changed.
        for later in range(stage, stage + 1 if stage == self._route.redefining else len(self._route.stages)):
            self._progress.set_mark(self._progress.cell(element, later), 0)
        if self._route.needs[stage]:
            for each in self._dependents[element]:
                self._progress.set_mark(self._progress.cell(each, stage), 0)
