"""Demand: how many runners each delegated pool should have for each reservation group.

One for each job that runs there, and one for each ready job as far as limits leave units and `max_runners` room,
best rank first. A job counts in one pool at a time: the one it names, or the first with room that could ever run
it. If nothing of its group begins there for `PATIENCE_S`, the group moves on to the next pool: its demand is
withdrawn first. Dependent, held and delayed jobs are not ready, so they never count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from rota.core.feature import Feature
from rota.core.pools.records import NOT_STARTED, Wanted
from rota.core.pools.registry import allowed
from rota.core.pools.state import Pools
from rota.core.site.manager_pause import starts_nothing
from rota.core.turn import Turn
from rota.core.world import World
from rota.plan.need import Need, allocation_s
from rota.plan.packing.demand import Allowance
from rota.plan.placement.queue import Ready
from rota.pool_names import PLANNED

#: A group without a start in a pool for this long moves on to the next pool.
PATIENCE_S: Final = 300.0
#: Between two counts: at least this long, and longer with many kinds of jobs.
_PAUSE_S: Final = 0.05
_KINDS_PER_S: Final = 5_000
#: After a start of the manager its own hosts have this long to connect before jobs without a pool go elsewhere.
_FIRST_S: Final = 5.0


class GroupPlace(Struct, gc=False):
    """The pool in which a group's jobs without a named pool are counted."""

    pool: str
    since: float  #: monotonic time of the group's last start there, or of its arrival there
    seen: frozenset[str] = frozenset()  #: runners of the group there
    leaving: str = ""  #: the pool that its demand is being withdrawn from; nothing is counted meanwhile


class Demand:
    """State of the feature `pool demand`: made if a delegated pool is configured."""

    def __init__(self) -> None:
        self.counted: dict[str, dict[Need, int]] = {}  #: pool → group → ready jobs that count there
        self.turns: dict[Need, GroupPlace] = {}  #: group → where it is counted
        self.first_at: float | None = None  #: monotonic time of the first count
        self.next_at = 0.0  #: monotonic time
        self.whole = False  #: were jobs that name no pool counted?


def wanted(world: World, now: float) -> dict[str, dict[Need, Wanted]]:
    """The runners that each delegated pool should have. `now`: monotonic time."""
    demand = world.use(Demand)
    if demand.first_at is None:
        demand.first_at = now
    holding, runners = _runners(world)
    waiting = [] if starts_nothing(world) else world.placement.ready()
    demand.next_at = now + max(_PAUSE_S, len(waiting) / _KINDS_PER_S)
    count = _Count(world, demand, holding, runners, now)
    demand.counted = count.all(waiting)
    grace_s = world.settings.vacate_times.grace_s
    found: dict[str, dict[Need, Wanted]] = {}
    for pool in world.settings.pools:
        # In order of rank: runners that have jobs come first, then waiting jobs in the order of their count.
        numbers = {group: number for (name, group), number in holding.items() if name == pool}
        for group, number in demand.counted.get(pool, {}).items():
            numbers[group] = numbers.get(group, 0) + number
        found[pool] = {group: Wanted(number, allocation_s(group, grace_s)) for group, number in numbers.items()}
    return found


def ready_in(world: World, pool: str) -> dict[Need, int]:
    """How many ready jobs of each group wait for this pool, regardless of limits and bounds."""
    demand = world.find(Demand)
    found: dict[Need, int] = {}
    if demand is None or starts_nothing(world):
        return found
    for each in world.placement.ready():
        group = each.need.group
        at = demand.turns.get(group)
        if each.need.pool != pool and (each.need.pool or (at is not None and at.pool != pool)):
            continue
        pools = tuple(allowed(world, each.need, each.request))
        if (pools[:1] if at is None or each.need.pool else (at.pool,)) == (pool,):
            found[group] = found.get(group, 0) + each.number
    return found


def _runners(world: World) -> tuple[dict[tuple[str, Need], int], dict[tuple[str, Need], frozenset[str]]]:
    """Of each pool and group: how many runners have jobs, and which there are. Runners that must leave do not
    count."""
    pools = world.find(Pools)
    holding: dict[tuple[str, Need], int] = {}
    there: dict[tuple[str, Need], set[str]] = {}
    for runner in world.runners.values():
        if runner.made_for is None:
            continue
        intent = pools.intents.get(runner.host) if pools is not None else None
        if pools is not None and runner.leases:
            pools.has_worked(runner.host)
        if intent is not None and intent.withdrawn:
            continue
        key = (runner.pool, runner.made_for)
        there.setdefault(key, set()).add(runner.id)
        if runner.leases:
            holding[key] = holding.get(key, 0) + 1
    return holding, {key: frozenset(ids) for key, ids in there.items()}


