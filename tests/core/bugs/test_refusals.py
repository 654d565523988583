"""A refused event leaves the world as it was, and nothing in the open batch but the refusal: random histories."""

from __future__ import annotations

from random import Random
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import msgspec
import pytest

from rota.core import events
from rota.core.feature import Features
from rota.core.features import BUILT_IN
from rota.core.jobs.job import Condition
from rota.core.turn import Turn
from rota.core.world import World
from rota.errors import BadInput, Bug, RotaError
from rota.plan.policy.limits import Limit
from rota.plan.size import Size
from tests.core.bugs.test_random_runs import Run
from tests.core.machine import Entry, Machine, spec
from tests.dose import FACTOR

_RUNS = 8 * FACTOR
_STEPS = 40
#: Caches, and what grows ahead of need: the same whatever they hold.
_CACHES = frozenset({"host_rules", "cached_sizes", "sizes", "outcomes", "_cache", "_caches"})
_PLAIN = (str, bytes, int, float, bool, type(None), type, FunctionType, MethodType, BuiltinFunctionType)


#: A chunk that is refused takes its submission along, with what was staged for it.
_UPLOADS = frozenset({"uploads", "next_job", "successors", "evicting", "leaving", "changes"})


def portrait(thing: Any, seen: set[int], left_out: frozenset[str] = _CACHES) -> Any:
    """Everything that can be reached from it, as plain values that can be compared."""
    if isinstance(thing, _PLAIN) or thing == ():
        return thing if isinstance(thing, _PLAIN[:6]) else ()
    if id(thing) in seen:
        return type(thing).__name__
    seen.add(id(thing))
    if isinstance(thing, dict):
        # An empty entry of a mapping with defaults is no entry.
        return {repr(key): portrait(value, seen, left_out) for key, value in thing.items() if value or value == 0}
    if isinstance(thing, set | frozenset):
        return sorted(map(repr, thing))
    if isinstance(thing, list | tuple):
        return [portrait(each, seen, left_out) for each in thing]
    if isinstance(thing, bytearray):
        return bytes(thing)
    names = [*getattr(thing, "__struct_fields__", ()), *getattr(thing, "__dict__", ())]
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    return type(thing).__name__, {
        name: portrait(getattr(thing, name), seen, left_out)
        for name in dict.fromkeys(names)
        if name not in left_out and not name.startswith("__") and hasattr(thing, name)
    }


class Watched:
    """A machine whose handlers are compared before and after each refusal."""

    def __init__(self, machine: type[Machine], **options: Any) -> None:
        self.refusals: list[tuple[str, str]] = []
        self.changed: list[str] = []
        features = Features(BUILT_IN.all)
        features.handlers = {kind: self._watched(kind.__name__, each) for kind, each in BUILT_IN.handlers.items()}
        self.machine = machine(features=features, **options)

    def _watched(self, kind: str, handler: Any) -> Any:
        def decide(world: World, turn: Turn, event: events.Event) -> None:
            before = _whole(kind, world, turn)
            try:
                handler(world, turn, event)
            except RotaError as error:
                if isinstance(error, Bug):
                    raise
                self.refusals.append((kind, str(error)))
                after = _whole(kind, world, turn)
                if before != after:
                    self.changed.append(f"{kind} refused ({error}) changed {_difference(before, after)}")
                raise

        return decide


def _whole(kind: str, world: World, turn: Turn) -> Any:
    left_out = _CACHES | (_UPLOADS if kind == "ChunkArrived" else frozenset())
    return portrait([world, turn.batch], set(), left_out)


def _difference(before: Any, after: Any, path: str = "") -> str:
    """Where two portraits differ first."""
    if type(before) is not type(after):
        return f"{path}: {before!r:.80} → {after!r:.80}"
    if isinstance(before, dict):
        for key in before.keys() | after.keys():
            if before.get(key) != after.get(key):
                return _difference(before.get(key), after.get(key), f"{path}.{key}")
    if isinstance(before, list | tuple) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            if one != other:
                return _difference(one, other, f"{path}[{number}]")
    return f"{path}: {before!r:.80} → {after!r:.80}"


