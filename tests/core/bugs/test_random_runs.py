"""Random runs with bugs at random lines: nothing half done is ever committed, and everything comes to its end.

Some in `make test`; a thousand in `make bugs`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from rota.core import events
from rota.core.jobs.job import Condition
from rota.core.jobs.outcome import Outcome
from rota.core.states import TERMINAL, WAITING
from rota.core.world import NO_JOB
from rota.errors import Bug, NotDone
from rota.plan.policy.limits import Limit
from rota.plan.size import Size
from tests.core.bugs.faulty import FaultyMachine, Lines
from tests.core.machine import GIB, Entry, spec
from tests.dose import FACTOR

_RUNS = 20 * FACTOR
_STEPS = 30
_VERBS = ("kill", "hold", "release", "retry", "remove", "suspend", "resume")


class Run:
    """One history of people, runners and time."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.m = FaultyMachine(hosts=self.random.choice([1, 2]), seed=seed)
        for host in self.m.capacity:
            self.m.join(self.m.start_runner(host))
        self.m.pump()

    def step(self) -> None:
        """Something happens, and perhaps it meets a bug."""
        m, random = self.m, self.random
        deed = random.choice(_DEEDS)
        if random.random() < 0.4:
            m.lines = Lines(int(10 ** random.uniform(0, 3.7)))
        try:
            deed(self)
        except NotDone:
            pass
        m.lines = None
        if m.world.bugs.total and random.random() < 0.5:
            m.happened(events.ManagerResumed())

    # -- deeds

    def add(self) -> None:
        random, m = self.random, self.m
        known = [id for id in range(1, m.world.next_job) if m.world.outcome(id) != NO_JOB]
        parent = random.choice(known) if known and random.random() < 0.5 else None
        after = () if parent is None else ((parent, random.choice(list(Condition)), False),)
        size = random.choice([Size(), Size(cpus=50, mem=GIB), Size(cpus=250)])
        its = spec(size=size, retries=random.choice([0, 1]), dep_groups=random.choice([(), ("g",)]))
        entries = [Entry(random.choice("abcdefgh"), its, after) for _ in range(random.randint(1, 4))]
        fresh = random.random() < 0.5
        m.ask(lambda: m.send_chunk(entries, fresh=fresh))

    def act(self) -> None:
        m, verb = self.m, self.random.choice(_VERBS)
        jobs = [self.random.randrange(1, m.world.next_job + 1) for _ in range(2)]
        m.ask(lambda: m.act(verb, *dict.fromkeys(jobs)))

    def declare(self) -> None:
        m, limit = self.m, Limit("net", self.random.randint(1, 5))

        def ask() -> int:
            by = m.asker()
            m.happened(events.LimitsDeclared(by=by, limits=[limit]))
            return by.n

        m.ask(ask)

    def end(self) -> None:
        running = self.m.running()
        if not running:
            return
        job = self.random.choice(sorted(running))
        model, seat = running[job]
        if not model.dead:
            code = self.random.choice([0, 0, 3])
            times = {"started_at": model.busy[seat].started_at, "ended_at": self.m.wall}
            model.end(seat, Outcome(exit_code=code, **times), self.m.wall)
            if model.connected:
                model.report()
                self.m.hear(model)

    def flow(self) -> None:
        self.m.pump()

    def time(self) -> None:
        self.m.advance(self.random.choice([1.0, 31.0, 61.0, 200.0]))

    def reconnect(self) -> None:
        model = self.random.choice(list(self.m.runners.values()))
        if model.connected:
            self.m.disconnect(model)
        if not model.dead:
            self.m.join(model)
            model.repeat()

    def die(self) -> None:
        model = self.random.choice(list(self.m.runners.values()))
        if not model.dead:
            self.m.die(model)
        elif not model.settled:
            self.m.settle(model)
            self.m.join(self.m.start_runner(model.host))

    def pause(self) -> None:
        self.m.happened(self.random.choice([events.ManagerPaused, events.ManagerResumed])())


_DEEDS: tuple[Callable[[Run], Any], ...] = (
    *(Run.add, Run.add, Run.act, Run.act, Run.end, Run.end, Run.end, Run.flow, Run.flow),
    *(Run.time, Run.time, Run.reconnect, Run.die, Run.pause, Run.declare),
)


@pytest.mark.hypothesis
@pytest.mark.parametrize("block", range(10))
def test_everything_comes_to_its_end_whatever_bugs_are_met(block: int) -> None:
    met = 0
    for seed in range(block * _RUNS // 10, (block + 1) * _RUNS // 10):
        run = Run(seed)
        for _ in range(_STEPS):
            run.step()
        m = run.m
        met += len(m.met)
        m.happened(events.ManagerResumed())
        m.heal()
        m.run_out()
        assert m.unanswered() == [], f"seed {seed}: requests without an answer"
        bugs = [each for each in m.replies.values() if isinstance(each, Bug) and each.code != "internal"]
        assert bugs == [], seed
        for id in m.acknowledged - m.removed:
            assert m.world.outcome(id) in TERMINAL or m.state(id) in WAITING, f"seed {seed}: job {id}"
        assert m.running() == {}, seed
        m.crash()
    assert met
