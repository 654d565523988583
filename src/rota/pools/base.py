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
        """Called every second, and when a runner has disconnected: start missing runners, reap ended ones."""

    def stop(self) -> None:
        """The manager stops: start nothing more. Runners decide for themselves when to leave."""


@runtime_checkable
class DelegatedPool(Pool, Protocol):
    """A place whose machines belong to another engine. It has no hosts before its runners join."""

    def want(self, runners: dict[Need, int]) -> None:
        """State how many runners of each need should exist, including those that run jobs. Returns at once.

        Missing runners are requested, all of one need at once where the engine has arrays. Surplus runners that
        have not started are withdrawn; started ones finish and leave by themselves. Called when the numbers change
        and once a minute, so a repeated call must change nothing.
        """

    def made_for(self, ticket: str) -> Need | None:
        """The need for which the runner with this ticket was requested; None: it was not."""

    def gone(self, ticket: str) -> None:
        """The runner with this ticket has left."""
