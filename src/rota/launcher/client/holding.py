"""Leases handed to a launcher ahead: which are still held, and the fate of the others."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection

from rota.launcher import messages as m
from rota.launcher import procfs
from rota.launcher.base import Begun, CannotRun, Captured, Decided, Key, OutputPipes, Refused, StartOrder, shell
from rota.launcher.client.conversation import Connection, Conversation, HeldStart
from rota.launcher.client.lost_start import find_started
from rota.launcher.client.spooled import SpoolReader
from rota.launcher.client.wire_order import start_message
from rota.launcher.journal import Story
from rota.launcher.spool import ERR, OUT
from rota.launcher.variables import Variables


class Holding(Conversation):
    """The part of a launcher's client that hands leases over and takes them back."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        #: By which starts are found in the journal. Those of another runner begin elsewhere.
        self._serials = itertools.count(int.from_bytes(os.urandom(6), "big"))
        self._unread: set[SpoolReader] = set()  #: whose present process the runner does not know of yet

    def hold(
        self,
        key: Key,
        text: bytes,
        variables: Variables,
        cwd: bytes,
        pipes: OutputPipes,
        cores: Collection[int],
        *,
        after: Key,
        note: bytes,
        until: float,
    ) -> None:
        assert isinstance(pipes, SpoolReader)
        if self.dead:
            raise Refused("the launcher has died")
        order = StartOrder(key, "command", shell(text), variables, cwd, Captured(pipes), cores=cores)
        serial = next(self._serials)
        self._held[key] = HeldStart(key, pipes, serial, variables.value(m.MARK), procfs.start_time_now())
        self._queue(m.Hold(start_message(order, serial, plain=True), note, after, until))

    def withdraw(self, key: Key) -> bool:
        if key not in self._held:
            return False
        answer = self._call(m.Withdraw(key))
        never = isinstance(answer, m.Withdrawn) and answer.never
        if never:
            del self._held[key]
        return never  # else its fate is told: by the launcher before it answered, or since it has died

    def decided(self) -> Collection[Decided]:
        found, self._decided = self._decided, []
        for reader in self._unread:
            reader.waits = False
            if reader.missed:
                reader.missed = False
                number = reader.pipes.number
                self._news.update({(number, OUT): None, (number, ERR): None})
                self._remind()
        self._unread.clear()
        return found

    def _decide(self, said: m.Begun | m.Dropped) -> None:
        held = self._held.pop(said.key)
        if isinstance(said, m.Begun):
            self._began(held, Begun(said.pid, said.start_time), said.at)
        else:
            self._decided.append(Decided(held.key))

    def _began(self, held: HeldStart, begun: Begun, at: float) -> None:
        """A held lease has begun. Its pipes are not read until the runner knows of it: the output would count as
        another job's."""
        self._running[begun.pid] = held.reader.pipes.number
        held.reader.waits = True
        self._unread.add(held.reader)
        self._decided.append(Decided(held.key, begun, at))

    def _settle_held(self, story: Story | None, launcher: int) -> list[tuple[int, int]]:
        """The launcher has died: find out what it had begun of what it held. Returns the processes, each with the
        number of its pipes. `story`: its journal; None: that cannot be read."""
        held, self._held = list(self._held.values()), {}
        found = []
        # Those that the journal names first: then at most one other can have been under way.
        tasks = {} if story is None else story.tasks
        held.sort(key=lambda each: each.key not in tasks or not tasks[each.key].processes)
        for each in held:
            try:
                begun = self._search(each, story, launcher)
            except CannotRun as doubt:
                self._decided.append(Decided(each.key, doubt=doubt))
                continue
            if begun is None:
                self._decided.append(Decided(each.key))
            else:
                self._began(each, begun, procfs.began_at(begun.start_time))
                found.append((begun.pid, each.reader.pipes.number))
        return found

    def _search(self, held: HeldStart, story: Story | None, launcher: int) -> Begun | None:
        if story is None:
            raise CannotRun(None, "the launcher died while it held this", reason="lost", permanent=False)
        return find_started(
            held.key,
            held.mark,
            story,
            launcher=launcher,
            serial=held.serial,
            known=self._running,
            asked_at=held.asked_at,
        )