class _Count:
    """One count of all ready jobs."""

    def __init__(
        self,
        world: World,
        demand: Demand,
        holding: dict[tuple[str, Need], int],
        runners: dict[tuple[str, Need], frozenset[str]],
        now: float,
    ) -> None:
        self._world = world
        self._demand = demand
        self._runners = runners
        self._now = now
        self._found: dict[str, dict[Need, int]] = {}
        self._left = dict(world.settings.pools)  #: pool → how many more runners it may have
        for (pool, _group), number in holding.items():
            if pool in self._left:
                self._left[pool] = max(0, self._left[pool] - number)
        #: (need, types and the like) → pools that could run it
        self._allowed: dict[tuple[Need, int], tuple[str, ...]] = {}

    def all(self, waiting: Iterable[Ready]) -> dict[str, dict[Need, int]]:
        met: set[Need] = set()
        anywhere = self._demand.whole = self._planned_pools_are_there()
        with Allowance(self._world.placement.limits) as allowance:
            for each in waiting:
                if not any(self._left.values()):
                    return self._found  # no pool may have more: the rest need not be looked at
                named = each.need.pool
                if not self._left.get(named) if named else not anywhere:
                    continue
                pools = self._pools(each)
                if not pools:
                    continue
                group = each.need.group
                number = allowance.most(each.need.limits, each.number)
                if not each.need.pool:
                    met.add(group)
                    pools = self._from_its_turn(group, pools)
                allowance.take(each.need.limits, self._put(group, number, pools))
        for group in self._demand.turns.keys() - met:
            del self._demand.turns[group]  # it begins with the first pool again
        return self._found

    def _pools(self, each: Ready) -> tuple[str, ...]:
        key = (each.need, each.need.terms)
        found = self._allowed.get(key)
        if found is None:
            found = self._allowed[key] = tuple(allowed(self._world, each.need, each.request))
        return found

    def _planned_pools_are_there(self) -> bool:
        """Have our own hosts, if there are any, had the time to connect?"""
        first_at = self._demand.first_at
        if first_at is None or self._now - first_at >= _FIRST_S:
            return True
        known = any(capacity.pool in PLANNED for capacity in self._world.capacity.values())
        return not known or self._world.placement.usable_in(PLANNED)

    def _put(self, group: Need, number: int, pools: Iterable[str]) -> int:
        """Count up to this many jobs in the first of these pools with room; returns how many it counted."""
        before = number
        for pool in pools:
            more = min(number, self._left[pool])
            if more > 0:
                counted = self._found.setdefault(pool, {})
                counted[group] = counted.get(group, 0) + more
                self._left[pool] -= more
                number -= more
        return before - number

    # ------------------------------------------------------------------ moving on

    def _from_its_turn(self, group: Need, pools: tuple[str, ...]) -> tuple[str, ...]:
        """These pools, beginning with the one whose turn it is; none while demand is being withdrawn."""
        turn = self._demand.turns.get(group)
        if turn is None or turn.pool not in pools:
            turn = self._demand.turns[group] = GroupPlace(pools[0], self._now, self._there(pools[0], group))
        if turn.leaving:
            if self._pending(turn.leaving, group):
                return ()
            turn.leaving, turn.since = "", self._now
        there = self._there(turn.pool, group)
        if there - turn.seen:
            turn.since = self._now  # a runner has come: the pool is serving it
        turn.seen = there
        if self._now - turn.since >= PATIENCE_S and len(pools) > 1:
            turn.leaving = turn.pool
            turn.pool = pools[(pools.index(turn.pool) + 1) % len(pools)]
            turn.since, turn.seen = self._now, self._there(turn.pool, group)
            return ()
        at = pools.index(turn.pool)
        return pools[at:]

    def _there(self, pool: str, group: Need) -> frozenset[str]:
        return self._runners.get((pool, group), frozenset())

    def _pending(self, pool: str, group: Need) -> bool:
        """Does the engine of this pool have runners of the group that have not started?"""
        pools = self._world.find(Pools)
        found = pools.pools.get(pool) if pools is not None else None
        if found is None:
            return False
        # The ticket of a withdrawn one lets nobody in: an engine that cannot say that it is gone holds up nothing.
        return any(
            each.need == group and each.state in NOT_STARTED and not each.withdrawn
            for each in found.intents.values()
        )


def _state_demand(world: World, turn: Turn) -> None:
    if turn.mono >= world.use(Demand).next_at:
        found = wanted(world, turn.mono)
        world.use(Pools).want(found, whole=world.use(Demand).whole)


FEATURE = Feature(name="pool demand", state=Demand, after_step=_state_demand)
