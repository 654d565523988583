"""Jobs that name a pool run there; others take the first with room. Demand counts each ready job once."""

from __future__ import annotations

import msgspec
import pytest

from rota.core.forecast.expectation import snapshot
from rota.core.forecast.expected_times import Expectations
from rota.core.jobs.explain import why
from rota.core.pools.demand import PATIENCE_S, Demand
from rota.core.pools.state import Pools
from rota.core.states import State
from rota.errors import BadInput, NeverFits
from rota.plan.need import LimitUse, Need
from rota.plan.policy.limits import Limit
from rota.plan.size import CORE, Size
from tests.core.machine import GIB
from tests.core.pools.several_pools import FAR, WIDE, SeveralPools

BIG = Size(cpus=64 * CORE, mem=GIB)


def machine(**more: object) -> SeveralPools:
    made = SeveralPools(cpus=200, **more)  # type: ignore[arg-type]
    made.with_runner()
    return made


def test_a_job_that_names_a_pool_runs_only_there_and_does_not_hold_up_others() -> None:
    m = machine()
    (far,) = m.add("a", pool=FAR, priority=9).added
    (here, _) = m.add("b", "c", pool="local", fresh=True).added
    (late,) = m.add("d", fresh=True).added
    assert set(m.running()) == {here, here + 1}, "the one in front waits for another pool"
    assert m.wanted()[FAR] == {m.world.jobs[far].need.group: 2}, "the last one fits nowhere else"
    m.serve(FAR, 1)
    assert m.pool_of(far) == FAR
    assert m.state(late) is State.READY
    m.serve(FAR)
    assert m.pool_of(late) == FAR


def test_a_job_without_a_pool_takes_the_first_with_room() -> None:
    m = machine(most={FAR: 1, WIDE: 2})
    jobs = m.add(*(f"j {n}" for n in range(6)), fresh=True).added
    assert set(m.running()) == set(jobs[:2])
    assert m.totals() == {FAR: 1, WIDE: 2}, "each ready job counts once, and no bound is exceeded"
    m.end(jobs[0])
    assert set(m.running()) == {jobs[1], jobs[2]}
    assert m.totals() == {FAR: 1, WIDE: 2}
    m.end(jobs[1])
    assert m.totals() == {FAR: 1, WIDE: 1}
    m.serve(FAR)
    m.serve(WIDE)
    assert sorted(m.pool_of(job) for job in jobs[4:]) == [FAR, WIDE]
    assert m.totals() == {FAR: 1, WIDE: 1}, "those that run still count"
    m.run_out()
    m.leave_idle()
    assert m.totals() == {FAR: 0, WIDE: 0}


def test_held_delayed_dependent_and_paused_jobs_are_no_demand() -> None:
    m = machine()
    first, held = m.add("a", "b", pool=FAR).added
    m.add("c", pool=FAR, after=((first, 1, False),))
    assert m.totals()[FAR] == 2
    m.do("hold", held)
    assert m.totals()[FAR] == 1
    m.serve(FAR)
    m.end(first, exit_code=1)
    m.leave_idle()
    assert m.totals()[FAR] == 0
    m.do("release", held)
    assert m.totals()[FAR] == 1
    m.world.paused = True
    assert m.totals()[FAR] == 0


def test_jobs_in_the_queue_of_a_plan_count_and_begin_elsewhere() -> None:
    m = machine()
    (planned,) = m.add("p", fresh=True, request=("core=2,walltime=1h",)).added
    plain = m.add(*(f"j {n}" for n in range(3)), fresh=True).added
    (queued,) = m.add("q", fresh=True, queue="admin").added
    (box,) = m.add("x", fresh=True, types=("container",)).added
    assert m.world.placement.planner is not None
    assert set(m.running()) == {planned}
    assert m.totals() == {FAR: 3, WIDE: 1}, "all but the container"
    m.serve(FAR)
    m.serve(WIDE)
    assert {m.pool_of(job) for job in (*plain, queued)} == {FAR, WIDE}
    assert m.state(box) is State.READY
    for job in (*plain, queued):
        m.end(job)
    m.leave_idle()
    m.run_out()
    assert m.states(planned, *plain, queued, box) == [State.COMPLETE] * 6
    assert m.totals() == {FAR: 0, WIDE: 0}


