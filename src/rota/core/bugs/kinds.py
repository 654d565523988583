"""Kinds of bugs, for figures: by what was being done when one was met."""

from __future__ import annotations

from typing import Final

from rota.core.events import EntrySetAside, Event, RunnerReported, RunnerSettled, TimerFired

KINDS: Final = ("request", "report", "host", "timer", "turn", "commit", "effect", "callback")

#: Events about runners and hosts that no user asked for.
HOST_EVENTS: Final = frozenset(
    {
        *("RunnerJoined", "RunnerParted", "RunnerIdled"),
        *("HostAppeared", "HostHealed", "HostFenced", "PowerCommandEnded"),
    }
)
#: Begins of places of bugs after which the manager goes on.
_GOES_ON: Final = {"effect ": "effect", "request ": "request", "every second": "timer", "callback ": "callback"}


def kind_of(event: Event | None, place: str) -> str:
    """The kind of a bug that kept the engine from deciding."""
    if isinstance(event, EntrySetAside | RunnerReported | RunnerSettled):
        return "report"
    if isinstance(event, TimerFired):
        return "timer"
    if event is None:
        return "commit" if place == "commit" else "turn"
    return "host" if type(event).__name__ in HOST_EVENTS else "request"


def kind_at(place: str) -> str:
    """The kind of a bug after which the manager went on."""
    return next((kind for begin, kind in _GOES_ON.items() if place.startswith(begin)), "effect")
