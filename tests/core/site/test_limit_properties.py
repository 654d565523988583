"""Random limits, jobs, changes and crashes: nothing is exceeded by what began after a change, nothing leaks.

Who holds what is taken from the witness of what executes, not from the engine's own counts.
"""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from rota.core import events
from rota.core.jobs.job import Spec
from rota.core.rows import SpecRow
from rota.core.states import State
from rota.errors import Bug
from rota.plan.need import LimitUse
from rota.plan.policy.limits import Limit, Window
from rota.plan.size import Size
from tests.core.jobs.test_group_properties import queue_of
from tests.core.machine import Entry, Machine, spec
from tests.dose import half, histories

NAMES = ["a", "b", "c"]
HOSTS = ["h1", "h2"]
HOUR = 3600.0

numbers = st.integers(0, 1000)
uses = st.builds(
    LimitUse, st.sampled_from(NAMES), st.sampled_from([1, 1, 2, 3]), st.sampled_from([False, False, False, True])
)
use_lists = st.lists(uses, max_size=3, unique_by=lambda use: use.name).map(tuple)
sizes = st.sampled_from([Size(), Size(cpus=0), Size(cpus=200), Size(cpus=400)])
specs = st.builds(
    lambda size, limits, priority, retries: spec(size=size, limits=limits, priority=priority, retries=retries),
    sizes,
    use_lists,
    st.sampled_from([0, 0, 9]),
    st.sampled_from([0, 1]),
)
windows = st.sampled_from([None, None, None, Window(60, 240), Window(200, 30)])
capacities = st.sampled_from([0, 1, 2, 3, 5])
per_host = st.lists(st.tuples(st.sampled_from(HOSTS), capacities), min_size=1, unique_by=lambda host: host[0])
limits = st.builds(Limit, st.sampled_from(NAMES), capacities | st.none(), windows) | st.builds(
    Limit, st.sampled_from(NAMES), st.none(), windows, per_host.map(tuple)
)
fates = st.sampled_from(["flow", "flow", "flow", "flow", "lost", "durable"])


