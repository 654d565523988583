"""The `Pool` contracts: what the manager asks of a place where jobs run.

A pool makes sure that runners exist; it never sees jobs. A planned pool owns hosts and says what they
have to give; the placement decides what runs there. A delegated pool asks another engine for runners,
each an allocation for jobs of one need.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from rota.core.events import HostAppeared
from rota.plan.need import Need


class Pool(Protocol):
    """A place where jobs run."""

    name: str

    def hosts(self) -> list[HostAppeared]:
        """The hosts this pool owns, with what they have. Asked at start and when they change."""

    def start(self) -> None:
        """Make sure that runners come; returns at once."""

    def check(self) -> None:
        """Called every second, and when a runner has parted: start what should exist and does not, forget
        what has ended."""

    def stop(self) -> None:
        """The manager stops: start nothing more. Runners decide for themselves when to leave."""


@runtime_checkable
class DelegatedPool(Pool, Protocol):
    """A place whose machines belong to another engine. It has no hosts until runners come."""

    def want(self, runners: dict[Need, int]) -> None:
        """So many runners of each need should exist, those that run jobs included; returns at once.

        Whatever is missing is asked for, all of one need at once where the engine has arrays; surplus that
        has not begun is withdrawn; runners that run finish and leave by themselves. Stated whenever the
        numbers change and once a minute, so to be told the same twice must change nothing.
        """

    def made_for(self, ticket: str) -> Need | None:
        """A runner came with this ticket: for jobs of which need did we ask for it? None: we did not."""

    def gone(self, ticket: str) -> None:
        """The runner with this ticket has left."""
