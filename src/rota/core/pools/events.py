"""Events about runners of delegated pools, reported by `manager.pools` and by runners that join."""

from __future__ import annotations

from rota.core.events import Event
from rota.core.pools.records import Blank, Seen
from rota.plan.need import Need


class BlanksMade(Event, frozen=True):
    """Names and tickets for runners to ask for. Intents are made of as many as are still missing; the others are
    forgotten."""

    pool: str
    need: Need
    blanks: list[Blank]


class RunnersSubmitted(Event, frozen=True):
    """The engine took these runners."""

    pool: str
    ids: dict[str, str]  #: name → engine id


class SubmissionFailed(Event, frozen=True):
    """The engine failed when it was asked for these runners."""

    pool: str
    need: Need
    names: list[str]
    error: str
    refused: bool  #: nothing was made, certainly. False: it may have been.


class PoolSurveyed(Event, frozen=True):
    """What the engine has. `known`: runners that had been submitted when the survey began."""

    pool: str
    seen: list[Seen]
    known: frozenset[str]


class SurveyFailed(Event, frozen=True):
    """The engine did not say what it has, which proves nothing."""

    pool: str
    error: str


class WithdrawalEnded(Event, frozen=True):
    """The engine was told to remove runners. Whether they are gone is shown by the next survey."""

    pool: str
    error: str = ""
