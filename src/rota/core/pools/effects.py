"""Effects that `manager.pools` carries out after the commit."""

from __future__ import annotations

from rota.core.effects import Effect
from rota.plan.need import Need


class MakeBlanks(Effect, frozen=True):
    """Make names and tickets for so many more runners (`BlanksMade`)."""

    pool: str
    need: Need
    number: int


class SubmitRunners(Effect, frozen=True):
    """Ask the engine for these runners. Their intents are on disk."""

    pool: str
    need: Need
    seconds: float
    names: list[str]


class WithdrawRunners(Effect, frozen=True):
    """Tell the engine to remove these runners."""

    pool: str
    ids: list[str]  #: of the engine
    names: list[str]  #: their tickets' files are removed


class SurveyPool(Effect, frozen=True):
    """Ask the engine soon what it has."""

    pool: str
    again: bool = False  #: the last survey did not show what is awaited: ask less and less often
