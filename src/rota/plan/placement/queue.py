"""The part of a placement that knows what waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rota.plan.need import Need
from rota.plan.policy.limits import Limits


class Queue(Protocol):
    """What waits for room, and what holds it back."""

    limits: Limits

    def offer(self, need: Need, *, priority: int, jobs: list[int]) -> None:
        """These jobs (ids ascending) wait for room."""

    def withdraw(self, need: Need, *, priority: int, job: int) -> None:
        """This job no longer waits."""

    needs: Callable[[int], Need] | None  #: what a waiting job needs now; asked before it is chosen

    def sizes_changed(self) -> None:
        """What jobs need may have changed since they were offered."""

    def limit_changed(self, name: str) -> None:
        """A limit in `limits` was declared anew, or its hours began or ended."""

    def wanting(self) -> dict[str, int]:
        """Limit → how many of the waiting jobs use it."""

    def demand(self) -> dict[Need, int]:
        """How many of the waiting jobs of each need could begin at once, were there room for all."""
