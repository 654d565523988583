"""The launcher as a process of its own: one thread, one `epoll`, at most one agent. An `InsideLauncher` does what
the agent asks for. Around it is what outlives the agent: the journal, the spools, the notes, the limits. Without
an agent it starts nothing, and nothing that an agent or a job does ends it.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Final

from rota.launcher import journal, libc, procfs
from rota.launcher import messages as m
from rota.launcher.ahead import Ahead
from rota.launcher.door import SECRET, SOCKET, Door
from rota.launcher.ending import Ending
from rota.launcher.frames import MOST, Broken
from rota.launcher.holdings import Holdings, Process
from rota.launcher.inside import InsideLauncher
from rota.launcher.log import LOG, say, say_exception
from rota.launcher.pending_connections import Agent, PendingConnections
from rota.launcher.process import status_of
from rota.launcher.pump import Pump
from rota.launcher.starts import Starts, intent_of

#: Children reaped in one turn: others wait their turn too.
_REAPED: Final = 256
#: An agent that lets this much pile up unread is taken for dead.
_MOST_UNSENT: Final = 64 << 20
_SIGINFO: Final = 128
_LEAVING: Final = m.NotStarted(True, "the launcher is leaving"), ()


class Server:
    """The whole launcher. `run` returns when nothing is left to look after."""

    def __init__(self, directory: str, first: socket.socket) -> None:
        """`first`: the connection of the agent that started it. Raises `OSError`."""
        self._directory = directory
        self._inside = inside = InsideLauncher()
        own, boot_id = procfs.process(inside.pid), procfs.boot_id()
        self._start_time = 0 if own is None else own.start_time
        began = journal.Began(boot_id, inside.pid, self._start_time, m.VERSION)
        self._journal = journal.Journal(directory, began)
        self._poll = select.epoll()
        self._pump = Pump(self._poll, inside.output_pipes)
        self._holdings = Holdings()
        self._ending = Ending(self._holdings)
        self._starts = Starts(inside, self._journal, self._holdings, self._pump)
        self._ahead = Ahead(self._journal, self._holdings, self._pump, self._starts, attended=self._attended)
        self._door = Door(directory, boot_id)
        self._poll.register(self._door.listener.fileno(), select.EPOLLIN)
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD, signal.SIGTERM))
        self._signals = libc.signal_fd((signal.SIGCHLD,))
        self._poll.register(self._signals, select.EPOLLIN)
        self._agent: Agent | None = None
        self._agent_lags = False  #: does something wait until it can be sent?
        self._pending = PendingConnections(self._poll, self._door)
        self._alone_since = time.monotonic()
        self._orphan_after_s = 0.0
        self._more_to_reap = False
        self._leaving = self._killing = False
        self._gone = False
        first.setblocking(False)
        self._pending.add(first, inherited=True)

    def run(self) -> None:
        while not self._gone:
            try:
                self._turn()
            except Exception:
                # An error in handling one event must not end the jobs.
                say_exception("unexpected")
                time.sleep(0.01)

    # -------------------------------------------------------------- the loop

    def _turn(self) -> None:
        wait = 0.0 if self._more_to_reap else max(0.0, self._due() - time.monotonic())
        agent_ready = reap = False
        for fd, events in self._poll.poll(min(wait, 3600.0), 256):
            if fd in self._pump.by_fd:
                self._pump.readable(fd)
            elif fd == self._signals:
                os.read(fd, 64 * _SIGINFO)
                reap = True
            elif self._agent is not None and fd == self._agent.fileno():
                agent_ready = True
            elif fd == self._door.listener.fileno():
                sock = self._door.accept()
                if sock is not None:
                    self._pending.add(sock, inherited=False)
            elif fd in self._pending:
                agent = self._pending.hear(fd)
                if agent is not None:
                    self._attached(agent)
            elif events:
                self._poll.unregister(fd)
        if reap or self._more_to_reap:
            self._reap()
        if agent_ready:
            self._serve()
        self._tell_news()
        self._tick(time.monotonic())

    def _due(self) -> float:
        due = self._pending.due()
        if self._agent is None or self._killing:
            due = min(due, self._ending.due())
            orphaned_at = self._alone_since + self._orphan_after_s
            if time.monotonic() < orphaned_at:
                due = min(due, orphaned_at)
        return due

    def _tick(self, now: float) -> None:
        self._pending.close_overdue(now)
        if self._agent is None or self._killing:
            orphaned = self._killing or now >= self._alone_since + self._orphan_after_s
            self._ending.tick(now, orphaned=orphaned)
            self._consider_leaving(orphaned)
        elif self._leaving:
            self._consider_leaving(False)

    def _consider_leaving(self, orphaned: bool) -> None:
        """Exit when nothing is left to look after, or no agent will ask for what is."""
        if self._holdings.by_pid or (self._holdings.tasks and not orphaned) or self._pending:
            return
        self._inside.rest()
        if self._inside.children():
            if orphaned or not self._holdings.tasks:
                self._ending.kill_strays()
            return
        say("nothing is left to look after")
        self._gone = True
        gone = [SOCKET, SECRET] if self._holdings.tasks else [SOCKET, SECRET, journal.NAME, LOG]
        try:
            for name in gone:
                os.unlink(f"{self._directory}/{name}")
            os.rmdir(self._directory)
        except OSError:
            pass  # what an agent has to settle stays, and what it did not make

    # -------------------------------------------------------------- agents come and go

    def _attached(self, agent: Agent) -> None:
        if self._agent is not None:
            try:
                self._agent.send(m.Replaced())
            except Broken:
                pass
            self._lost("another has come")
        agent.most = MOST
        self._agent, self._agent_lags = agent, False
        self._pump.attend(True)
        say(f"agent of epoch {self._door.epoch}")
        self._guarded(self._tell_holdings)

    def _tell_holdings(self) -> None:
        agent = self._agent
        assert agent is not None
        for spare in [each for each in self._pump.by_number.values() if not self._holdings.uses(each)]:
            self._pump.close(spare)  # of the agent before
        pipes, tasks = self._pump.by_number.values(), self._holdings.tasks.values()
        agent.send(m.Welcome(self._door.version, self._inside.pid, self._start_time, len(pipes), len(tasks)))
        for each in pipes:
            out, err = each.spools
            agent.send(m.HeldPipes(each.number, (out.keep, err.keep), (out.trimmed, err.trimmed)), each.fds)
        for task in tasks:
            agent.send(task.on_wire(), task.fds)

    def _lost(self, why: str) -> None:
        agent, self._agent = self._agent, None
        if agent is None:
            return
        say(f"the agent is gone: {why}")
        self._poll.unregister(agent.fileno())
        agent.close()
        self._alone_since = time.monotonic()
        self._ahead.clear()
        self._pump.attend(False)

    def _attended(self) -> bool:
        """Is there an agent for which a process may be started?"""
        return self._agent is not None and not self._leaving and not self._agent.abandoned()

    def _guarded(self, talk: Callable[[], object]) -> None:
        """Talk with the agent; drop it if it is dead or hostile."""
        agent = self._agent
        try:
            talk()
            if self._agent is not None:
                self._agent.flush()
                self._watch(self._agent)
        except Broken as why:
            if agent is self._agent:
                self._lost(str(why))

    def _watch(self, agent: Agent) -> None:
        if agent.unsent > _MOST_UNSENT:
            raise Broken("it does not read")
        if self._agent_lags != bool(agent.unsent):
            self._agent_lags = not self._agent_lags
            self._poll.modify(agent.fileno(), select.EPOLLIN | (select.EPOLLOUT if self._agent_lags else 0))

    def _serve(self) -> None:
        self._guarded(self._obey_all)

    def _obey_all(self) -> None:
        agent = self._agent
        assert agent is not None
        agent.flush()
        for message in agent.receive():
            if self._agent is not agent:
                return
            self._obey(agent, message)

    def _tell_news(self) -> None:
        agent = self._agent
        if agent is not None and self._pump.news and not agent.unsent:
            wrote = m.Wrote(list(self._pump.news))
            self._pump.news.clear()
            self._guarded(lambda: agent.send(wrote))

    # -------------------------------------------------------------- what an agent asks for

    def _obey(self, agent: Agent, message: m.FromAgent) -> None:
        match message:
            case m.Start():
                if message.key in self._ahead:
                    raise Broken("it starts what it wants held")
                answer, fds = self._starts.start(message) if not self._leaving else _LEAVING
                agent.send(answer, fds)
                if isinstance(message.stdio, m.ToAgent):
                    for fd in fds:  # a copy here would hide from each side that the other has closed its end
                        os.close(fd)
            case m.Hold():
                agent.queue(*self._ahead.hold(message))
            case m.Withdraw(key):
                agent.queue(*self._ahead.withdraw(key))
            case m.Took(number, stream, upto):
                self._pump.took(number, stream, upto)
            case m.Note(key, state):
                self._holdings.task(key).note = state
            case m.Limit(key, end_at, grace_s, cgroups):
                task = self._holdings.task(key)
                task.end_at, task.grace_s = end_at, grace_s
                task.cgroups.update(cgroups)
                task.kill_at, task.done = None, False
            case m.Release(key):
                if self._holdings.release(key):
                    self._journal.add_later(journal.Released(key))
                    if not self._holdings.tasks:
                        self._inside.rest()
            case m.CountChildren():
                count = self._inside.children()
                self._collect()
                self._tell_news()
                agent.send(m.Children(count))
            case m.Send(pid, number, group):
                agent.send(m.Done(self._signal(pid, number, group)))
            case m.MakePipes():
                try:
                    pipes = self._pump.make()
                except OSError as error:
                    agent.send(m.Done(error.errno or 1))
                else:
                    agent.send(m.PipesMade(pipes.number), pipes.fds)
            case m.ClosePipes(number):
                closing = self._pump.by_number.get(number)
                if closing is not None:
                    self._holdings.take_back(closing)
                    self._pump.close(closing)
            case m.Obey(keep, orphan_after_s, grace_s):
                self._starts.keep, self._orphan_after_s, self._ending.grace_s = keep, orphan_after_s, grace_s
            case m.Leave(kill):
                self._leaving, self._killing = True, kill
            case m.Attach():
                raise Broken("it is attached already")

    def _signal(self, pid: int, number: int, group: int) -> int:
        """0, or the number of an error. Only children that were not reaped: a number may be another's by then."""
        if pid not in self._holdings.by_pid:
            return errno.ESRCH
        try:
            self._inside.signal(pid, number, group=group)
        except OSError as error:
            return error.errno or 1
        return 0

    # -------------------------------------------------------------- what processes do

    def _collect(self) -> None:
        """Whatever ended processes wrote is in the spools afterwards."""
        self._pump.collect()
        for task in self._holdings.tasks.values():
            if task.pipes is not None and not task.runs:
                self._pump.drain(task.pipes)

    def _reap(self) -> None:
        self._more_to_reap = True
        for _ in range(_REAPED):
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                found = None
            if found is None:
                self._more_to_reap = False
                return
            self._ended(found)

    def _ended(self, found: os.waitid_result) -> None:
        """A child is a zombie. What must not be lost with this process is written before it is reaped."""
        status = status_of(found)
        process = self._holdings.by_pid.pop(found.si_pid, None)
        # It counts itself until it is reaped.
        alone = process is not None and self._inside.children() == len(self._holdings.by_pid) + 1
        following = None
        if process is not None:
            task = process.task
            if task.pipes is not None:
                self._pump.drain(task.pipes)
            if alone and process.kind == "command" and self._ahead.ended_quietly(task, status):
                following = self._ahead.following(task)
                task.quiet = following is None
            following = self._record_end(journal.Exited(task.key, found.si_pid, status), following)
        pid, status, usage = os.wait4(found.si_pid, 0)
        spent = m.Spent(usage.ru_utime, usage.ru_stime, usage.ru_maxrss)
        self._tell_news()
        told: list[m.Message] = [m.Exited(pid, status, spent, alone)]
        if process is not None:
            process.status, process.spent, process.ended_at = status, spent, time.time()
            if following is not None:
                told += self._ahead.start(following, process.task)
            elif process.kind == "command":
                told += self._ahead.drop_after(process.task.key)
        agent = self._agent
        if agent is not None:
            self._guarded(lambda: agent.queue(*told))
        if process is not None and process.kind in journal.PASSING and (agent or process.kind == "script"):
            self._forget(process)

    def _record_end(self, ended: journal.Exited, following: m.Start | None) -> m.Start | None:
        """Write an end together with the intent of the lease that is started next. Returns that lease, if it may
        be started."""
        if following is not None:
            try:
                self._journal.intend(ended, intent_of(following))
            except OSError:
                following = None
        if following is None:
            self._journal.add(ended)
        return following

    def _forget(self, process: Process) -> None:
        """Its end was told, or no agent asks for it: a lease may have very many such processes."""
        if self._holdings.drop(process):
            self._journal.add(journal.Released(process.task.key))
