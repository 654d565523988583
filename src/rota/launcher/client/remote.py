"""A launcher process as the runner sees it: it outlives the runner, and so do its jobs.

A call awaits its answer; other messages of the launcher are queued meanwhile. If the launcher dies and
this runner has started it, the runner itself goes on with what runs (`Inheritance`): exit codes and output stay
exact.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import time
from collections.abc import Collection, Iterable
from typing import Final

from rota.launcher import journal, procfs
from rota.launcher import messages as m
from rota.launcher.base import (
    Begun,
    CannotRun,
    Captured,
    Discarded,
    Ended,
    Key,
    NotReady,
    OutputPipes,
    Refused,
    StartOrder,
    refuse_unbuilt,
    shell,
)
from rota.launcher.client import inherited
from rota.launcher.client.conversation import Connection
from rota.launcher.client.holding import Holding
from rota.launcher.client.inherited import Inheritance
from rota.launcher.client.lost_start import find_started
from rota.launcher.client.spooled import SpoolReader
from rota.launcher.client.wire_order import start_message
from rota.launcher.descriptors import ensure_room
from rota.launcher.frames import Broken
from rota.launcher.log import say
from rota.launcher.own_peak import OwnPeak
from rota.launcher.pipes import HeldPipes
from rota.launcher.spool import ERR, OUT, Spool, SpooledPipes
from rota.launcher.variables import Variables

_KILL_AGAIN_S: Final = 1.0
_FDS_OF_PIPES: Final = 8
_FDS_OF_START: Final = 4


class RemoteLauncher(Holding):
    """Implements `Launcher`."""

    def __init__(self, connection: Connection, welcome: m.Welcome, directory: str, *, own: bool) -> None:
        """`own`: this process has started it."""
        super().__init__(connection)
        self.version = welcome.version  #: that is spoken with it
        self.pid = welcome.pid
        self.start_time = welcome.start_time
        self.directory = directory
        self.own = own
        self.is_own = OwnPeak(welcome.pid).covers
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._readers: dict[int, SpoolReader] = {}
        self._keep = 0
        self._leaves = False  #: it was told to
        self._last_alone = 0  #: the last that was reaped, if nothing else was left then
        self._heir: Inheritance | None = None
        if own:
            inherited.launchers.add(self.pid)

    forks = False

    @property
    def lasting(self) -> bool:
        return not self.dead

    @property
    def idle(self) -> bool:
        """Does it hold neither a process nor a lease?"""
        return not (self._running or self._ended or self._held or self._decided)

    # -------------------------------------------------------------- starting

    def obey(self, *, keep_output: int, orphan_after_s: float, grace_s: float) -> None:
        """The rules from now on."""
        self._keep = keep_output
        self._send(m.Obey(keep_output, orphan_after_s, grace_s))

    def output_pipes(self) -> SpoolReader:
        ensure_room(_FDS_OF_PIPES)
        answer = self._call(m.MakePipes())
        if not isinstance(answer, m.PipesMade):
            if self._heir is not None:  # for what follows a job that it had started
                return self._read_from(self._heir.pump.make())
            error = answer.errno if isinstance(answer, m.Done) else errno.EPIPE
            raise OSError(error, "the launcher cannot make pipes")
        return self._reader(answer.pipes, self._fds)

    def _reader(self, number: int, fds: list[int]) -> SpoolReader:
        return self._read_from(
            SpooledPipes(number, HeldPipes(self._null, fds[:4]), (Spool(fds[4]), Spool(fds[5])))
        )

    def _read_from(self, pipes: SpooledPipes) -> SpoolReader:
        reader = self._readers[pipes.number] = SpoolReader(pipes, self._took, self._close_pipes)
        return reader

    def hold_pipes(self, held: m.HeldPipes, fds: list[int]) -> None:
        """Take over pipes that it made for an earlier runner."""
        for spool, keep, trimmed in zip(
            self._reader(held.pipes, fds).pipes.spools, held.keep, held.trimmed, strict=True
        ):
            spool.keep, spool.trimmed = keep, trimmed

    def adopt(self, held: m.HeldTask) -> SpoolReader | None:
        """Take over a lease that it holds for an earlier runner: the pipes of its last process."""
        for process in held.processes:
            if process.status is None:
                self._running[process.pid] = max(0, held.pipes)
        return self._readers.get(held.pipes)

    def begin(self, heard: Iterable[m.FromLauncher]) -> None:
        """All that it holds was told: from now on nothing blocks unless an answer is awaited."""
        self._connection.sock.setblocking(False)
        self._take_all(heard)

    def tell_again(self, ended: m.HeldProcess) -> None:
        """Let `reap` return a process that has ended, perhaps without a runner."""
        if ended.status is not None:
            self._ended.append((ended.pid, ended.status, ended.spent))

    def start_shell(
        self, key: Key, text: bytes, variables: Variables, cwd: bytes, pipes: OutputPipes, cores: Collection[int]
    ) -> int:
        order = StartOrder(key, "command", shell(text), variables, cwd, Captured(pipes), cores=cores)
        return self.start(order, plain=True).pid

    def start(self, order: StartOrder, *, plain: bool = False) -> Begun:
        refuse_unbuilt(order)
        if order.template or order.fork_of:
            raise NotReady("gone")
        self._check()
        if self._heir is not None and order.kind != "command":
            return self._heir.start(order)
        if self.dead:
            raise Refused("the launcher has died")
        if order.file is not None or not isinstance(order.stdio, (Captured, Discarded)):
            try:
                ensure_room(_FDS_OF_START)
            except OSError as error:
                raise Refused(f"cannot receive descriptors: {error.strerror}") from None
        number = 0
        if isinstance(order.stdio, Captured) and isinstance(order.stdio.pipes, SpoolReader):
            number = order.stdio.pipes.began(self._keep)
        self._starting = number
        asked_at = procfs.start_time_now()
        serial = next(self._serials)
        answer = self._call(start_message(order, serial, plain=plain))
        match answer:
            case m.Started(pid, start_time, _, unbound):
                return Begun(pid, start_time, tuple(self._fds), unbound)
            case m.NotStarted(False, message, exit_code, reason, permanent):
                raise CannotRun(exit_code, message, reason=reason, permanent=permanent)
            case m.NotStarted(_, message):
                raise Refused(message)
            case None:
                return self._begun_before_death(order, number, serial, asked_at)
            case _:
                self._die("it answers something else")
                return self._begun_before_death(order, number, serial, asked_at)

    def _begun_before_death(self, order: StartOrder, number: int, serial: int, asked_at: int) -> Begun:
        """The launcher has died over this order: find the process, or be sure that there is none."""
        heir = self._heir
        if heir is None:
            raise CannotRun(None, "the launcher died while it started this", reason="lost", permanent=False)
        story = journal.read(self.directory)
        begun = find_started(
            order.key,
            order.variables.value(m.MARK),
            story,
            launcher=self.pid,
            serial=serial,
            known=self._running,
            asked_at=asked_at,
        )
        if begun is None:
            if order.kind != "command":
                return heir.start(order)  # as after its death: surely nothing was started yet
            raise Refused("the launcher has died")
        self._running[begun.pid] = number
        heir.take_on(begun.pid, number)
        heir.recall(story)
        return begun

    def end_template(self, pid: int) -> str:
        return ""

    def run(self, order: StartOrder, limit_s: float) -> int | None:
        pid = self.start(order).pid
        limit = time.monotonic() + limit_s
        in_time = True
        while (ended := self.reap(pid)) is None:
            if time.monotonic() >= limit:
                in_time = False
                self._kill_group(pid)
                limit = time.monotonic() + _KILL_AGAIN_S
                continue  # its end may have been told before the answer
            select.select([self.fd], [], [], max(0.0, limit - time.monotonic()))
            self._news = dict.fromkeys(self._told())
        self._remind()
        return ended[1] if in_time else None

    def _kill_group(self, pid: int) -> None:
        try:
            self.signal(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has just ended

    def rest(self) -> None:
        """The launcher keeps no directory busy."""

    # -------------------------------------------------------------- ending

    @property
    def queued(self) -> list[int]:
        """The processes whose end `reap` will return, and which are in no process table any more."""
        return [ended[0] for ended in self._ended]

    def receive(self) -> Collection[int]:
        self._check()
        found = self._told()
        streams = []
        for number, stream in found:
            reader = self._readers.get(number)
            if reader is not None:
                streams.append(reader.out if stream == OUT else reader.err)
        return streams

    def _told(self) -> list[tuple[int, int]]:
        """Take in what there is; the streams that have output."""
        if self._reminded:
            self._reminded = False
            os.eventfd_read(self._reminder)
        if not self.dead:
            try:
                while said := self._connection.receive():
                    self._take_all(said)
            except Broken as why:
                self._die(str(why))
        if self._heir is not None:
            self._news.update(dict.fromkeys(self._heir.receive()))
        if self._ended or self._decided:
            self._remind()  # not every caller asks for ends next
        news = list(self._news)
        self._news.clear()
        return news

    def reap(self, pid: int = -1) -> Ended | None:
        for ended in self._ended:
            if pid in (-1, ended[0]):
                self._ended.remove(ended)
                self._last_alone = ended[0] if ended[0] in self._alone else 0
                self._alone.discard(ended[0])
                return ended
        if self._heir is None:
            return None
        found = self._heir.reap(pid)
        if found is not None:
            self._running.pop(found[0], None)
        return found

    def alone(self, pid: int) -> bool:
        return pid == self._last_alone and not self._news

    def children(self) -> int:
        answer = self._call(m.CountChildren())
        if isinstance(answer, m.Children):
            return answer.count + len(self._ended)
        return len(self._ended) + (0 if self._heir is None else self._heir.children())

    def signal(self, pid: int, number: int, *, group: int = 0) -> None:
        answer = self._call(m.Send(pid, number, group))
        if isinstance(answer, m.Done):
            if answer.errno:
                raise OSError(answer.errno, os.strerror(answer.errno))
        elif self._heir is None:
            raise ProcessLookupError
        else:
            self._heir.signal(pid, number, group=group)

    # -------------------------------------------------------------- for the runner's successor

    def note(self, key: Key, state: bytes) -> None:
        self._queue(m.Note(key, state))

    def release(self, key: Key) -> None:
        self._queue(m.Release(key))

    def limits(
        self, key: Key, *, end_at: float | None, kill_grace_s: float, cgroups: Collection[str] = ()
    ) -> None:
        self._queue(m.Limit(key, end_at, kill_grace_s, list(cgroups)))

    def leave(self, *, kill: bool = False) -> None:
        """It may end once it holds nothing; with `kill` it ends everything."""
        self._leaves = True
        self._send(m.Leave(kill))

    def close(self) -> None:
        """Let go of it, with everything that it holds."""
        self._connection.close()
        self._poll.close()
        os.close(self._reminder)
        for reader in list(self._readers.values()):
            reader.pipes.close()
        self._readers.clear()
        os.close(self._null)
        if self._heir is not None:
            self._heir.close()
        inherited.launchers.discard(self.pid)

    # -------------------------------------------------------------- output

    def _took(self, number: int, stream: int, upto: int) -> None:
        if self._heir is not None:
            self._heir.pump.took(number, stream, upto)
            self._remind()
        else:
            self._send(m.Took(number, stream, upto))

    def _close_pipes(self, pipes: SpooledPipes) -> None:
        self._readers.pop(pipes.number, None)
        if self._heir is not None:
            self._heir.pump.close(pipes)
            return
        pipes.close()
        self._send(m.ClosePipes(pipes.number))

    # -------------------------------------------------------------- its death

    def _die(self, why: str) -> None:
        """The launcher is dead, or taken for dead: go on without it."""
        if self.dead:
            return
        self.dead = True
        if not self._leaves:
            say(f"launcher {self.pid} is gone: {why}")
        try:
            while said := self._connection.receive():  # its last words
                self._take_all(said)
        except Broken:
            pass
        self._poll.unregister(self._connection.fileno())
        self._connection.close()
        if not self.own:
            return
        try:
            os.kill(self.pid, signal.SIGKILL)  # our child, so the number is its own
            os.waitpid(self.pid, 0)
        except OSError:
            pass
        inherited.launchers.discard(self.pid)
        for number, reader in self._readers.items():
            reader.refresh()
            self._news.update({(number, OUT): None, (number, ERR): None})  # of some it may not have told
        self._remind()
        pipes = [reader.pipes for reader in self._readers.values()]
        self._heir = Inheritance(self._poll, self._running, pipes)
        if self._leaves:
            return  # it has cleared away
        story = None
        try:
            story = journal.read(self.directory)
        except OSError as error:
            say(f"the journal of launcher {self.pid} cannot be read: {error}")
        for pid, number in self._settle_held(story, self.pid):
            self._heir.take_on(pid, number)
        if story is not None:
            self._heir.recall(story)
