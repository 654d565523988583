"""Settings of pools that change while runners exist, and what a restart must not take away."""

from __future__ import annotations

from rota.core.pools.demand import _FIRST_S, PATIENCE_S
from rota.core.pools.records import Intent, RunnerState
from rota.core.pools.state import PoolRules, Pools
from rota.plan.need import Need
from tests.core.pools.pool_machine import POOL, SMALL, PoolMachine
from tests.core.pools.several_pools import FAR, WIDE, SeveralPools


def waiting(m: SeveralPools, pool: str, need: Need) -> Intent:
    """A runner of this pool that waits in its engine."""
    intent = Intent(f"rota-x-{pool}", pool=pool, need=need, seconds=60.0, ticket=f"t-{pool}", asked_at=1.0)
    intent.state, intent.engine_id = RunnerState.PENDING, "e1"
    m.world.use(Pools).add(intent)
    m.world.use(Pools).due.add(pool)
    return intent


def started(number: int) -> PoolMachine:
    m = PoolMachine(max_runners=5)
    m.want({SMALL: number})
    m.survey()
    m.perform()
    m.start_things()
    m.survey()
    return m


def test_runners_that_wait_are_not_withdrawn_before_our_own_hosts_have_connected() -> None:
    m = SeveralPools(cpus=100)
    (job,) = m.add("a").added
    intent = waiting(m, FAR, m.world.jobs[job].need.group)
    m.advance(1.0)
    assert not intent.withdrawn
    m.advance(_FIRST_S)
    m.advance(1.0)
    assert not intent.withdrawn, "now it is wanted"


def test_runners_that_nobody_needs_are_withdrawn_once_our_own_hosts_have_connected() -> None:
    m = SeveralPools(cpus=100)
    (job,) = m.add("a").added
    intent = waiting(m, FAR, m.world.jobs[job].need.group)
    m.with_runner()
    m.advance(1.0)
    m.advance(1.0)
    assert intent.withdrawn


def test_a_group_moves_on_although_the_engine_does_not_say_that_the_first_runners_are_gone() -> None:
    m = SeveralPools(cpus=100)
    m.with_runner()
    m.add("here", fresh=True)
    (job,) = m.add("there", fresh=True).added
    group = m.world.jobs[job].need.group
    intent = waiting(m, FAR, group)
    assert m.totals() == {FAR: 1, WIDE: 0}
    m.advance(PATIENCE_S + 1)
    m.wanted()
    assert intent.withdrawn
    assert m.totals() == {FAR: 0, WIDE: 1}


def test_a_lower_bound_sends_away_the_runners_above_it_when_they_are_idle() -> None:
    m = started(4)
    m.rules = PoolRules(max_runners=1, settle_s=30.0)
    m.crash()
    m.settle(3)
    assert len(m.engine.things) == 1 == len(m.runners)
    assert len(m.engine.submitted) == 1


def test_a_pool_that_is_no_longer_configured_leaves_nothing_behind() -> None:
    m = started(2)
    m.want({SMALL: 4})
    m.perform()
    m.boot()
    m.pools.configure({})
    m.advance(1.0)
    for runner, id in list(m.runners.items()):
        m.join(id, runner)
    m.perform()
    assert not m.runners, "they were idle"
    for _ in range(3):
        m.advance(61.0)
    assert m.store.load().intents == []
    assert POOL not in m.pools.pools or not m.pool.intents