class Mistaken(Run):
    """People who make mistakes, in the midst of everything else."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.watched = Watched(Machine, hosts=2, seed=seed)
        self.m = self.watched.machine  # type: ignore[assignment]
        for host in self.m.capacity:
            self.m.join(self.m.start_runner(host))
        self.m.pump()

    def step(self) -> None:
        deed = self.random.choice(_DEEDS)
        deed(self)
        if self.random.random() < 0.3:
            self.m.pump()

    # -- deeds

    def add(self) -> None:
        random, m = self.random, self.m
        entries = []
        for _ in range(random.randint(1, 4)):
            parent = random.choice([*range(1, m.world.next_job + 2), "g", "none"])
            after = ((parent, random.choice(list(Condition)), False),) if random.random() < 0.5 else ()
            size = random.choice([Size(), Size(cpus=50), Size(cpus=100_000)])
            groups = random.choice([(), ("g",), ("g", "h")])
            entries.append(Entry(random.choice("abcdef"), spec(size=size, dep_groups=groups), after))
        last = random.random() < 0.7
        m.send_chunk(entries, submission=random.choice(["u", "v", ""]), last=last, rerun=random.random() < 0.3)

    def misplace(self) -> None:
        entries = [Entry("x", spec(), ((7, Condition.OK, True),)) for _ in range(2)]
        self.m.send_chunk(entries, submission="u", first=self.random.choice([0, 1, 5]), last=False)

    def act(self) -> None:
        random, m = self.random, self.m
        verb = random.choice(["kill", "hold", "release", "retry", "remove", "remove", "suspend", "resume"])
        m.act(verb, *{random.randrange(1, m.world.next_job + 1) for _ in range(2)})

    def walltime(self) -> None:
        self.m.act("walltime", self.random.randrange(1, self.m.world.next_job + 1), seconds=-5.0)

    def ask(self) -> None:
        random, by = self.random, self.m.asker()
        wrong = ("queue", "no such thing", None)
        change = ("queue", random.choice("ab"), {"priority": random.randint(1, 5)})
        bad = random.choice([wrong, ("queue", "c", {"nonsense": 1}), ("property", "host", {}), ("rule", "r", {})])
        self.m.happened(
            random.choice(
                [
                    events.SiteChanged(by=by, changes=[change, bad]),
                    events.SiteChanged(by=by, changes=[change]),
                    events.LimitsDeclared(by=by, limits=[Limit("net", 2), Limit("x" * 300, 1)]),
                    events.LearningForgotten(by=by, names=["unknown"]),
                    events.JobsSignalled(by=by, jobs=[1, 2], signal="NONE"),
                ]
            )
        )

    def modify(self) -> None:
        random, m = self.random, self.m
        waiting = [job for job in m.world.jobs.values() if job.lease is None]
        if not waiting:
            return
        jobs = random.sample(waiting, min(2, len(waiting)))
        specs = {}
        for job in jobs:
            new = msgspec.structs.replace(job.spec, size=Size(cpus=random.choice([100, 100_000])))
            specs[job.spec_id] = (m._spec_ids.setdefault(new, len(m._spec_ids) + 1), new)
        m.happened(
            events.JobsModified(
                by=m.asker(), jobs=[job.id for job in jobs], loaded={}, specs=specs, fields=["cpus"]
            )
        )


_DEEDS = (
    *(Mistaken.add, Mistaken.add, Mistaken.misplace, Mistaken.act, Mistaken.act, Mistaken.ask, Mistaken.ask),
    *(Mistaken.walltime, Mistaken.modify, Run.end, Run.end, Run.flow, Run.time),
)


@pytest.mark.hypothesis
def test_a_refusal_changes_nothing() -> None:
    refused: set[str] = set()
    for seed in range(_RUNS):
        run = Mistaken(seed)
        for _ in range(_STEPS):
            run.step()
        assert run.watched.changed == [], seed
        refused |= {kind for kind, _why in run.watched.refusals}
    assert {"ChunkArrived", "SiteChanged", "LearningForgotten", "WalltimeAsked"} <= refused


def test_a_change_before_a_refusal_would_be_seen() -> None:
    def half(world: World, _turn: Turn, _event: events.Event) -> None:
        world.site["queue"]["half"] = {"priority": 1}
        raise BadInput("done by half")

    watched = Watched(Machine)
    m = watched.machine
    m.features.handlers[events.SiteChanged] = watched._watched("SiteChanged", half)
    m.happened(events.SiteChanged(by=m.asker(), changes=[]))
    assert "site.'queue'" in watched.changed[0]
