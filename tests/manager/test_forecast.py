"""What is said about the end follows from what was seen, and nothing is said where nothing is known."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rota.core.job import Job, Lease, Spec
from rota.core.states import State
from rota.core.world import Runner, World
from rota.manager.forecast import foresee
from rota.manager.rates import WINDOW_S, Rates
from rota.plan.placement import Capacity, Given, Pause
from rota.plan.planning import Planning
from rota.plan.size import Size
from rota.wire.views import StatusView

_WALL = 1_800_000_000.0


def _world(**groups: dict[State, int]) -> World:
    world = World(Planning())
    for group, counts in groups.items():
        for state, number in counts.items():
            world.counts[group][state] = number
    return world


def _status(world: World, *only: str) -> StatusView:
    groups = {
        group: {state.label: counts[state] for state in State if counts[state]}
        for group, counts in world.counts.items()
        if not only or group in only
    }
    return StatusView({}, groups)


def _run(world: World, group: str, *, jobs: int, time_s: float | None, ran_s: float = 0.0) -> None:
    runner = world.runners["r"] = Runner("r", "here")
    runner.connected = True
    world.capacity["here"] = Capacity(cpus=800, mem=1, disk=1)
    given = () if time_s is None else ("time",)
    spec = Spec(user="u", cwd="/", env=1, group=group, size=Size(time_s=time_s or 3600.0), given=given)
    for id in range(1, jobs + 1):
        lease = Lease(1, "r", _WALL, started_at=_WALL - ran_s)
        world.jobs[id] = Job(id, "", spec, 1, "true", State.RUNNING, "s", _WALL, lease=lease)
        runner.leases.add(id)


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else (at - datetime.fromtimestamp(_WALL, UTC)).total_seconds()


def _foreseen(world: World, rates: Rates, *only: str, now: float = 10.0) -> StatusView:
    status = _status(world, *only)
    foresee(status, world, rates, now=now, wall=_WALL)
    return status


def test_nothing_is_said_before_anything_has_ended() -> None:
    world = _world(a={State.READY: 100})
    _run(world, "a", jobs=2, time_s=None)
    found = _foreseen(world, Rates())
    assert found.expected_end is None
    assert found.rate is None
    assert found.group_rates == {}
    assert found.group_expected_end == {}


def test_each_group_goes_on_at_its_own_rate_and_the_last_one_is_the_end() -> None:
    world = _world(fast={State.READY: 100}, slow={State.READY: 20})
    rates = Rates()
    for second in range(11):
        for _ in range(10):
            rates.ended("fast", 0.1, float(second))
        rates.ended("slow", 1.0, float(second))
    found = _foreseen(world, rates)
    assert found.group_rates == {"fast": 10.0, "slow": 1.0}
    assert {group: _seconds(at) for group, at in found.group_expected_end.items()} == {"fast": 10.0, "slow": 20.0}
    assert _seconds(found.expected_end) == 20.0


def test_while_one_group_is_unknown_the_end_of_all_is_unknown() -> None:
    world = _world(quick={State.READY: 10}, long={State.RUNNING: 3, State.READY: 1})
    _run(world, "long", jobs=3, time_s=None, ran_s=5.0)
    rates = Rates()
    for second in range(11):
        rates.ended("quick", 1.0, float(second))
    found = _foreseen(world, rates)
    assert set(found.group_expected_end) == {"quick"}
    assert found.expected_end is None


def test_the_rate_of_groups_that_are_done_is_not_the_rate_of_those_that_go_on() -> None:
    world = _world(done={State.COMPLETE: 20_000}, long={State.RUNNING: 3, State.READY: 1})
    _run(world, "long", jobs=3, time_s=None)
    rates = Rates()
    for second in range(11):
        for _ in range(150):
            rates.ended("done", 0.01, float(second))
    found = _foreseen(world, rates)
    assert found.rate is None
    assert found.expected_end is None


def test_a_pace_that_has_stopped_foretells_nothing() -> None:
    world = _world(mixed={State.COMPLETE: 20_000, State.RUNNING: 3, State.READY: 1})
    rates = Rates()
    for second in range(11):
        for _ in range(150):
            rates.ended("mixed", 0.01, float(second))
    _run(world, "mixed", jobs=3, time_s=None, ran_s=5.0)
    assert _foreseen(world, rates, now=15.0).expected_end is None


def test_the_last_few_jobs_are_foreseen_by_how_long_they_run_already() -> None:
    world = _world(mixed={State.COMPLETE: 20_000, State.RUNNING: 2, State.READY: 2})
    rates = Rates()
    for second in range(11):
        for _ in range(150):
            rates.ended("mixed", 0.01, float(second))
    _run(world, "mixed", jobs=2, time_s=None, ran_s=0.1)
    assert _foreseen(world, rates, now=10.1).expected_end is None


def test_jobs_that_end_together_go_on_at_their_rate_in_between() -> None:
    world = _world(together={State.RUNNING: 8, State.READY: 72})
    rates = Rates()
    for second in (0.0, 8.0, 16.0):
        for _ in range(8):
            rates.ended("together", 8.0, second)
    _run(world, "together", jobs=8, time_s=None, ran_s=7.0)
    found = _foreseen(world, rates, now=23.0)
    assert _seconds(found.expected_end) == pytest.approx(80 / found.group_rates["together"])


def test_a_learned_size_is_no_forecast() -> None:
    world = _world(a={State.RUNNING: 1})
    _run(world, "a", jobs=1, time_s=None)
    world.jobs[1].learned = Size(time_s=900.0)
    assert _foreseen(world, Rates()).expected_end is None


def test_long_jobs_are_foreseen_by_what_such_jobs_took() -> None:
    world = _world(long={State.READY: 6, State.RUNNING: 2})
    _run(world, "long", jobs=2, time_s=None, ran_s=100.0)
    rates = Rates()
    rates.ended("long", 600.0, 0.0)
    found = _foreseen(world, rates)
    assert found.group_rates == {}
    assert _seconds(found.group_expected_end["long"]) == (8 * 600.0 - 200.0) / 2


def test_time_that_a_job_stood_suspended_brings_its_end_no_nearer() -> None:
    world = _world(long={State.RUNNING: 1})
    _run(world, "long", jobs=1, time_s=600.0, ran_s=500.0)
    lease = world.jobs[1].lease
    assert lease is not None
    lease.given = Given(size=Size(), pause=Pause(before_s=400.0))
    assert _seconds(_foreseen(world, Rates()).expected_end) == 500.0


def test_jobs_that_take_longer_than_others_did_may_end_whenever_they_like() -> None:
    world = _world(a={State.RUNNING: 1})
    _run(world, "a", jobs=1, time_s=None, ran_s=4.0)
    rates = Rates()
    rates.ended("a", 0.01, 0.0)
    assert _foreseen(world, rates).expected_end is None


def test_before_any_end_the_users_own_estimate_counts() -> None:
    world = _world(told={State.READY: 3, State.RUNNING: 1})
    _run(world, "told", jobs=1, time_s=60.0)
    found = _foreseen(world, Rates())
    assert _seconds(found.expected_end) == 240.0
    assert (found.cores, found.cores_in_use) == (8.0, 1.0)


@pytest.mark.parametrize("state", [State.HELD, State.BLOCKED, State.SUSPENDED, State.LOST, State.FAILED])
def test_of_what_does_not_move_no_end_is_expected(state: State) -> None:
    world = _world(a={state: 5})
    rates = Rates()
    rates.ended("a", 1.0, 8.0)
    rates.ended("a", 1.0, 9.0)
    found = _foreseen(world, rates)
    assert found.expected_end is None
    assert found.group_expected_end == {}


def test_of_a_part_of_a_group_nothing_is_said() -> None:
    world = _world(a={State.READY: 5})
    rates = Rates()
    rates.ended("a", 1.0, 8.0)
    rates.ended("a", 1.0, 9.0)
    part = StatusView({}, {"a": {"ready": 2}})
    foresee(part, world, rates, now=10.0, wall=_WALL)
    assert part.rate is None
    assert part.expected_end is None


def test_a_selected_group_has_its_own_rate() -> None:
    world = _world(a={State.READY: 10}, b={State.READY: 10})
    rates = Rates()
    for second in range(11):
        rates.ended("a", 1.0, float(second))
        rates.ended("b", 1.0, float(second))
    assert _foreseen(world, rates, "a").rate == 1.0
    assert _foreseen(world, rates).rate == 2.0


def test_a_rate_needs_ends_at_different_times_and_is_forgotten_after_the_window() -> None:
    rates = Rates()
    for _ in range(50):
        rates.ended("a", 1.0, 100.0)
    assert rates.group_rate("a", 110.0) is None
    rates.ended("a", 1.0, 110.5)
    assert rates.group_rate("a", 120.0) == 1 / 20
    assert rates.group_rate("a", 111.0 + WINDOW_S) is None
    assert rates.wall_s("a") == 1.0


def test_nothing_is_kept_of_groups_that_have_come_to_rest() -> None:
    rates = Rates()
    for number in range(100):
        rates.ended(f"g{number}", None, 0.0)
    rates.ended("last", None, 2.0 * WINDOW_S)
    assert len(rates._dated) == 1
