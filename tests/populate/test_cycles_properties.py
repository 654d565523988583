"""Cycles against a model of ledger, queue and workers.

Whatever happens in whatever order: no key is made twice, none is in two live batches, and none is stuck.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rota.populate.batch import Batch
from rota.populate.config.configuration import Bin, Configuration, ManagerSettings, Table
from rota.populate.loop.cycles import Manager
from rota.populate.source.base import Key, Look, TableFailed, Wanted
from rota.populate.transport.base import (
    ENDED,
    QUEUED,
    RUNNING,
    UNKNOWN,
    QueueStatus,
    Sign,
    TransportFailed,
    WorkerStatus,
)

_KEYS = 40


class ModelLedger:
    """A table of which the key `n` is in the bin `n % bins`."""

    name = "lab.Trace"

    def __init__(self, bins: int) -> None:
        self.bins = bins
        self.now = 0.0
        self.done: list[int] = []
        self.errors: set[int] = set()
        self.held: dict[int, tuple[str, float, bool]] = {}  #: token, end of the lease, begun
        self.fails = False

    def open(self) -> list[str]:
        return []

    def _queued(self, number: int) -> bool:
        _, until, begun = self.held.get(number, ("", 0.0, False))
        return begun or until > self.now

    def look(self, wanted: Sequence[Wanted]) -> Look:
        if self.fails:
            raise TableFailed("the database is away", kind="database")
        missing = [number for number in range(_KEYS) if number not in self.done]
        free = [number for number in missing if number not in self.errors and not self._queued(number)]
        batches: dict[str, int] = {}
        for number, (token, _, _) in self.held.items():
            if self._queued(number):
                batches[token] = batches.get(token, 0) + 1
        return Look(
            done=len(self.done),
            todo=len(missing),
            queued=sum(self._queued(number) and not self.held[number][2] for number in missing),
            running=sum(self.held[number][2] for number in missing if number in self.held),
            errors=len(self.errors),
            batches=batches,
            free=[
                [{"n": number} for number in free if number % self.bins == at][: want.quota]
                for at, want in enumerate(wanted)
            ],
        )

    def claim(self, batches: Mapping[str, Sequence[Key]], lease_s: float) -> dict[str, list[Key]]:
        got: dict[str, list[Key]] = {}
        for token, keys in batches.items():
            for key in keys:
                number = int(str(key["n"]))
                assert not self._queued(number), f"{number} is in two live batches"
                self.held[number] = token, self.now + lease_s, False
                got.setdefault(token, []).append(key)
        return got

    def release(self, token: str, *, on_lost: str, why: str) -> tuple[int, int]:
        mine = [number for number, (held, _, _) in self.held.items() if held == token]
        failed = [number for number in mine if self.held[number][2]]
        for number in mine:
            del self.held[number]
        self.errors.update(number for number in failed if number not in self.done)
        return len(mine) - len(failed), len(failed)

    def migrate(self) -> list[str]:
        return []

    def lock(self, name: str) -> bool:
        return True

    def close(self) -> None: ...


class ModelTransport:
    def __init__(self) -> None:
        self.queue: list[Batch] = []
        self.known: dict[str, Sign] = {}
        self.fails = False

    def send(self, batches: Sequence[Batch]) -> None:
        self._reached()
        self.queue += batches
        self.known |= dict.fromkeys((batch.token for batch in batches), QUEUED)

    def signs(self, tokens: Collection[str]) -> dict[str, Sign]:
        self._reached()
        return {token: self.known.get(token, UNKNOWN) for token in tokens}

    def queues(self, names: Collection[str]) -> Mapping[str, QueueStatus]:
        self._reached()
        return {}

    def workers(self, now_s: float) -> list[WorkerStatus]:
        return []

    def warnings(self) -> list[str]:
        return []

    def close(self) -> None: ...

    def _reached(self) -> None:
        if self.fails:
            raise TransportFailed("it is away")


class _Sources:
    def __init__(self, table: Table, source: Any) -> None:
        self.pair = table, source

    def __iter__(self) -> Iterator[tuple[Table, Any]]:
        yield self.pair

    def close(self) -> None: ...


class _File:
    error = None
    directory = "/"

    def __init__(self, configuration: Configuration) -> None:
        self.current = configuration

    def reload(self) -> bool:
        return False


class Cycles(RuleBasedStateMachine):
    @initialize(serial=st.integers(1, 5), parallel=st.integers(1, 4), bins=st.integers(1, 3))
    def begin(self, serial: int, parallel: int, bins: int) -> None:
        conditions = tuple(Bin(where=f"n % {bins} = {at}") for at in range(bins - 1))
        self.table = Table(
            name="lab.Trace",
            ttl_s=10,
            job_timeout_s=10,
            serial=serial,
            parallel=parallel,
            bins=(*conditions, Bin()),
        )
        self.ledger, self.transport = ModelLedger(bins), ModelTransport()
        self.tokens = (f"t{number}" for number in itertools.count())
        self.running: list[tuple[Batch, list[int]]] = []
        self.restart()

    @rule()
    def restart(self) -> None:
        """Another manager, who remembers nothing."""
        settings = Configuration(manager=ManagerSettings(target_cycle_s=0), tables=(self.table,))
        self.manager = Manager(
            _File(settings),  # type: ignore[arg-type]
            open_transport=lambda _: self.transport,
            open_sources=lambda *_: _Sources(self.table, self.ledger),
            new_token=lambda: next(self.tokens),
        )

    @rule()
    def cycle(self) -> None:
        before = len(self.transport.queue)
        self.manager.cycle()
        sent = self.transport.queue[before:]
        for at, bin_ in enumerate(self.table.bins):
            mine = [batch for batch in sent if batch.bin == bin_]
            assert len(mine) <= self.table.parallel
            assert all(len(batch.keys) <= self.table.serial for batch in mine)
            assert all(int(str(key["n"])) % self.ledger.bins == at for batch in mine for key in batch.keys)

    @rule()
    def take(self) -> None:
        """A worker takes a batch, extends its lease, or drops it because that has ended."""
        if not self.transport.queue:
            return
        batch = self.transport.queue.pop(0)
        mine = [
            number
            for number, (token, until, _) in self.ledger.held.items()
            if token == batch.token and until > self.ledger.now
        ]
        for number in mine:
            self.ledger.held[number] = batch.token, self.ledger.now + self.table.job_timeout_s + 60, False
        self.transport.known[batch.token] = RUNNING if mine else ENDED
        if mine:
            self.running.append((batch, mine))

    @rule(at=st.integers(0, 5), fails=st.booleans())
    def compute(self, at: int, fails: bool) -> None:
        """The next key of a running batch, fenced by its token as a ledger does it."""
        if not self.running:
            return
        batch, left = self.running[at % len(self.running)]
        if not left:
            self.running.remove((batch, left))
            self.transport.known[batch.token] = ENDED
            return
        number = left.pop(0)
        token, until, _ = self.ledger.held.get(number, ("", 0.0, False))
        if token != batch.token or until <= self.ledger.now:
            return
        del self.ledger.held[number]
        if fails:
            self.ledger.errors.add(number)
        else:
            self.ledger.done.append(number)

    @rule(at=st.integers(0, 5), seen=st.booleans())
    def kill(self, at: int, seen: bool) -> None:
        """A worker dies in the middle of a key, and the transport may know."""
        if not self.running:
            return
        batch, left = self.running.pop(at % len(self.running))
        if left and self.ledger.held.get(left[0], ("",))[0] == batch.token:
            self.ledger.held[left[0]] = batch.token, self.ledger.held[left[0]][1], True
        if seen:
            self.transport.known[batch.token] = ENDED
        else:
            self.transport.known.pop(batch.token, None)

    @rule()
    def flush(self) -> None:
        self.transport.queue.clear()
        self.transport.known = {token: sign for token, sign in self.transport.known.items() if sign == RUNNING}

    @rule(seconds=st.sampled_from([1, 11, 100]))
    def wait(self, seconds: int) -> None:
        self.ledger.now += seconds

    @rule(database=st.booleans(), transport=st.booleans())
    def outage(self, database: bool, transport: bool) -> None:
        self.ledger.fails, self.transport.fails = database, transport
        self.manager.cycle()
        self.ledger.fails = self.transport.fails = False

    @invariant()
    def every_key_was_made_at_most_once(self) -> None:
        if hasattr(self, "ledger"):
            assert len(self.ledger.done) == len(set(self.ledger.done))

    def teardown(self) -> None:
        """When faults are over, every key is made or an error, and nothing is held."""
        if not hasattr(self, "ledger"):
            return
        for _ in range(4 * _KEYS):
            self.cycle()
            while self.transport.queue or self.running:
                self.take()
                self.compute(0, False)
            if self.manager.is_empty:
                break
        self.manager.cycle()
        assert self.manager.is_empty
        assert sorted({*self.ledger.done, *self.ledger.errors}) == list(range(_KEYS))
        assert not any(map(self.ledger._queued, range(_KEYS)))


TestCycles = pytest.mark.hypothesis(Cycles.TestCase)
