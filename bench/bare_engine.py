"""The engine without a manager around it: a memory store, one host, and a runner that ends jobs when told.

Times are processor time of this process, so that a busy machine does not change them.
"""

from __future__ import annotations

import gc
import time
from collections import defaultdict, deque
from random import Random

import msgspec

from rota.core import events
from rota.core.attempts.leases import Finished, Started
from rota.core.effects import SendWork
from rota.core.engine import Engine
from rota.core.jobs.job import Condition, Spec
from rota.core.jobs.outcome import Outcome
from rota.core.learning.estimate import largest_of
from rota.core.rows import SpecRow
from rota.core.submit.identity import key_maker
from rota.core.turn import Batch, Turn
from rota.core.world import World, evict_finished
from rota.plan.dispatch.planning import Planning
from rota.plan.size import Capacity, Size
from rota.store.memory.store import MemoryStore

HOST, RUNNER = "bench", "runner"
_CHUNK = 5000
_ASKER = events.Asker(connection=1, n=1, user="bench")
_DONE = Outcome(exit_code=0, cpu_s=0.01, peak_mem=50 << 20)


def spec(**fields: object) -> Spec:
    return msgspec.convert({"user": "bench", "cwd": "/", "env": 1, **fields}, Spec)


class BareEngine:
    """Decides, commits and performs one step at a time; every step's seconds are kept."""

    def __init__(self, *, cores: int = 4) -> None:
        self.store = MemoryStore()
        self.world = World(Planning())
        self.engine = Engine(self.world)
        self.steps: list[float] = []
        self._random = Random(0).random
        self._now = 1000.0
        self._submissions = 0
        self._spec_ids: dict[Spec, int] = {}
        self._leases: defaultdict[Size, deque[tuple[int, int, int]]] = defaultdict(deque)
        self._order: deque[Size] = deque()
        self._free: defaultdict[Size, list[int]] = defaultdict(list)
        capacity = Capacity(cpus=cores * 100, mem=1 << 40, disk=1 << 40)
        self.world.capacity[HOST] = capacity
        self.world.placement.host_known(HOST, capacity)
        self.world.largest = largest_of([capacity])

    def join(self) -> None:
        """The runner comes: from now on jobs are leased."""
        self.step(
            events.RunnerJoined(
                runner=RUNNER, host=HOST, boot_id="b", pid=1, start_time=1, held=[], seats=[], made_for=None
            )
        )

    def step(self, *happened: events.Event) -> float:
        """Decide about these; the seconds that took. What was decided is then stored and done."""
        self._now += 0.001
        batch = Batch()
        turn = Turn(wall=self._now, mono=self._now, random=self._random, batch=batch)
        begun = time.thread_time()
        refused = self.engine.step(list(happened), turn)
        took = time.thread_time() - begun
        if refused:
            raise SystemExit(f"the engine refused: {refused[0]}")
        self.store.commit(batch.changes)
        for effect in batch.effects:
            if isinstance(effect, SendWork):
                self._take(effect)
        evict_finished(self.world, batch.leaving)
        self.steps.append(took)
        return took

    def _take(self, work: SendWork) -> None:
        for seat in work.seats:
            self._free[seat.size].append(seat.seat)
        for job, lease in zip(work.jobs, work.leases, strict=True):
            self._leases[job.size].append(lease)
            self._order.append(job.size)

    def end_one(self) -> float:
        """The job that was leased first runs and ends; the seconds of the step, with the next lease."""
        return self.end(1)

    def end(self, number: int) -> float:
        """So many jobs run and end, in one report."""
        started, ended, closed = [], [], []
        for _ in range(min(number, self.held)):
            size = self._order.popleft()
            job, attempt, token = self._leases[size].popleft()
            seat = self._free[size][-1]
            started.append(Started(job, attempt, token, seat, self._now, 1))
            outcome = msgspec.structs.replace(_DONE, ended_at=self._now + 0.01)
            ended.append(Finished(job, attempt, token, seat, outcome))
            if len(self._free[size]) > len(self._leases[size]):
                closed.append(self._free[size].pop())
        return self.step(
            events.RunnerReported(runner=RUNNER, seq=1, started=started, ended=ended, returned=[], closed=closed)
        )

    @property
    def held(self) -> int:
        """Leases of the runner that have not ended."""
        return len(self._order)

    def add(
        self, cmds: list[str], specs: list[Spec], spec_of: list[int] | None = None,
        after: list[tuple[int, int]] | None = None,
    ) -> float:  # fmt: skip
        """Submit these, chunk by chunk; `after`: (entry, entry that it waits for). Seconds of the last chunk's
        step, which makes them visible."""
        self._submissions += 1
        name, key, took = f"s{self._submissions}", key_maker(user="bench", cwd="/"), 0.0
        waits: defaultdict[int, list[events.EntryAfter]] = defaultdict(list)
        for entry, parent in after or ():
            waits[entry // _CHUNK].append(events.EntryAfter(entry, parent, Condition.OK, True))
        new = [SpecRow(self._spec_id(each), msgspec.json.encode(each).decode()) for each in specs]
        self.step(events.LibraryGrew(specs=new, envs=[]))
        for first in range(0, len(cmds), _CHUNK):
            some = cmds[first : first + _CHUNK]
            took = self.step(
                events.ChunkArrived(
                    by=_ASKER, submission=name, first=first, cmds=list(some), keys=[key(cmd, 0) for cmd in some],
                    specs=specs, spec_ids=[self._spec_id(each) for each in specs],
                    spec_of=spec_of[first : first + _CHUNK] if spec_of else None, lines=None,
                    after=waits[first // _CHUNK], known={}, loaded={}, last=first + _CHUNK >= len(cmds),
                )
            )  # fmt: skip
        gc.collect()
        return took

    def _spec_id(self, each: Spec) -> int:
        return self._spec_ids.setdefault(each, len(self._spec_ids) + 1)