class Limited(RuleBasedStateMachine):
    """Each rule is one thing that can happen; between them everything comes to rest."""

    @initialize(seed=numbers, declared=st.lists(limits, min_size=1, max_size=3))
    def begin(self, seed: int, declared: list[Limit]) -> None:
        self.m = Machine(seed=seed, hosts=2)
        for host in HOSTS:
            self.m.join(self.m.start_runner(host))
        self.m.pump()
        self.before: dict[str, set[tuple[int, int]]] = {}  #: limit → attempts that ran when it was changed
        self.added: set[int] = set()
        for limit in declared:
            self.declare(limit, "flow")

    def _holders(self, name: str) -> dict[tuple[int, int], tuple[str, LimitUse]]:
        found = {}
        for runner in self.m.runners.values():
            for busy in runner.busy.values():
                for use in busy.grant.spec.limits:
                    if use.name == name:
                        found[busy.grant.lease[:2]] = (runner.host, use)
        return found

    def _rest(self, fate: str) -> None:
        if fate == "durable":
            self.m.commit(perform=False)
        if fate != "flow":
            self._crash()
        self.m.pump()
        self._hold()

    def _crash(self) -> None:
        self.m.crash()
        for runner in self.m.runners.values():
            if not runner.dead:
                self.m.join(runner)

    def _hold(self) -> None:
        world = self.m.world
        assert not [error for error in self.m.refused if isinstance(error, Bug)]
        for limit in world.placement.limits:
            holders = self._holders(limit.name)
            for host in HOSTS if limit.hosts else [""]:
                here = {key: use for key, (where, use) in holders.items() if host in ("", where)}
                capacity = dict(limit.hosts).get(host, 0) if limit.hosts else limit.capacity
                over = capacity is not None and sum(use.units for use in here.values()) > capacity
                over |= len(here) > 1 and any(use.exclusive for use in here.values())
                assert not over or here.keys() <= self.before[limit.name], f"{limit}: {here}"
        disk = self.m.recovered()
        assert list(disk.placement.limits) == list(world.placement.limits)
        for name in NAMES:
            for host in ("", *HOSTS):
                assert disk.placement.limits.use(name, host) == world.placement.limits.use(name, host)
        assert queue_of(disk) == queue_of(world)

    @rule(limit=limits, fate=fates)
    def declare(self, limit: Limit, fate: str) -> None:
        # What is refused, or lost in a crash, changes nothing; those who hold it now may keep it either way.
        self.before[limit.name] = self.before.get(limit.name, set()) | self._holders(limit.name).keys()
        self.m.happened(events.LimitsDeclared(by=self.m.asker(), limits=[limit]))
        self._rest(fate)

    @rule(name=st.sampled_from(NAMES), fate=fates)
    def remove_limit(self, name: str, fate: str) -> None:
        self.m.happened(events.LimitsDeclared(by=self.m.asker(), withdrawn=[name]))
        self._rest(fate)

    @rule(its=specs, count=st.integers(1, 4), fate=fates)
    def add(self, its: Spec, count: int, fate: str) -> None:
        self.m.send_chunk([Entry("cmd", its)] * count, fresh=True)
        self.added.update(self.m.world.jobs)
        self._rest(fate)

    @precondition(lambda self: self.m.running())
    @rule(pick=numbers, code=st.sampled_from([0, 0, 1]))
    def end(self, pick: int, code: int) -> None:
        running = sorted(self.m.running())
        self.m.end(running[pick % len(running)], exit_code=code)
        self._hold()

    @rule(pick=numbers, verb=st.sampled_from(["kill", "hold", "release", "retry"]), fate=fates)
    def act(self, pick: int, verb: str, fate: str) -> None:
        jobs = sorted(self.added)
        if jobs:
            self.m.act(verb, jobs[pick % len(jobs)])
            self._rest(fate)

    @rule(pick=numbers, limits=use_lists, fate=fates)
    def modify(self, pick: int, limits: tuple[LimitUse, ...], fate: str) -> None:
        """A job that does not run gets other limits."""
        waiting = sorted(id for id in self.added if id not in self.m.running())
        if not waiting:
            return
        [(id, row)] = {each: self.m.load([each]).get(each) for each in [waiting[pick % len(waiting)]]}.items()
        job = self.m.world.jobs.get(id) or row
        if job is None:
            return
        new = msgspec.structs.replace(job.spec, limits=limits)
        number = self.m._spec_ids.setdefault(new, len(self.m._spec_ids) + 1)
        rows = [SpecRow(number, msgspec.json.encode(new).decode())]
        loaded = {id: row} if row is not None else {}
        self.m.happened(
            events.LibraryGrew(specs=rows, envs=[]),
            events.JobsModified(
                by=self.m.asker(), jobs=[id], loaded=loaded, specs={job.spec_id: (number, new)}, fields=["limits"]
            ),
        )
        self._rest(fate)

    @rule(hours=st.sampled_from([0.01, 1.0, 3.0, 25.0]))
    def time_passes(self, hours: float) -> None:
        self.m.wall += hours * HOUR
        self.m.happened(events.TimerFired())
        self.m.pump()
        self._hold()

    @rule()
    def a_runner_dies_and_is_settled(self) -> None:
        runner = next(each for each in self.m.runners.values() if not each.dead)
        self.m.die(runner)
        self.m.settle(runner)
        self.m.join(self.m.start_runner(runner.host))
        self.m.pump()
        self._hold()

    def teardown(self) -> None:
        """Limits opened and time passing: everything runs, and nothing stays in use."""
        if not hasattr(self, "m"):
            return
        world = self.m.world
        self.m.happened(events.LimitsDeclared(withdrawn=[limit.name for limit in world.placement.limits]))
        self.m.do("release", *[job.id for job in world.jobs.values() if job.state is State.HELD])
        self.m.run_out()
        assert self.m.unfinished() == []
        for name in NAMES:
            for host in ("", *HOSTS):
                assert world.placement.limits.use(name, host) == (0, False)


TestLimited = Limited.TestCase
TestLimited.settings = histories(half(60), steps=30)
