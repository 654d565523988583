"""Random jobs over the own host and two delegated pools: demand keeps its bounds, and ends with the queue.

All of it with the planner, which opens and closes its plan meanwhile, and with the simplest placement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.pools.demand import PATIENCE_S, Demand
from rota.core.states import State
from rota.plan.dispatch.planning import Planning
from rota.plan.need import LimitUse
from rota.plan.placement.placement import Placement
from rota.plan.policy.limits import Limit
from rota.plan.size import Size
from tests.core.machine import GIB
from tests.core.pools.several_pools import FAR, WIDE, SeveralPools
from tests.dose import dose
from tests.plan.first_come import FirstCome

PLACEMENTS: dict[str, Callable[[int], Placement]] = {
    "planning": lambda first_seat: Planning(first_seat=first_seat),
    "first come": lambda first_seat: FirstCome(first_seat=first_seat),
}

kinds = st.fixed_dictionaries(
    {
        "pool": st.sampled_from(["", "", "", "local", FAR, WIDE]),
        "size": st.sampled_from([Size(), Size(), Size(mem=3 * GIB, time_s=60.0)]),
        "limits": st.sampled_from([(), (), (LimitUse("a"),), (LimitUse("a", 2),)]),
        "priority": st.sampled_from([0, 0, 7]),
        "queue": st.sampled_from(["default", "default", "default", "admin"]),
        "walltime_s": st.sampled_from([None, None, 600.0]),
    }
)
steps = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 5), kinds),
    st.tuples(st.just("plan"), st.just(1), kinds),
    st.tuples(st.sampled_from(["end", "fail", "kill", "hold", "release"]), st.integers(0, 20), st.none()),
    st.tuples(st.just("serve"), st.integers(1, 4), st.sampled_from([FAR, WIDE])),
    st.tuples(st.just("leave"), st.just(0), st.none()),
    st.tuples(st.just("wait"), st.sampled_from([1, 40, int(PATIENCE_S)]), st.none()),
)


class History:
    """One run."""

    def __init__(self, placement: Callable[[int], Placement]) -> None:
        self.m = SeveralPools(cpus=200, placement=placement)
        self.m.with_runner()
        self.m.world.placement.limits.declare(Limit("a", 3))
        self.jobs: list[int] = []

    def do(self, what: str, number: int, about: Any) -> None:
        m = self.m
        running, live = sorted(m.running()), sorted(m.world.jobs)
        match what:
            case "add":
                self.jobs += m.add(*(f"j {len(self.jobs)} {n}" for n in range(number)), fresh=True, **about).added
            case "plan":
                kind = about | {"pool": "", "request": ("core=2,walltime=0:10:0",), "size": Size()}
                self.jobs += m.add(f"p {len(self.jobs)}", fresh=True, **kind).added
            case "end" | "fail" if running:
                m.end(running[number % len(running)], exit_code=int(what == "fail"))
            case "kill" | "hold" | "release" if live:
                m.act(what, live[number % len(live)])
                m.pump()
            case "serve":
                m.serve(about, number)
            case "leave":
                m.leave_idle()
            case "wait":
                self.report()
                m.advance(float(number))
                m.pump()
        self.check()

    def report(self) -> None:
        for model in self.m.runners.values():
            if model.connected:
                model.report()
        self.m.pump()

    def check(self) -> None:
        m = self.m
        self.report()
        wanted = m.wanted()
        for pool, most in m.most.items():
            assert sum(wanted[pool].values()) <= most
        jobs = m.world.jobs.values()
        ready = Counter(job.need.group for job in jobs if job.state is State.READY and job.need.pool != "local")
        counted: Counter[Any] = Counter()
        for groups in m.world.use(Demand).counted.values():
            counted.update(groups)
        assert all(number <= ready[group] for group, number in counted.items()), "no job counts twice"
        used, _ = m.world.placement.limits.use("a")
        units = sum(use.units * number for group, number in counted.items() for use in group.limits)
        assert used + units <= 3 or not units
        for job in m.running():
            named = m.world.jobs[job].spec.pool
            assert named in ("", m.pool_of(job))

    def finish(self) -> None:
        """Engines that serve, and jobs that end: nothing is left, and no runner is wanted."""
        m = self.m
        for job in sorted(m.world.jobs):
            if m.state(job) is State.HELD:
                m.do("release", job)
        for _round in range(200):
            for pool in m.most:
                m.serve(pool)
            for job in list(m.running()):
                if job in m.running():
                    m.end(job)
            m.leave_idle()
            self.report()
            m.advance(60.0)
            m.pump()
            self.check()
            if not m.running() and not m.unfinished():
                break
        assert m.unfinished() == []
        m.leave_idle()
        assert m.totals() == {FAR: 0, WIDE: 0}
        assert not m.world.use(Demand).turns


@pytest.mark.parametrize("placement", PLACEMENTS)
@given(history=st.lists(steps, max_size=25))
@dose(25)
def test_demand_keeps_its_bounds_and_falls_to_zero(placement: str, history: list[tuple[str, int, Any]]) -> None:
    run = History(PLACEMENTS[placement])
    for what, number, about in history:
        run.do(what, number, about)
    run.finish()
