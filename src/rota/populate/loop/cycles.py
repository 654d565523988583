"""The manager of tables: asks each table once in a cycle, frees dead batches, and sends new ones."""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from rota.errors import RotaError
from rota.populate.batch import Batch
from rota.populate.config.configuration import Configuration, Table
from rota.populate.config.file import ConfigurationFile
from rota.populate.cycle.planning import claimed, pause_s, plan, wanted_of
from rota.populate.cycle.reconciling import Reconciler
from rota.populate.loop.sources import AnySources, Sources
from rota.populate.loop.status import CycleStatus, Status, TableStatus, Uptime
from rota.populate.source.base import Look, Source, TableFailed
from rota.populate.transport.base import Transport, TransportFailed
from rota.populate.transport.opening import open_transport

_LOG: Final = logging.getLogger("rota.populate")

OK, DEGRADED, STANDBY = "ok", "degraded", "standby"


def new_token() -> str:
    """The id of a batch, known to nobody else."""
    return secrets.token_hex(12)


def lock_name(configuration: Configuration) -> str:
    """The same for all managers of the same tables."""
    names = "\n".join(sorted(table.name for table in configuration.tables))
    return f"rota_populate_{hashlib.sha256(names.encode()).hexdigest()[:24]}"


class Manager:
    """Of one configuration file. Its status may be read by other threads."""

    def __init__(
        self,
        file: ConfigurationFile,
        *,
        open_transport: Callable[[Configuration], Transport] = open_transport,
        open_sources: Callable[[Configuration, str], AnySources] = Sources,
        new_token: Callable[[], str] = new_token,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.file = file
        self.health = OK
        self.status = Status()
        self._open_transport = open_transport
        self._open_sources = open_sources
        self._new_token = new_token
        self._now = now
        self._monotonic = monotonic
        self._began = monotonic()
        self._said: dict[str, str] = {}  #: the last trouble of each table, and of the rest
        self._reconcilers: dict[str, Reconciler] = {}
        self._passing: set[str] = set()  #: tables whose trouble is that of a server, which may come back
        self._transport: Transport | None = None
        self._holder: Source | None = None  #: whose connection has the lock
        self._sources = open_sources(file.current, file.directory)
        self._stop = threading.Event()

    # ------------------------------------------------------------------ cycles

    def run(self, *, until_empty: bool = False) -> None:
        """Cycles until `stop` is called, or until nothing is left. An overrun starts the next at once."""
        while not self._stop.is_set():
            began = self._monotonic()
            self.cycle()
            if until_empty and self.is_empty:
                return
            target = self.file.current.manager.target_cycle_s
            self._stop.wait(pause_s(began=began, ended=self._monotonic(), target_s=target))

    def stop(self) -> None:
        """End after the present cycle; may be called by a signal handler."""
        self._stop.set()

    def cycle(self) -> None:
        """One cycle over all tables. What goes wrong with one is in its status, and the others go on."""
        began, at = self._monotonic(), self._now()
        self._reload()
        tables = dict(self.status.tables)
        self.health = OK if self.file.error is None else DEGRADED
        if not self._is_active():
            self.health = STANDBY
            tables = {}
        else:
            for table, source in self._sources:
                tables[table.name] = self._serve(table, source, tables.get(table.name, TableStatus()))
        names = {table.name for table in self.file.current.tables}
        tables = {name: status for name, status in tables.items() if name in names}
        if any(status.error is not None for status in tables.values()):
            self.health = DEGRADED
        target = self.file.current.manager.target_cycle_s
        cycle = CycleStatus(started_at=at, took_s=self._monotonic() - began, target_s=target)
        self.status = replace(self.status, cycle=cycle, tables=tables)
        self._look_at_workers()

    @property
    def is_empty(self) -> bool:
        """Nothing is left to be computed in tables that can be asked, and nothing is being computed."""
        tables = self.status.tables.items()
        return self.health != STANDBY and all(
            table.left == 0 if table.error is None else name not in self._passing for name, table in tables
        )

    @property
    def errors(self) -> dict[str, str]:
        """Tables that could not be asked."""
        return {name: table.error for name, table in self.status.tables.items() if table.error is not None}

    def close(self) -> None:
        """Let go of databases and of the transport."""
        self._sources.close()
        if self._transport is not None:
            self._transport.close()

    def _reload(self) -> None:
        if self.file.reload():
            _LOG.info("the configuration has changed")
            self.close()
            self._transport = self._holder = None
            self._sources = self._open_sources(self.file.current, self.file.directory)
        self._say("configuration", self.file.error)

    def _is_active(self) -> bool:
        """Is this the one manager of these tables? Asked in each cycle, because connections are lost silently."""
        name = lock_name(self.file.current)
        # First by the connection that has it: for the server, two of ours are strangers to each other.
        for _, source in sorted(self._sources, key=lambda pair: pair[1] is not self._holder):
            try:
                if not source.lock(name):
                    return False
            except TableFailed:
                continue  # its own turn in the cycle says why
            self._holder = source
            return True
        return True  # no table can be asked, so there is nothing to be done twice

    # ------------------------------------------------------------------ one table

    def _serve(self, table: Table, source: Source, before: TableStatus) -> TableStatus:
        began, at = self._monotonic(), self._now()
        self._passing.discard(table.name)
        try:
            look = source.look(wanted_of(table))
            took = self._monotonic() - began
            self._warn(table, look)
            sent = self._hand_out(table, source, look)
        except TableFailed as error:
            self._say(table.name, error)
            if error.kind == "database":
                self._passing.add(table.name)
            return replace(before, asked_at=at, took_s=self._monotonic() - began, error=error.text)
        except TransportFailed as error:
            self._say(table.name, error)
            self._passing.add(table.name)
            return replace(self._counted(look, 0, at, took), error=error.text)
        self._say(table.name, None)
        return self._counted(look, sum(len(batch.keys) for batch in sent), at, took)

    def _counted(self, look: Look, sent: int, at: float, took: float) -> TableStatus:
        waiting = look.todo - look.queued - look.running - look.errors - look.unbinned
        return TableStatus(
            asked_at=at,
            took_s=took,
            done=look.done,
            todo=waiting - sent,
            queued=look.queued + sent,
            running=look.running,
            errors=look.errors,
        )

    def _hand_out(self, table: Table, source: Source, look: Look) -> list[Batch]:
        """First what is dead, then what is new: marked before it is sent."""
        transport = self._reached()
        reconciler = self._reconcilers.setdefault(table.name, Reconciler())
        # The ledger was read before the transport: a batch that ended in between holds nothing any more.
        for token, why in reconciler.dead(look.batches, transport.signs(look.batches)).items():
            freed, failed = source.release(token, on_lost=table.on_timeout, why=why)
            _LOG.warning("batch %s of %s: %s; %d keys freed, %d errors", token, table.name, why, freed, failed)
        batches = plan(table, look, new_token=self._new_token)
        if not batches:
            return []
        batches = claimed(batches, source.claim({batch.token: batch.keys for batch in batches}, table.ttl_s))
        try:
            transport.send(batches)
        except TransportFailed as error:
            # Some may have been sent after all: their tokens are worth nothing any more.
            for batch in batches:
                source.release(batch.token, on_lost=table.on_timeout, why=error.text)
            raise
        return batches

    def _reached(self) -> Transport:
        if self._transport is None:
            self._transport = self._open_transport(self.file.current)
        return self._transport

    # ------------------------------------------------------------------ what is said

    def _look_at_workers(self) -> None:
        if self.health == STANDBY:
            self.status = replace(self.status, queues={}, workers=[])
            return
        names: Iterable[str] = {bin_.queue for table in self.file.current.tables for bin_ in table.bins}
        try:
            transport = self._reached()
            queues = transport.queues(set(names))
            self.status = replace(self.status, queues=queues, workers=transport.workers(self._now()))
        except TransportFailed as error:
            self.health = DEGRADED
            self._say("transport", error)
        else:
            self._say("transport", None)

    def _warn(self, table: Table, look: Look) -> None:
        if look.unbinned:
            self._say(
                f"{table.name} bins", f"{look.unbinned} keys of {table.name} are in no bin and are left alone"
            )

    def _say(self, what: str, trouble: RotaError | str | None) -> None:
        """Once for each trouble, and when it is over."""
        text = str(trouble) if trouble is not None else ""
        if text == self._said.get(what, ""):
            return
        self._said[what] = text
        if text:
            _LOG.error("%s: %s", what, text)
        else:
            _LOG.info("%s: all is well again", what)

    def current_status(self) -> Status:
        """For the API."""
        return replace(self.status, uptime_s=self._monotonic() - self._began)

    def uptime(self) -> Uptime:
        """For the API."""
        busy = sum(worker.state == "busy" for worker in self.status.workers)
        at = self.status.cycle.started_at
        return Uptime(
            uptime_s=self._monotonic() - self._began, health=self.health, last_cycle_at=at, workers_active=busy
        )
