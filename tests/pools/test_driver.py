"""The driver of delegated pools by itself, with programs of a site: whatever order things happen in."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rota.core.events import Event
from rota.core.features import BUILT_IN
from rota.core.pools.effects import MakeBlanks, SubmitRunners, SurveyPool, WithdrawRunners
from rota.core.pools.events import BlanksMade, RunnersSubmitted, SubmissionFailed
from rota.core.pools.records import Intent
from rota.core.pools.state import PoolRules, Pools
from rota.core.recovery.recover import recover
from rota.core.restart import Restart
from rota.errors import BadInput
from rota.manager.pools.driver import PoolDriver
from rota.plan.dispatch.planning import Planning
from rota.plan.need import Need
from rota.plan.size import Size
from rota.pools.base import RunnerAsk
from rota.pools.command import CommandEngine
from rota.store.memory.store import MemoryStore
from tests.pools.test_command_engine import Programs

Write = Callable[[str, RunnerAsk, str], None]
NEED = Need(Size(cpus=100, mem=1 << 20))


class Driven:
    """A driver of the pool `far`, and what it tells the engine."""

    def __init__(self, top: Path, write: Write | None = None) -> None:
        self.programs = Programs(top)
        self.tickets = top / "tickets"
        self.tickets.mkdir()
        restart = Restart(snapshot=MemoryStore().load(), wall=1.0, mono=1.0, generation=1, hosts={})
        world = recover(Planning(), restart, features=BUILT_IN)
        self.pools = world.use(Pools)
        self.pools.configure({"far": PoolRules(max_runners=9)})
        self.events: list[Event] = []
        ready = threading.Event()
        ready.set()
        services: Any = SimpleNamespace(
            world=world,
            authority=SimpleNamespace(ready=ready, wanted=threading.Event()),
            turns=SimpleNamespace(happened=self.events.append),
        )
        engines = {"far": CommandEngine(self.programs.setup)}
        self.driver = PoolDriver(
            services, engines, prefix="rota-1", directory=self.tickets, write=write or self.write
        )
        self.perform = self.driver.performers()
        self.driver.start()

    def write(self, _pool: str, asked: RunnerAsk, secret: str) -> None:
        asked.ticket.write_text(secret)

    def blanks(self, number: int) -> SubmitRunners:
        """Have names made and write them down, as the engine does; what it asks for then."""
        self.perform[MakeBlanks](MakeBlanks("far", NEED, number))
        (made,) = self.take(BlanksMade)
        for each in made.blanks:
            intent = Intent(each.name, pool="far", need=NEED, seconds=9.0, ticket=each.ticket, asked_at=1.0)
            self.pools.add(intent)
        return SubmitRunners("far", NEED, 9.0, [each.name for each in made.blanks])

    def submit(self, effect: SubmitRunners) -> None:
        self.perform[SubmitRunners](effect)

    def take(self, kind: type[Event]) -> list[Any]:
        """What it reported of this kind."""
        found = [each for each in self.events if isinstance(each, kind)]
        self.events[:] = [each for each in self.events if not isinstance(each, kind)]
        return found

    async def until(self, kind: type[Event]) -> list[Any]:
        while not (found := self.take(kind)):
            await asyncio.sleep(0.01)
        return found


def run(top: Path, test: Callable[[Driven], Awaitable[None]], write: Write | None = None) -> None:
    async def main() -> None:
        driven = Driven(top, write)
        try:
            await asyncio.wait_for(test(driven), 60)
        finally:
            driven.driver.close()

    asyncio.run(main())


def test_more_names_may_be_made_before_the_first_ones_are_asked_for(tmp_path: Path) -> None:
    async def test(d: Driven) -> None:
        first = d.blanks(2)
        second = d.blanks(1)
        d.submit(first)
        d.submit(second)
        asked: set[str] = set()
        while len(asked) < 3:
            for each in await d.until(RunnersSubmitted):
                asked |= each.ids.keys()
        assert asked == {*first.names, *second.names}

    run(tmp_path, test)


def test_the_ticket_of_a_runner_that_is_withdrawn_before_the_engine_is_asked_does_not_stay(tmp_path: Path) -> None:
    async def test(d: Driven) -> None:
        d.programs.write("stop", f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo '{{}}'")
        d.perform[WithdrawRunners](WithdrawRunners("far", ["e1"], ["other"]))  # the engine is busy
        effect = d.blanks(1)
        d.submit(effect)
        (name,) = effect.names
        d.pools.intents[name].withdrawn = True
        d.driver.tick(1e6)
        (tmp_path / "go").touch()
        await d.until(RunnersSubmitted)
        d.driver.tick(1e6 + 1)
        assert os.listdir(d.tickets) == []

    run(tmp_path, test)


def test_a_ticket_that_cannot_be_written_does_not_end_the_thread(tmp_path: Path) -> None:
    def write(_pool: str, _asked: RunnerAsk, _secret: str) -> None:
        raise BadInput("'' is not an address", hint="write HOST:PORT")

    async def test(d: Driven) -> None:
        for _ in range(2):
            d.submit(d.blanks(1))
            (failed,) = await d.until(SubmissionFailed)
            assert failed.refused
            assert "not an address" in failed.error

    run(tmp_path, test, write)


def test_an_engine_that_withdraws_nothing_is_asked_less_and_less(tmp_path: Path) -> None:
    async def test(d: Driven) -> None:
        d.programs.write("list", f"echo >> {tmp_path}/listed; echo '{{\"runners\": []}}'")
        for second in range(100):
            d.perform[SurveyPool](SurveyPool("far", again=True))  # what is withdrawn is still there
            d.driver.tick(1e6 + second)
            while d.driver._surveying:
                await asyncio.sleep(0.005)
        assert len((tmp_path / "listed").read_text().splitlines()) < 50

    run(tmp_path, test)
