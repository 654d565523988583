"""Drives delegated pools: makes names and tickets, has engines start runners, and surveys the engines.

It decides nothing: `core.pools` does. Intents are on disk before an engine is asked for them, so what exists is
found by name after a crash at any moment.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Final

from rota.core.effects import Effect
from rota.core.pools.demand import Demand
from rota.core.pools.effects import MakeBlanks, SubmitRunners, SurveyPool, WithdrawRunners
from rota.core.pools.events import BlanksMade
from rota.core.pools.records import Blank
from rota.core.pools.state import PoolRules, Pools
from rota.manager.feature import FeatureService, ManagerFeature, Perform, Services
from rota.manager.pools.engine_thread import EngineThread
from rota.pool_settings import PoolSettings, check_address
from rota.pools.base import Engine, EngineSetup, Group, RunnerAsk
from rota.wire import private_files, ticket_file
from rota.wire.views import AttentionView

log = logging.getLogger("rota.manager")

#: Seconds between surveys: while the engine should have runners, and otherwise, to find strays.
SURVEY_S: Final = 10.0
IDLE_SURVEY_S: Final = 60.0
#: The shortest time between two surveys, and the longest one while a survey is expected to show a change.
LEAST_SURVEY_S: Final = 1.0
MOST_SOON_S: Final = 15.0
#: When the manager stops, it waits this long for a call in progress.
CLOSE_S: Final = 5.0
#: Names that are still unused by then are forgotten: too many were made.
UNASKED_S: Final = 3600.0

#: Writes the ticket of a runner of this pool, with this secret. Called off the loop.
WriteTicket = Callable[[str, RunnerAsk, str], None]


class PoolDriver(FeatureService):
    """The engines of all delegated pools of one manager."""

    def __init__(
        self,
        services: Services,
        engines: Mapping[str, Engine],
        *,
        prefix: str,
        directory: Path,
        write: WriteTicket,
    ) -> None:
        self._pools = services.world.use(Pools)
        self._authority = services.authority
        self._happened = services.turns.happened
        self._prefix = prefix
        self._directory = directory
        self._write = write
        self._threads = {
            name: EngineThread(name, engine, happened=self._happened) for name, engine in engines.items()
        }
        #: name → secret of its ticket and when it was made, until its runner is asked for
        self._secrets: dict[str, tuple[str, float]] = {}
        #: Runners that were asked for, by this manager or an earlier one. A survey can only miss these.
        self._asked: set[str] = set(self._pools.intents)
        self._files: set[str] = set()  #: names of tickets' files
        self._writing: set[str] = set()  #: files that are being written, or will be
        self._surveying: set[str] = set()
        self._soon: set[str] = set(engines)  #: pools to be surveyed before the usual time
        self._in_vain: dict[str, int] = {}  #: surveys since something happened that a survey will show
        self._surveyed_at: dict[str, float] = {}

    def performers(self) -> Mapping[type[Effect], Perform]:
        return {
            MakeBlanks: self._make_blanks,
            SubmitRunners: self._submit,
            WithdrawRunners: self._withdraw,
            SurveyPool: self._survey_soon,
        }

    def attention(self) -> list[AttentionView]:
        found = []
        for name, pool in self._pools.pools.items():
            its = (pool.survey_error, *pool.errors.values(), *pool.fruitless.values())
            errors = [error.error for error in its if error is not None]
            if pool.withdrawal_error:
                errors.append(pool.withdrawal_error)
            if errors:
                found.append(AttentionView("pool", [], len(errors), f"{name}: {errors[0]}"))
        return found

    def start(self) -> None:
        self._authority.wanted.set()
        self._files = set(os.listdir(self._directory))
        for thread in self._threads.values():
            thread.start()

    def tick(self, now: float) -> None:
        if not self._authority.ready.is_set():
            return  # its certificate is part of every ticket, and nothing is asked for before the first survey
        for name, thread in self._threads.items():
            if name not in self._surveying and now - self._surveyed_at.get(name, -1e9) >= self._interval_s(name):
                self._in_vain[name] = self._in_vain.get(name, 0) + 1 if name in self._soon else 0
                self._soon.discard(name)
                self._surveying.add(name)
                self._surveyed_at[name] = now
                known = frozenset(self._asked & self._pools.pools[name].intents.keys())
                thread.survey(known, lambda name=name: self._surveying.discard(name))  # type: ignore[misc]
        self._asked &= self._pools.intents.keys()
        self._remove_tickets()
        for name in [each for each, (_secret, at) in self._secrets.items() if at < monotonic() - UNASKED_S]:
            del self._secrets[name]

    def close(self) -> None:
        for thread in self._threads.values():
            thread.close()
        give_up = monotonic() + CLOSE_S
        for thread in self._threads.values():
            thread.join(max(0.0, give_up - monotonic()))

    def _interval_s(self, name: str) -> float:
        pool = self._pools.pools[name]
        if pool.survey_error is not None:
            return min(IDLE_SURVEY_S, pool.rules.retry_s * pool.survey_error.failures)
        if name in self._soon:
            return soon_s(self._in_vain.get(name, 0), settle_s=pool.rules.settle_s)
        # At least twice before a runner that no survey shows is given up.
        return min(SURVEY_S, pool.rules.settle_s / 2) if pool.intents or pool.strays else IDLE_SURVEY_S

    # ------------------------------------------------------------------ effects

    def _survey_soon(self, effect: SurveyPool) -> None:
        self._soon.add(effect.pool)
        if not effect.again:
            self._in_vain[effect.pool] = 0

    def _make_blanks(self, effect: MakeBlanks) -> None:
        blanks = []
        for _ in range(effect.number):
            name, secret = f"{self._prefix}-{effect.pool}-{secrets.token_hex(8)}", ticket_file.new_secret()
            self._secrets[name] = (secret, monotonic())
            blanks.append(Blank(name, ticket_file.digest(secret)))
        self._happened(BlanksMade(pool=effect.pool, need=effect.need, blanks=blanks))

    def _submit(self, effect: SubmitRunners) -> None:
        size = effect.need.size
        asked = [RunnerAsk(name, self._directory / name, size, effect.seconds) for name in effect.names]
        known = {each.name: self._secrets.pop(each.name)[0] for each in asked}
        self._asked.update(known)
        self._files.update(known)
        self._writing.update(known)
        self._threads[effect.pool].submit(
            Group(effect.pool, effect.need),
            asked,
            write_ticket=lambda each: self._write(effect.pool, each, known[each.name]),
            over=lambda: self._writing.difference_update(known),
        )

    def _withdraw(self, effect: WithdrawRunners) -> None:
        thread = self._threads.get(effect.pool)
        if thread is not None and effect.ids:
            thread.withdraw(effect.ids)

    def _remove_tickets(self) -> None:
        """Remove the files of tickets that were used or withdrawn, or whose runners have ended."""
        for name in self._files - self._writing:
            intent = self._pools.intents.get(name)
            if intent is None or intent.withdrawn or intent.key:
                self._files.discard(name)
                (self._directory / name).unlink(missing_ok=True)


def soon_s(in_vain: int, *, settle_s: float) -> float:
    """Seconds until the next survey, after `in_vain` ones that did not show what is awaited. An engine that is
    slow to show or remove a runner is not surveyed every second, but at least twice before a missing runner is
    given up.
    """
    longest = max(LEAST_SURVEY_S, min(MOST_SOON_S, settle_s / 2))
    return min(longest, LEAST_SURVEY_S * 2.0 ** min(in_vain, 10))


def _make(services: Services) -> PoolDriver | None:
    """Make the driver if a delegated pool is configured, or still has runners. Raises `BadInput`."""
    world, settings = services.world, services.settings
    if not settings.pools and world.find(Pools) is None:
        return None
    prefix = f"rota-{services.deployment.id[:8].lower()}"
    directory = services.home.tickets
    private_files.make_directory(directory)
    pools = world.use(Pools)
    pools.configure(
        {
            each.name: PoolRules(max_runners=each.most_runners(settings.max_runners), settle_s=each.settle_s)
            for each in settings.pools.values()
        },
        prefix=f"{prefix}-",
    )
    if settings.pools:
        world.use(Demand)
    for each in settings.pools.values():
        if warning := check_address(each, settings.host):
            log.warning("%s", warning)
    from rota.pools.engines import make_engine  # late: most managers have no delegated pool

    engines = {
        each.name: make_engine(each.engine, _setup(each, services, prefix)) for each in settings.pools.values()
    }
    for name, engine in engines.items():
        pools.pools[name].can_fit = engine.can_fit

    def write(pool: str, asked: RunnerAsk, secret: str) -> None:
        ticket_file.write(
            asked.ticket,
            ticket_file.Ticket(
                name=asked.name,
                secret=secret,
                manager=settings.pools[pool].address or services.deployment.address or "",
                authority=services.home.ca.read_text(),
            ),
        )

    return PoolDriver(services, engines, prefix=prefix, directory=directory, write=write)


def _setup(pool: PoolSettings, services: Services, prefix: str) -> EngineSetup:
    extra = pool.extra
    return EngineSetup(
        pool=pool.name,
        prefix=f"{prefix}-{pool.name}",
        rota=pool.rota or str(Path(sys.executable).with_name("rota")),
        idle_s=pool.idle_s,
        options=pool.options,
        timeout_s=pool.timeout_s,
        start_command=extra.get("start", ()),
        stop_command=extra.get("stop", ()),
        list_command=extra.get("list", ()),
    )


FEATURE: Final = ManagerFeature(name="pools", make=_make)
