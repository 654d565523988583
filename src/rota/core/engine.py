"""The engine: turns events, at a given time, into a batch of changes and effects.

It has no clock, socket, file, randomness or thread. An event that cannot be accepted leaves the world unchanged
and is answered with a refusal; it never stops the loop. Any other error is a bug: it may have left the world half
changed, so nothing of the open batch may be used any more (`core.bugs`).

What an event means, and what happens as time passes, is registered by features (`core.features`).
"""

from __future__ import annotations

from rota.core import events
from rota.core.attempts.grants import grant_leases
from rota.core.bugs.quarantine import screened
from rota.core.bugs.undecided import Undecided
from rota.core.effects import Refuse
from rota.core.feature import Features
from rota.core.features import BUILT_IN
from rota.core.site import manager_pause, plan_news
from rota.core.turn import Turn
from rota.core.world import StepCallbacks, World
from rota.errors import Bug, RotaError


class Engine:
    """Decides what each event means. Owns no state but the world."""

    def __init__(self, world: World, *, features: Features = BUILT_IN) -> None:
        self.world = world
        world.on_site = world.placement.site_changed
        features.install(world)
        self._handlers = features.handlers
        self._place = ""  #: what is being decided, apart from a single event

    def step(self, happened: list[events.Event], turn: Turn) -> list[RotaError]:
        """Handle these events in order, then start what can start.

        Returns the errors of refused events; each was also sent to its asker. Raises `Undecided` for a bug: then
        neither the world nor the open batch may be used any more.
        """
        refused: list[RotaError] = []
        ticked = False
        event: events.Event | None = None
        self._place = ""
        try:
            if self.world.bugs.screens:
                happened = screened(self.world, turn, happened)
            for event in happened:
                try:
                    if isinstance(event, events.TimerFired):
                        ticked = True
                        self._call(self.world.points.on_timer, turn)
                        self._place = ""
                    else:
                        self._handlers[type(event)](self.world, turn, event)
                except RotaError as error:
                    if isinstance(error, Bug) or isinstance(event, events.TimerFired):
                        raise  # nobody asked for a timer: it cannot be refused
                    refused.append(error)
                    by = getattr(event, "by", None)
                    if by is not None:
                        turn.effects.append(Refuse(by, error))
            event = None
            self._after_events(turn, ticked=ticked)
        except Exception as error:
            raise Undecided(self._place or type(event).__name__, event) from error
        return refused

    def _after_events(self, turn: Turn, *, ticked: bool) -> None:
        """Start what can start, and everything else that no single event asks for."""
        starts_nothing = manager_pause.starts_nothing(self.world)
        self._call(self.world.points.before_placing, turn)
        if self._reaches("granting") and not starts_nothing:
            grant_leases(self.world, turn)
        if ticked:
            self._call(self.world.points.after_timer, turn)
        self._call(self.world.points.after_step, turn)
        if not self.world.bugs.safe_mode and self._reaches("plan news"):
            while self.world.placement.has_news:
                freed = plan_news.act_on_plan(self.world, turn)
                self._call(self.world.points.before_placing, turn)
                if not freed:
                    break
                grant_leases(self.world, turn)
        self._call(self.world.points.step_over, turn)

    def _call(self, callbacks: StepCallbacks, turn: Turn) -> None:
        world, left_out = self.world, self.world.bugs.places
        for feature, callback in callbacks:
            self._place = feature
            if feature not in left_out:
                callback(world, turn)

    def _reaches(self, place: str) -> bool:
        """This part of the turn begins; False: it is left out because of a bug."""
        self._place = place
        return place not in self.world.bugs.places

    def next_due(self) -> float | None:
        """Return the wall time of the next planned start or end of a delay."""
        times = [next_due(self.world) for next_due in self.world.points.next_due]
        if not manager_pause.starts_nothing(self.world):
            times.append(self.world.placement.next_event())
        return min((at for at in times if at is not None), default=None)

    def stopping(self, turn: Turn) -> None:
        """The last turn of the manager: nothing is decided any more."""
        self._call(self.world.points.stopping, turn)
