"""Drives the decisions about delegated pools without a manager: a model of an engine that may lie, and a disk.

A crash loses what was not committed, and what was committed and not carried out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from random import Random

from rota.core import events
from rota.core.effects import DismissRunner, Effect
from rota.core.engine import Engine
from rota.core.feature import Features
from rota.core.features import BUILT_IN
from rota.core.invariants import broken
from rota.core.pools.effects import MakeBlanks, SubmitRunners, SurveyPool, WithdrawRunners
from rota.core.pools.events import (
    BlanksMade,
    PoolSurveyed,
    RunnersSubmitted,
    SubmissionFailed,
    SurveyFailed,
    WithdrawalEnded,
)
from rota.core.pools.records import Blank, RunnerState, Seen, Wanted
from rota.core.pools.state import PoolRules, Pools, PoolState
from rota.core.recovery.recover import recover
from rota.core.restart import Restart
from rota.core.turn import Batch, Turn
from rota.plan.dispatch.planning import Planning
from rota.plan.need import Need
from rota.plan.size import Size
from rota.store.memory.store import MemoryStore

POOL = "far"
#: Without the counting of jobs: tests state the demand.
FEATURES = Features(each for each in BUILT_IN.all if each.name != "pool demand")
SMALL = Need(Size(cpus=100, mem=1 << 20))
LARGE = Need(Size(cpus=400, mem=1 << 30))


@dataclass
class Thing:
    """What the engine has under an id."""

    id: str
    name: str
    running: bool = False
    joined: bool = False  #: its runner is connected


class ModelEngine:
    """An engine that does what it is told, unless it is told to lie."""

    def __init__(self) -> None:
        self.things: dict[str, Thing] = {}
        self.forgotten: set[str] = set()  #: ids that surveys leave out
        self.late: list[str] = []  #: names that were asked for and will appear later
        self.submitted: list[list[str]] = []
        self.lie = ""  #: what the next submission does: refuse, fail, lose, late, claim, twice
        self.deaf = False  #: surveys fail
        self._ids = count(1)
        self.most = 0  #: things there were at once

    def make(self, name: str) -> str:
        thing = Thing(f"e{next(self._ids)}", name)
        self.things[thing.id] = thing
        self.most = max(self.most, len(self.things))
        return thing.id

    def survey(self) -> list[Seen]:
        return [
            Seen(each.name, each.id, RunnerState.RUNNING if each.running else RunnerState.PENDING)
            for each in self.things.values()
            if each.id not in self.forgotten
        ]


class PoolMachine:
    """A world with one delegated pool."""

    def __init__(self, *, max_runners: int = 5, seed: int = 0) -> None:
        self.rules = PoolRules(max_runners=max_runners, settle_s=30.0, join_s=600.0, retry_s=5.0)
        self.store, self.engine = MemoryStore(), ModelEngine()
        self.wall, self.mono = 1000.0, 10.0
        self.wanted: dict[Need, int] = {}
        self.runners: dict[str, str] = {}  #: runner that is connected → id of the thing
        self._names = count(1)
        self._random = Random(seed)
        self.boot()

    # ------------------------------------------------------------------ the manager

    def boot(self) -> None:
        """Start a manager from what is on disk."""
        snapshot = self.store.load()
        restart = Restart(snapshot=snapshot, wall=self.wall, mono=self.mono, generation=1, hosts={})
        self.world = recover(Planning(), restart, features=FEATURES)
        self.core = Engine(self.world, features=FEATURES)
        self.pools = self.world.use(Pools)
        self.pools.configure({POOL: self.rules})
        self.asked = set(self.pools.intents)
        self.queue: list[Effect] = []  #: committed, and not carried out yet
        self.want(self.wanted)

    @property
    def pool(self) -> PoolState:
        return self.pools.pools[POOL]

    def crash(self) -> None:
        """kill -9 of the manager, and its start; runners connect again."""
        self.boot()
        for runner, id in list(self.runners.items()):
            self.join(id, runner)

    def happened(self, *what: events.Event, commit: bool = True) -> None:
        batch = Batch()
        turn = Turn(wall=self.wall, mono=self.mono, random=self._random.random, batch=batch)
        self.core.step(list(what), turn)
        assert broken(self.world) == []
        if commit:
            self.store.commit(batch.changes)
            self.queue += batch.effects

    def want(self, wanted: dict[Need, int], *, commit: bool = True) -> None:
        self.wanted = wanted
        self.pools.want({POOL: {need: Wanted(number, 60.0) for need, number in wanted.items()}})
        self.happened(commit=commit)

    def perform(self, *, most: int = 1 << 30) -> bool:
        """Carry out what was decided. True: there was something."""
        done = False
        while self.queue and most:
            done, most = True, most - 1
            self._perform(self.queue.pop(0))
        return done

    def _perform(self, effect: Effect) -> None:
        match effect:
            case MakeBlanks(pool, need, number):
                blanks = [Blank(f"rota-x-{n}", f"hash-{n}") for n in [next(self._names) for _ in range(number)]]
                self.happened(BlanksMade(pool=pool, need=need, blanks=blanks))
            case SubmitRunners(_pool, need, _seconds, names):
                self.asked.update(names)
                self.happened(self._submit(need, names))
            case WithdrawRunners(pool, ids):
                for id in ids:
                    self.end(id)
                if ids:
                    self.happened(WithdrawalEnded(pool=pool))
            case SurveyPool():
                pass  # `survey` is called by the test
            case DismissRunner(runner):
                if runner in self.runners:
                    self.end(self.runners[runner])
            case _:
                pass

    def _submit(self, need: Need, names: list[str]) -> events.Event:
        engine, lie = self.engine, self.engine.lie
        engine.lie = ""
        stored = {row.name for row in self.store.load().intents}
        assert stored.issuperset(names), "asked for before it was on disk"
        engine.submitted.append(names)
        if lie in ("refuse", "fail", "lose", "late"):
            if lie == "lose":  # made, and the answer is lost
                for name in names:
                    engine.make(name)
            if lie == "late":
                engine.late += names
            return SubmissionFailed(
                pool=POOL, need=need, names=names, error=f"cannot: {lie}", refused=lie == "refuse"
            )
        if lie == "claim":
            return RunnersSubmitted(pool=POOL, ids={name: f"nothing-{name}" for name in names})
        if lie == "twice":
            for name in names:
                engine.make(name)
        return RunnersSubmitted(pool=POOL, ids={name: engine.make(name) for name in names})

    def survey(self) -> None:
        """The engine is asked what it has, after all that was asked before."""
        known = frozenset(self.asked & self.pool.intents.keys())
        if self.engine.deaf:
            self.happened(SurveyFailed(pool=POOL, error="deaf"))
        else:
            self.happened(PoolSurveyed(pool=POOL, seen=self.engine.survey(), known=known))

    def advance(self, seconds: float) -> None:
        self.wall += seconds
        self.mono += seconds
        for runner in self.runners:
            self.happened(
                events.RunnerReported(runner=runner, seq=0, started=[], ended=[], returned=[], closed=[])
            )
        self.happened(events.TimerFired())

    def settle(self, rounds: int = 12) -> None:
        """Let everything happen that follows, with an engine that answers."""
        for _ in range(rounds):
            self.perform()
            self.survey()
            self.perform()
            self.advance(11.0)

    # ------------------------------------------------------------------ the engine and its runners

    def start_things(self) -> None:
        """The engine starts what waits there, and the runners join."""
        for thing in list(self.engine.things.values()):
            if not thing.running:
                thing.running = True
                self.join(thing.id)

    def join(self, id: str, runner: str = "") -> bool:
        """A runner shows its ticket. False: it is refused, and ends."""
        thing = self.engine.things.get(id)
        if thing is None:
            self.runners.pop(runner, None)
            return False
        claim = events.TicketClaim(ticket=thing.name.replace("rota-x", "hash"), key=f"key of {id}")
        grant = self.pools.by_ticket(claim.ticket)
        if grant is None or grant.key not in ("", claim.key) or not (grant.valid or grant.key):
            self.runners.pop(runner, None)
            del self.engine.things[id]
            return False
        runner = runner or f"r-{id}"
        self.runners[runner] = id
        thing.joined = True
        self.happened(
            events.RunnerJoined(
                runner=runner, host=thing.name, boot_id="b", pid=1, start_time=1, held=[], seats=[], claim=claim
            )
        )
        return True

    def end(self, id: str, *, goodbye: bool = False) -> None:
        """Nothing of this thing is left."""
        thing = self.engine.things.pop(id, None)
        for runner in [runner for runner, its in self.runners.items() if its == id]:
            del self.runners[runner]
            assert thing is not None
            if goodbye:
                self.happened(
                    events.RunnerSettled(runner=runner, by_runner=runner, ended=[], whole=True, ticket=thing.name)
                )
            self.happened(events.RunnerParted(runner=runner))

    def names(self) -> set[str]:
        return {each.name for each in self.engine.things.values()}