def test_a_runner_takes_the_first_of_its_group_whether_it_names_the_pool_or_not() -> None:
    m = machine()
    m.add("p", fresh=True, request=("core=2,walltime=1h",))
    (late,) = m.add("late", pool=FAR).added
    (urgent,) = m.add("urgent", fresh=True, priority=5).added
    (last,) = m.add("last", fresh=True).added
    m.serve(FAR, 1)
    assert m.pool_of(urgent) == FAR
    m.end(urgent)
    assert m.pool_of(late) == FAR
    m.end(late)
    assert m.pool_of(last) == FAR


def test_limits_bound_the_demand_of_all_pools_together_best_rank_first() -> None:
    m = machine()
    m.world.placement.limits.declare(Limit("a", 3))
    m.add("x", "y", fresh=True, pool=WIDE, limits=(LimitUse("a"),))
    m.add("u", "v", fresh=True, pool=FAR, limits=(LimitUse("a"),), priority=5)
    assert m.totals() == {FAR: 2, WIDE: 1}
    m.serve(FAR)
    assert m.totals() == {FAR: 2, WIDE: 1}, "units are taken with the lease"


def test_a_group_moves_on_after_five_minutes_and_its_demand_is_withdrawn_first() -> None:
    m = machine()
    jobs = m.add(*(f"j {n}" for n in range(4)), fresh=True).added
    (named,) = m.add("n", pool=FAR, fresh=True, size=Size(mem=2 * GIB)).added
    assert m.totals() == {FAR: 3, WIDE: 0}
    (group,) = m.wanted()[FAR].keys() - {m.world.jobs[named].need.group}
    m.advance(PATIENCE_S)
    assert m.world.use(Pools).pools[WIDE].wanted == {}, "nothing is asked for before the other demand is withdrawn"
    assert m.wanted() == {FAR: {m.world.jobs[named].need.group: 1}, WIDE: {group: 2}}
    m.serve(WIDE)
    assert {m.pool_of(job) for job in jobs[2:]} == {WIDE}
    late = m.add("l", fresh=True).added
    m.end(jobs[2])
    assert m.pool_of(late[0]) == WIDE


def test_a_pool_that_serves_a_group_keeps_it() -> None:
    m = machine()
    m.add(*(f"j {n}" for n in range(5)), fresh=True)
    for _ in range(3):
        m.advance(PATIENCE_S - 10)
        m.serve(FAR, 1)
    assert m.totals() == {FAR: 3, WIDE: 0}


def test_a_size_that_only_another_engine_may_have_is_not_refused() -> None:
    m = machine()
    (big,) = m.add("big", size=BIG).added
    assert m.wanted()[FAR] == {Need(BIG): 1}
    m.serve(FAR)
    assert m.pool_of(big) == FAR
    with pytest.raises(NeverFits, match="largest host has 2"):
        m.add("bigger", size=BIG, pool="local")


def test_a_size_is_refused_where_no_engine_has_it() -> None:
    m = machine()
    pools = m.world.use(Pools).pools
    pools[FAR].can_fit = lambda size, seconds: size.cpus <= 8 * CORE and seconds <= 7200
    pools[WIDE].can_fit = lambda size, seconds: size.cpus <= 64 * CORE and seconds <= 600
    with pytest.raises(NeverFits, match=r"asked 64 cpus, .* and no other pool starts a runner for it"):
        m.add("big", size=BIG)
    with pytest.raises(NeverFits, match="pool 'far'"):
        m.add("big", size=BIG, pool=FAR)
    m.add("short", size=Size(cpus=64 * CORE, time_s=300.0))
    m.add("long", pool=FAR, size=Size(cpus=4 * CORE), walltime_s=3600.0)
    assert {pool: [need.size.cpus for need in needs] for pool, needs in m.wanted().items()} == {
        FAR: [4 * CORE],
        WIDE: [64 * CORE],
    }
    assert [w.seconds for w in pools[FAR].wanted.values()] == [5400.0]


