"""What every feature of the engine must keep, built in or not, and a feature that the engine does not know."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from rota.core import events
from rota.core.bugs.undecided import Undecided
from rota.core.feature import Feature, Features
from rota.core.features import BUILT_IN
from rota.core.turn import Batch, Turn
from rota.core.world import Points, World
from rota.errors import BadInput, Bug
from rota.plan.dispatch.planning import Planning
from rota.plan.size import Size
from tests.core.machine import Machine
from tests.features import bells

FEATURES = Features((*BUILT_IN.all, bells.ENGINE))
OPTIONAL = [each for each in FEATURES.all if each.state is not None and not each.always]
POINTS = tuple(vars(Points()))


def world_with(features: Features) -> World:
    world = World(Planning())
    features.install(world)
    return world


def turn_at(wall: float) -> Turn:
    return Turn(wall=wall, mono=wall, random=lambda: 0.5, batch=Batch())


def at_point(world: World, point: str) -> list[Any]:
    """What is called at a point."""
    return list(getattr(world.points, point))


def calls_of(feature: Feature) -> dict[str, Any]:
    """Extension point → function of a feature."""
    return {point: call for point in POINTS if (call := getattr(feature, point)) is not None}


def is_called(world: World, feature: Feature) -> list[bool]:
    """For each of its functions: is it called?"""
    return [
        call in at_point(world, point) or (feature.name, call) in at_point(world, point)
        for point, call in calls_of(feature).items()
    ]


def test_a_feature_has_a_field_for_every_extension_point() -> None:
    assert set(POINTS) <= set(Feature.__struct_fields__)


def test_every_event_of_the_core_has_one_handler() -> None:
    kinds = {kind for kind in events.Event.__subclasses__() if kind.__module__.startswith("rota.core.")}
    assert BUILT_IN.handlers.keys() == kinds - {events.TimerFired}


@pytest.mark.parametrize("feature", OPTIONAL, ids=lambda each: each.name)
def test_an_optional_feature_is_called_from_its_first_use_on_and_not_before(feature: Feature) -> None:
    world = world_with(FEATURES)
    assert feature not in FEATURES.in_use(world)
    assert not any(is_called(world, feature))
    state = world.use(feature.state)  # type: ignore[arg-type]
    assert world.use(feature.state) is state  # type: ignore[arg-type]
    assert feature in FEATURES.in_use(world)
    assert all(is_called(world, feature))


@pytest.mark.parametrize("feature", OPTIONAL, ids=lambda each: each.name)
def test_a_feature_without_anything_to_do_changes_nothing(feature: Feature) -> None:
    m = Machine(features=FEATURES)
    m.world.use(feature.state)  # type: ignore[arg-type]
    turn = turn_at(m.wall)
    for call in (feature.on_timer, feature.after_timer, feature.after_step, feature.stopping):
        if call is not None:
            call(m.world, turn)
    if feature.clock_moved is not None:
        feature.clock_moved(m.world, turn, 3600.0)
    if feature.site_changed is not None:
        feature.site_changed(m.world, turn, [("host", "h1", None)])
    if feature.runner_parted is not None:
        feature.runner_parted(m.world, turn, "h1")
    assert feature.invariant is None or feature.invariant(m.world) == []
    assert feature.next_due is None or feature.next_due(m.world) is None
    assert feature.needs_plan is None or not feature.needs_plan(m.world)
    assert feature.closes_host is None or not feature.closes_host(m.world, "h1")
    assert not turn.changes
    assert not turn.effects


@pytest.mark.parametrize("feature", FEATURES.all, ids=lambda each: each.name)
def test_with_every_feature_in_use_jobs_run_and_survive_a_crash(feature: Feature) -> None:
    m = Machine(features=FEATURES)
    if feature.state is not None:
        m.world.use(feature.state)
    m.join(m.start_runner("h1"))
    m.pump()
    first, second = m.add("a", "b", size=Size(cpus=100)).added
    m.end(first)
    m.crash()
    m.heal()
    m.end(second)
    assert m.world.outcome(first) == m.world.outcome(second)
    m.check()


def test_functions_at_a_point_are_called_in_the_order_of_the_features() -> None:
    world = world_with(FEATURES)
    for each in reversed(OPTIONAL):
        world.use(each.state)  # type: ignore[arg-type]
    order = [each.name for each in FEATURES.all]
    for point in ("on_timer", "after_timer", "after_step", "stopping"):
        found = [order.index(name) for name, _call in at_point(world, point)]
        assert found == sorted(found)
    assert at_point(world, "lease_dropped") == [each.lease_dropped for each in FEATURES.all if each.lease_dropped]
    FEATURES.install(world)
    assert [name for name, _call in at_point(world, "on_timer")][-1] == "bells"


def counted(feature: Feature, calls: Counter[str]) -> Feature:
    """The same feature; every call at an extension point is counted."""
    if feature.state is None or feature.always:
        return feature

    def count(point: str, call: Any) -> Any:
        def called(*args: Any) -> Any:
            calls[f"{feature.name}: {point}"] += 1
            return call(*args)

        return called

    its = {point: call for point, call in calls_of(feature).items() if point != "preparation"}
    return replace(feature, **{point: count(point, call) for point, call in its.items()})


def test_a_deployment_that_uses_no_optional_feature_does_no_work_for_any() -> None:
    calls: Counter[str] = Counter()
    m = Machine(features=Features(counted(each, calls) for each in FEATURES.all))
    m.join(m.start_runner("h1"))
    m.pump()
    jobs = m.add(*[f"job {n}" for n in range(20)], size=Size(cpus=100), retries=1).added
    for job in jobs[:10]:
        m.end(job, exit_code=0 if job % 2 else 1)
    m.advance(5.0)
    m.crash()
    m.heal()
    m.pump()
    assert not calls
    assert not [each.name for each in m.features.in_use(m.world) if each.state is not None and not each.always]
    assert m.world.points.preparation == ()


def test_a_new_feature_has_its_event_timer_effect_row_and_recovery() -> None:
    m = Machine(features=FEATURES)
    m.join(m.start_runner("h1"))
    m.pump()
    by = m.asker()
    m.happened(bells.BellSet(by=by, name="noon", at=m.wall + 100))
    m.pump()
    assert m.replies[by.n] == "noon"
    assert m.engine.next_due() == m.wall + 100
    (job,) = m.add("a", size=Size(cpus=100)).added
    m.end(job)
    assert m.world.use(bells.Bells).ends_heard == 1
    m.crash()
    assert m.world.use(bells.Bells).due == {"noon": m.wall + 100}
    m.wall += 101
    turn = turn_at(m.wall)
    m.engine.step([events.TimerFired()], turn)
    assert bells.RingBell("noon") in turn.effects
    assert turn.changes.meta[bells.ROW] == "{}"
    m.world.use(bells.Bells).due[""] = 1.0
    with pytest.raises(AssertionError, match="one has no name"):
        m.check()


def test_a_new_feature_refuses_and_its_bugs_name_it() -> None:
    m = Machine(features=FEATURES)
    by = m.asker()
    m.happened(bells.BellSet(by=by, name="", at=0.0))
    m.pump()
    assert isinstance(m.replies[by.n], BadInput)
    assert m.world.find(bells.Bells) is None
    m.world.use(bells.Bells).due = {"broken": "now"}  # type: ignore[dict-item]
    with pytest.raises(Undecided) as found:
        m.engine.step([events.TimerFired()], turn_at(m.wall))
    assert found.value.place == "bells"


def test_two_features_share_neither_name_nor_state_nor_event() -> None:
    for second in (
        Feature(name="bells"),
        Feature(name="other", state=bells.Bells),
        Feature(name="other", handlers={bells.BellSet: lambda *_args: None}),
    ):
        with pytest.raises(Bug):
            Features((bells.ENGINE, second))


def test_the_state_of_an_unregistered_feature_is_refused() -> None:
    with pytest.raises(Bug, match="no feature"):
        world_with(BUILT_IN).use(bells.Bells)
