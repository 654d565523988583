"""Limits in the engine, example by example."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core import events
from rota.errors import BadInput, NotFound
from rota.plan.need import LimitUse
from rota.plan.policy.limits import Limit, Window
from rota.plan.size import Size
from tests.core.machine import Machine

HOUR = 3600.0


@pytest.fixture
def m() -> Machine:
    machine = Machine(cpus=800, hosts=2)
    for host in machine.capacity:
        machine.join(machine.start_runner(host))
    machine.pump()
    return machine


def declare(m: Machine, *limits: Limit, remove: str = "") -> None:
    by = m.asker()
    m.happened(events.LimitsDeclared(by=by, limits=list(limits), withdrawn=[remove] if remove else []))
    m.answer(by.n)


def add(m: Machine, count: int, *uses: LimitUse, **fields: Any) -> list[int]:
    return m.add(*["cmd"] * count, limits=tuple(uses), fresh=True, **fields).added


def running(m: Machine) -> list[int]:
    return sorted(m.running())


def restart(m: Machine) -> None:
    m.crash()
    for runner in m.runners.values():
        m.join(runner)
    m.pump()


def test_five_jobs_in_limits_of_three_and_two_are_two_and_then_three(m: Machine) -> None:
    declare(m, Limit("a", 3), Limit("b", 2))
    jobs = add(m, 5, LimitUse("a"), LimitUse("b"))
    assert running(m) == jobs[:2]
    declare(m, Limit("b", 4))
    assert running(m) == jobs[:3]


def test_zero_stops_a_limit_and_unlimited_opens_it(m: Machine) -> None:
    declare(m, Limit("a", 1))
    jobs = add(m, 3, LimitUse("a"))
    declare(m, Limit("a", 0))
    m.end(jobs[0])
    assert running(m) == []
    restart(m)
    assert running(m) == []
    declare(m, remove="a")
    assert running(m) == jobs[1:]
    with pytest.raises(NotFound):
        declare(m, remove="a")


def test_a_limit_per_host_that_is_removed_and_declared_again_counts_who_holds_it(m: Machine) -> None:
    declare(m, Limit("big", hosts=(("h1", 1), ("h2", 1))))
    jobs = add(m, 4, LimitUse("big"))
    assert len(running(m)) == 2
    declare(m, remove="big")
    assert running(m) == jobs
    m.end(jobs[0])
    declare(m, Limit("big", 2))
    m.end(jobs[1])
    m.end(jobs[2])
    more = add(m, 2, LimitUse("big"))
    assert running(m) == [jobs[3], more[0]]


def test_a_host_that_is_left_out_of_a_limit_has_none_of_it(m: Machine) -> None:
    declare(m, Limit("big", hosts=(("h1", 1), ("h2", 1))))
    declare(m, Limit("big", hosts=(("h2", 1),)))
    jobs = add(m, 2, LimitUse("big"))
    assert running(m) == jobs[:1]
    assert m.running()[jobs[0]][0].host == "h2"


def test_a_limit_in_use_stays_global_or_per_host(m: Machine) -> None:
    declare(m, Limit("a", 2))
    [job] = add(m, 1, LimitUse("a"))
    with pytest.raises(BadInput, match="cannot change between global and per host"):
        declare(m, Limit("a", hosts=(("h1", 1),)))
    m.end(job)
    declare(m, Limit("a", hosts=(("h1", 1),)))


def test_a_limit_is_not_declared_while_one_that_wants_it_alone_is_beside_others(m: Machine) -> None:
    declare(m, Limit("a"))
    alone, _other = *add(m, 1, LimitUse("a", 1, True)), *add(m, 1, LimitUse("a"))
    declare(m, remove="a")
    assert len(running(m)) == 2
    with pytest.raises(BadInput, match="want it alone and by others"):
        declare(m, Limit("a"))
    m.end(alone)
    declare(m, Limit("a"))


def test_exclusive_use_stops_new_users_waits_for_the_present_ones_and_runs_alone(m: Machine) -> None:
    declare(m, Limit("db", 5))
    shared = add(m, 2, LimitUse("db"))
    [alone] = add(m, 1, LimitUse("db", 1, True))
    later = add(m, 2, LimitUse("db"))
    assert running(m) == shared
    restart(m)
    assert running(m) == shared
    m.end(shared[0])
    assert running(m) == shared[1:]
    m.end(shared[1])
    assert running(m) == [alone]
    m.end(alone)
    assert running(m) == later


def test_who_wants_a_limit_alone_stops_nobody_while_something_else_keeps_it(m: Machine) -> None:
    declare(m, Limit("db", 5), Limit("other", 1), Limit("night", None, Window(60, 120)))
    holder = add(m, 1, LimitUse("db"), LimitUse("other"))
    add(m, 1, LimitUse("db", 1, True), LimitUse("other"))
    add(m, 1, LimitUse("db", 1, True), LimitUse("night"))
    shared = add(m, 1, LimitUse("db"))
    assert running(m) == [*holder, *shared], "another limit, or the hour, keeps the two"


def test_who_wants_a_limit_alone_stops_nobody_any_more_when_its_room_is_taken() -> None:
    m = Machine(cpus=400)
    m.with_runner()
    declare(m, Limit("db", 5))
    [holder] = add(m, 1, LimitUse("db"))
    [alone] = add(m, 1, LimitUse("db", 1, True), size=Size(cpus=300))
    [filler] = add(m, 1, size=Size(cpus=200), priority=9)
    [shared] = add(m, 1, LimitUse("db"), size=Size(cpus=100, time_s=1.0))
    assert running(m) == [holder, filler, shared], "it is room that the big one lacks"
    for job in (holder, filler, shared):
        m.end(job)
    assert running(m) == [alone]


def test_those_behind_one_whose_hours_ended_wait_for_it_no_more(m: Machine) -> None:
    m.wall = 59 * 60.0
    declare(m, Limit("db", 5), Limit("early", None, Window(0, 60)))
    [holder] = add(m, 1, LimitUse("db"))
    [alone] = add(m, 1, LimitUse("db", 1, True), LimitUse("early"))
    [shared] = add(m, 1, LimitUse("db"))
    assert running(m) == [holder]
    m.wall += 120.0
    m.happened(events.TimerFired())
    m.pump()
    assert running(m) == [holder, shared]
    m.end(holder)
    m.end(shared)
    assert running(m) == []
    m.wall += 23 * HOUR
    m.happened(events.TimerFired())
    m.pump()
    assert running(m) == [alone]


def test_a_window_bounds_the_start_only_and_may_cross_midnight(m: Machine) -> None:
    declare(m, Limit("night", None, Window(22 * 60, 6 * 60)))
    [early] = add(m, 1, LimitUse("night"))
    assert running(m) == [early], "the clock says 00:16"
    m.wall = 7 * HOUR
    m.happened(events.TimerFired())
    [late] = add(m, 1, LimitUse("night"))
    assert running(m) == [early]
    m.wall = 22 * HOUR
    m.happened(events.TimerFired())
    m.pump()
    assert running(m) == [early, late]


def test_room_on_a_host_that_has_units_is_found_beside_one_that_has_none(m: Machine) -> None:
    declare(m, Limit("big", hosts=(("h2", 1),)))
    full = add(m, 2, size=Size(cpus=800))
    [job] = add(m, 1, LimitUse("big"))
    on_h1 = next(each for each in full if m.running()[each][0].host == "h1")
    m.end(on_h1)
    assert job not in running(m)
    m.end(next(each for each in full if each != on_h1))
    assert m.running()[job][0].host == "h2"


def test_lost_jobs_keep_their_units_until_they_are_proven_dead(m: Machine) -> None:
    declare(m, Limit("a", 1))
    first, second = add(m, 2, LimitUse("a"))
    model = m.running()[first][0]
    m.die(model)
    m.advance(61.0)
    m.pump()
    restart_nobody = m.world.placement.limits.use("a")
    assert restart_nobody == (1, False)
    assert second not in m.running()
    m.settle(model)
    m.pump()
    assert second in m.running()