def test_limits_of_hosts_are_refused_elsewhere() -> None:
    m = machine()
    m.world.placement.limits.declare(Limit("bigmem", hosts=(("h1", 2),)))
    with pytest.raises(BadInput, match="'bigmem' is one of each host"):
        m.add("a", pool=FAR, limits=(LimitUse("bigmem"),))
    m.add("b", "c", "d", fresh=True, limits=(LimitUse("bigmem"),))
    assert m.totals() == {FAR: 0, WIDE: 0}


def test_why_tells_which_pool_a_job_waits_for() -> None:
    m = machine(most={FAR: 1, WIDE: 1})
    (first, second) = m.add("a", "b", pool=FAR).added
    m.totals()
    said = [why(m.world, m.world.jobs[job], wall=m.wall) for job in (first, second)]
    assert [[each.code for each in reasons] for reasons in said] == [["pool"], ["pool"]]
    assert "pool 'far' is asked for a runner" in said[0][0].message
    assert said[0][0].hint == "rota pool status far"
    m.serve(FAR)
    m.totals()
    assert (
        "has reached its maximum number of runners (1)"
        in why(m.world, m.world.jobs[second], wall=m.wall)[0].message
    )
    (big,) = m.add("big", size=BIG).added
    assert [each.code for each in why(m.world, m.world.jobs[big], wall=m.wall)][-1:] == ["pool"]
    m.world.settings = msgspec.structs.replace(m.world.settings, pools={})
    assert "not configured any more" in why(m.world, m.world.jobs[second], wall=m.wall)[0].message


def test_why_blames_a_limit_and_not_the_pool_that_has_room() -> None:
    m = machine()
    m.world.placement.limits.declare(Limit("a", 1))
    (_first, second) = m.add("x", "y", fresh=True, pool=FAR, limits=(LimitUse("a"),)).added
    m.serve(FAR)
    m.totals()
    assert [each.code for each in why(m.world, m.world.jobs[second], wall=m.wall)] == ["limit"]


def test_nothing_is_expected_of_another_engine() -> None:
    m = machine()
    (job,) = m.add("a", pool=FAR, size=Size(mem=GIB, time_s=60.0), given=("time",)).added
    expected = Expectations(snapshot(m.world, None, now=m.mono, wall=m.wall)).of(m.world.jobs[job])
    assert (expected.start, expected.end) == (None, None)
    assert expected.unknown is not None
    assert expected.unknown.code == "pool"


def test_what_waits_for_a_host_of_a_pool_that_has_none_is_told_so() -> None:
    m = SeveralPools(hosts=0)
    (old,) = m.add("o", pool="local").added
    m.world.settings = msgspec.structs.replace(m.world.settings, local=False)
    with pytest.raises(BadInput, match="pool 'local' is off"):
        m.add("l", pool="local")
    jobs = m.add("n", pool="nodes").added + m.add("a").added
    m.totals()
    (nodes,), (free,) = [why(m.world, m.world.jobs[job], wall=m.wall) for job in jobs]
    assert (nodes.code, nodes.message, nodes.hint) == (
        "no_resources", "no host of pool 'nodes' is connected", "rota node list",
    )  # fmt: skip
    assert (free.code, free.message) == ("pool", "pool 'far' is asked for a runner")
    (off,) = why(m.world, m.world.jobs[old], wall=m.wall)
    assert (off.message, off.hint) == ("pool 'local' is off", f"rota modify {old} --pool none")
    m.world.settings = msgspec.structs.replace(m.world.settings, pools={})
    (alone,) = why(m.world, m.world.jobs[jobs[1]], wall=m.wall)
    assert alone.message == "no node is connected, and pool 'local' is off"


def test_a_host_of_its_own_that_has_yet_to_connect_goes_first() -> None:
    m = SeveralPools(cpus=200)
    m.add("a", fresh=True)
    m.add("b", pool=FAR)
    assert m.totals() == {FAR: 1, WIDE: 0}
    m.advance(10.0)
    assert m.totals() == {FAR: 2, WIDE: 0}, "it does not come"


def test_what_waits_is_counted_at_most_once_in_a_while() -> None:
    m = machine()
    m.add("a", pool=FAR)
    before = m.world.use(Demand).next_at
    m.happened()
    assert m.world.use(Demand).next_at == before, "no time has passed"
