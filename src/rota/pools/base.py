"""The `Pool` contract: what the manager asks of a place where jobs run.

A pool makes sure that runners exist; it never sees jobs. Planned pools say what their hosts have to
give; the placement decides what runs there.
"""

from __future__ import annotations

from typing import Protocol

from rota.core.events import HostAppeared


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
