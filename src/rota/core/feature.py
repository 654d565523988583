"""The registration of a feature: everything that it adds to the engine, in one record.

The engine and its shared paths know extension points (`core.world.Points`) and no feature by name. `core.features`
lists the features in their fixed order: functions at the same point are called in that order.

A feature is in use as soon as its state exists (`World.use`): settings, a request or a stored row made it. Until
then nothing of it is called but the handlers of its own events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct, field

from rota.core.events import Event
from rota.core.restart import Restart, Restore
from rota.core.turn import Turn
from rota.core.world import (
    ClockCallback,
    Companions,
    EndCallback,
    Grants,
    HostCallback,
    HostCheck,
    Invariant,
    JobCallback,
    JobCheck,
    JoinCallback,
    Judgement,
    LeaseCheck,
    NextTime,
    Points,
    Preparation,
    QueueCallback,
    ReportCallback,
    RetryCheck,
    Selection,
    SiteCallback,
    StepCallback,
    UnqueueCallback,
    UserRetry,
    World,
    WorldCheck,
)
from rota.errors import Bug

Handler = Callable[[World, Turn, Any], None]

_POINTS: Final = tuple(vars(Points()))
#: Points whose functions the engine itself calls, with the name of the feature.
_IN_STEP: Final = ("on_timer", "before_placing", "after_timer", "after_step", "step_over", "stopping")


class Feature(Struct, frozen=True, kw_only=True, eq=False):
    """What one feature adds to the engine. Everything but the name may be left out."""

    name: str  #: unique; says where an error happened
    state: type[Any] | None = None  #: class of its state; None: it has none, and is always in use
    always: bool = False  #: in use from the start, although it has a state
    handlers: Mapping[type[Event], Handler] = field(default_factory=dict)  #: its own events
    #: After a restart, once jobs and site are loaded and before leases are: puts the feature in use if its rows
    #: say so.
    restore: Restore | None = None
    restore_leases: Restore | None = None  #: the same, once leases are loaded, too

    # One function for each extension point; `core.world.Points` says when it is called.
    on_timer: StepCallback | None = None
    before_placing: StepCallback | None = None
    after_timer: StepCallback | None = None
    after_step: StepCallback | None = None
    step_over: StepCallback | None = None
    invariant: Invariant | None = None
    next_due: NextTime | None = None
    stopping: StepCallback | None = None
    clock_moved: ClockCallback | None = None
    site_changed: SiteCallback | None = None
    needs_plan: WorldCheck | None = None
    node_removed: HostCallback | None = None
    closes_host: HostCheck | None = None
    runner_joined: JoinCallback | None = None
    runner_parted: HostCallback | None = None
    runner_reported: ReportCallback | None = None
    keeps_lease: LeaseCheck | None = None
    awaits_host: HostCheck | None = None
    ticket_grants: Grants | None = None
    queued: QueueCallback | None = None
    unqueued: UnqueueCallback | None = None
    waits_with: Companions | None = None
    acts_on: Selection | None = None
    judged: Judgement | None = None
    retried: RetryCheck | None = None
    retried_by_user: UserRetry | None = None
    job_ended: JobCallback | None = None
    preparation: Preparation | None = None
    lease_voided: JobCallback | None = None
    attempt_started: JobCallback | None = None
    attempt_over: EndCallback | None = None
    keeps_room: JobCheck | None = None
    lease_dropped: JobCallback | None = None
    job_reopened: JobCallback | None = None


class Features:
    """Features in their fixed order, and the flat tables that the engine works with."""

    def __init__(self, features: Iterable[Feature]) -> None:
        """Raises `Bug` if two of them have the same name, state or event."""
        self.all = tuple(features)
        self.handlers: dict[type[Event], Handler] = {}
        self._by_state: dict[type[Any], Feature] = {}
        names: set[str] = set()
        for each in self.all:
            if each.name in names:
                raise Bug(f"two features are called '{each.name}'")
            names.add(each.name)
            if each.state is not None and self._by_state.setdefault(each.state, each) is not each:
                raise Bug(f"{each.name} and {self._by_state[each.state].name} have the same state")
            for event, handler in each.handlers.items():
                if self.handlers.setdefault(event, handler) is not handler:
                    raise Bug(f"{each.name}: another feature handles {event.__name__}")

    def install(self, world: World) -> None:
        """Have this world call these features. Installing them again changes nothing."""
        world.on_first_use = partial(self._came_into_use, world)
        for each in self.all:
            if each.state is not None and each.always:
                world.use(each.state)
        world.points = self._points(world)

    def in_use(self, world: World) -> list[Feature]:
        """The features that this world uses, in their order."""
        return [each for each in self.all if each.state is None or world.find(each.state) is not None]

    def restore(self, world: World, restart: Restart) -> None:
        """Restore what these features stored."""
        for each in self.all:
            if each.restore is not None:
                each.restore(world, restart)

    def restore_leases(self, world: World, restart: Restart) -> None:
        """Restore what these features stored about leases."""
        for each in self.all:
            if each.restore_leases is not None:
                each.restore_leases(world, restart)

    def _came_into_use(self, world: World, kind: type[Any]) -> None:
        if kind not in self._by_state:
            raise Bug(f"{kind.__name__} is the state of no feature", hint="register it in core.features")
        world.points = self._points(world)

    def _points(self, world: World) -> Points:
        points, used = Points(), self.in_use(world)
        for point in _POINTS:
            found = [(each.name, call) for each in used if (call := getattr(each, point)) is not None]
            setattr(points, point, tuple(found if point in _IN_STEP else [call for _name, call in found]))
        return points
