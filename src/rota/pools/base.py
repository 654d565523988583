"""The contracts of places where jobs run: `Pool` for planned ones, `Engine` for delegated ones.

A pool makes sure that runners exist; it never sees jobs. A planned pool owns hosts and says what they
have to give; the placement decides what runs there. A delegated pool asks another engine for runners,
each an allocation for jobs of one need. What to ask for is decided by `core.pools`; an engine only carries it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from rota.core.events import HostAppeared
from rota.core.pools.records import Group, RunnerState, Seen
from rota.errors import EnvironmentFault
from rota.plan.size import Size

__all__ = [
    "Engine", "EngineFailed", "EngineRefused", "EngineSetup", "Group", "Pool", "RunnerAsk",
    "RunnerState", "Seen",
]  # fmt: skip


class EngineFailed(EnvironmentFault):
    """The engine gave no usable answer. It may have done what it was asked, or not."""

    code = "engine"


class EngineRefused(EngineFailed):
    """The engine refused: it certainly did nothing of what it was asked."""

    code = "engine_refused"


class EngineSetup(Struct, frozen=True, kw_only=True):
    """The settings of an engine."""

    pool: str  #: name of the pool
    #: Names of runners are this, a hyphen and 16 hexadecimal digits. Everything that the engine has under such a
    #: name belongs to this pool of this deployment.
    prefix: str
    rota: str = ""  #: how runners are started there: path of the command
    idle_s: float = 2.0  #: a runner without work leaves after so long
    options: tuple[str, ...] = ()  #: passed through to the engine's own commands
    timeout_s: float = 60.0  #: of each call
    #: Programs of the engine `command`.
    start_command: tuple[str, ...] = ()
    stop_command: tuple[str, ...] = ()
    list_command: tuple[str, ...] = ()

    def owns(self, name: str) -> bool:
        """Is this the name of a runner of this pool?"""
        return name.rpartition("-")[0] == self.prefix


class RunnerAsk(Struct, frozen=True):
    """A runner to be started."""

    name: str  #: unique; what `survey` shows
    ticket: Path  #: a file with mode 0600. It is removed when the runner has joined or is withdrawn.
    size: Size  #: of the allocation: one host
    seconds: float  #: allocation time


class Engine(Protocol):
    """An engine that owns machines. Calls may block: the pool's own thread makes them, one at a time.

    An adapter keeps no state that matters: a survey finds runners again by name. It never repeats a call by itself
    and never requeues a runner that has ended. Ended runners may be shown as GONE, or left out.
    """

    def can_fit(self, size: Size, seconds: float) -> bool:
        """Could a runner of this size ever be started? Answered at once from limits that were read before, since
        other threads call it. Unknown limits mean yes."""

    def submit(self, group: Group, asked: Sequence[RunnerAsk]) -> list[str]:
        """Ask for these runners, which are equal but for name and ticket: one array, where there are arrays.

        Returns their engine ids in this order; an empty one: not known, a survey will show it. Raises
        `EngineRefused` if certainly none of them was made, else `EngineFailed`.
        """

    def withdraw(self, ids: Sequence[str]) -> None:
        """Remove these runners, waiting or running; an unknown id is no error. Raises `EngineFailed`."""

    def survey(self) -> list[Seen]:
        """Everything whose name begins with the prefix, with one call for all. Raises `EngineFailed`; what it
        returns is complete."""

    def close(self) -> None:
        """The manager stops: end the call in progress within some seconds, and fail further ones. Called by
        another thread; returns at once."""


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
