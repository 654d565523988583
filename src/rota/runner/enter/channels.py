"""Processes that a client starts inside a running job (`rota exec`), at this end of their channel.

They belong to the job: they are in its control group and on its cores, are measured with it, and end with it at
the latest. When the client goes away they are hung up.
"""

from __future__ import annotations

import os
import signal

from rota.launcher.base import CannotRun, OnTerminal, Piped, Refused
from rota.launcher.programs import login_shell
from rota.runner.contain.signals import signal_sessions
from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.enter.consoles import Consoles
from rota.runner.enter.entry_point import EntryPoint, entry_point
from rota.runner.enter.exec_stream import Conduit
from rota.runner.enter.exec_streams import Conduits
from rota.runner.enter.relay import Relay
from rota.runner.enter.terminal import Terminal
from rota.runner.log import say_exception
from rota.runner.loop import Loop
from rota.runner.start.command_words import words_of
from rota.runner.start.own_variables import OF_ONE_JOB
from rota.runner.task import Task
from rota.runner.task_table import TaskTable
from rota.wire import channels as c

_MOST = 1024  #: channels of one runner


class JobChannels:
    """All channels of a runner that end here."""

    def __init__(
        self,
        *,
        loop: Loop,
        tasks: TaskTable,
        rules: CurrentRules,
        containment: Containment,
        conduits: Conduits,
        consoles: Consoles,
        relay: Relay,
    ) -> None:
        self._loop = loop
        self._tasks = tasks
        self._rules = rules
        self._containment = containment
        self._conduits = conduits
        self._consoles = consoles
        self._relay = relay
        self._by_pid: dict[int, tuple[Conduit, EntryPoint]] = {}  #: processes that were not reaped yet
        self._to_hang_up: set[int] = set()  #: pids
        self._kill_at: dict[int, float] = {}  #: pid → when its grace is over

    # -------------------------------------------------------------- messages of the client

    def received(self, message: c.StartChannel | c.InChannel) -> None:
        """A message about a channel that ends here."""
        if isinstance(message, c.StartChannel):
            self._open(message)
            return
        if message.n < 0:
            self._relay.answered(message)
            return
        conduit = self._conduits.by_n.get(message.n)
        if conduit is None:
            return  # it ended while this was on its way
        match message:
            case c.ChannelData(_, _, data):
                conduit.put(data)
            case c.ChannelCredit(_, size):
                conduit.credit(size)
            case c.ChannelResize(_, rows, cols):
                if conduit.terminal is not None and not conduit.closed:
                    conduit.terminal.resize(rows, cols)
            case c.ChannelSignal(_, number):
                self._signal(conduit, number)
            case c.ChannelEnd():
                self._hung_up(message.n, conduit, lost=message.lost)
        self._conduits.forget_closed(message.n)

    # -------------------------------------------------------------- beginning

    def _open(self, start: c.StartChannel) -> None:
        if len(self._conduits.by_n) >= _MOST:
            self._conduits.tell(c.ChannelEnd(start.n, message=f"more than {_MOST} channels are open on this node"))
            return
        try:
            if start.attach:
                console, before = self._consoles.attach(start)
                if before is not None:
                    self._conduits.by_n.pop(before, None)
                self._conduits.by_n[start.n] = console
                console.attach(start.n, seen=start.seen)
            else:
                self._start(start)
        except (CannotRun, Refused) as why:
            code = why.exit_code if isinstance(why, CannotRun) else None
            self._conduits.tell(c.ChannelEnd(start.n, code, None, str(why)))
        except Exception:
            say_exception(f"cannot open a channel in job {start.job}")
            self._conduits.tell(c.ChannelEnd(start.n, None, None, "unexpected error in the runner"))

    def _start(self, start: c.StartChannel) -> None:
        place = entry_point(self._tasks, self._containment, (start.job, start.attempt, start.token))
        term = start.term if start.tty and "\0" not in start.term else ""
        entries = [f"TERM={term or 'dumb'}"] if start.tty else []
        variables = place.variables.and_also(_variables(entries + start.env))
        cmd = start.cmd or [login_shell(variables.value(b"SHELL"))]
        cwd = start.cwd.encode("utf-8", "surrogateescape") or place.cwd
        words = words_of(cmd, pipefail=False)
        stdio = OnTerminal(start.rows, start.cols) if start.tty else Piped()
        begun = place.start(words, variables, stdio, cwd=cwd)
        if start.tty:
            (fd,) = begun.fds
            conduit = self._conduits.make(start.n, fd, {fd: c.STDOUT}, terminal=Terminal(fd))
        else:
            inp, out, err = begun.fds
            conduit = self._conduits.make(start.n, inp, {out: c.STDOUT, err: c.STDERR})
        place.adopted(begun.pid)
        self._by_pid[begun.pid] = (conduit, place)
        self._conduits.by_n[start.n] = conduit
        conduit.welcome()

    def hang_up_adopted(self, task: Task, pid: int) -> None:
        """End a process in a job whose client talked with an earlier runner: nothing it says can be heard."""
        place = EntryPoint(task, self._containment)
        place.adopted(pid)
        self._hang_up(pid)
        self._kill_at[pid] = self._loop.now + self._rules.current.grace_s

    # -------------------------------------------------------------- the end of a process

    def reaped(self, pid: int, status: int) -> None:
        """A child that is no first process of a task has ended."""
        known = self._by_pid.pop(pid, None)
        self._kill_at.pop(pid, None)
        if known is None:
            return
        conduit, _ = known
        code = os.waitstatus_to_exitcode(status)
        n = conduit.n
        conduit.exited(None if code < 0 else code, -code if code < 0 else None)
        if n is not None:
            self._conduits.forget_closed(n)

    def job_ended(self, task: Task) -> None:
        """The command of a job has ended: hang up everything else that was started in it."""
        for pid, (_, place) in self._by_pid.items():
            if place.task is task:
                self._hang_up(pid)

    # -------------------------------------------------------------- the client goes away

    def _hung_up(self, n: int, conduit: Conduit, *, lost: bool) -> None:
        self._conduits.by_n.pop(n, None)
        if conduit.lasting:
            self._consoles.left(conduit, lost=lost)
            return
        conduit.close()
        for pid, (other, _) in self._by_pid.items():
            if other is conduit:
                self._hang_up(pid)
                self._kill_at[pid] = self._loop.now + self._rules.current.grace_s

    def _hang_up(self, pid: int) -> None:
        """Hang up a session at the next tick, together with others: finding its processes takes a look at all."""
        self._to_hang_up.add(pid)
        self._loop.due(self._loop.now)

    def lost(self) -> None:
        """The connection to the manager is gone, and with it all clients."""
        for n, conduit in list(self._conduits.by_n.items()):
            self._hung_up(n, conduit, lost=True)
        self._relay.lost()

    def tick(self, now: float) -> None:
        if self._to_hang_up:
            signal_sessions(self._to_hang_up, signal.SIGHUP)
            self._to_hang_up.clear()
        if over := {pid for pid, at in self._kill_at.items() if now >= at}:
            signal_sessions(over, signal.SIGKILL)
            for pid in over:
                del self._kill_at[pid]
        if self._kill_at:
            self._loop.due(min(self._kill_at.values()))
        self._consoles.tick(now)

    def _signal(self, conduit: Conduit, number: int) -> None:
        if not 0 < number < 32:
            return
        group = conduit.terminal.foreground() if conduit.terminal is not None else 0
        try:
            for pid, (other, place) in self._by_pid.items():
                if other is conduit:
                    place.task.launcher.signal(pid, number, group=group)
            task = self._consoles.task_of(conduit) if group and conduit.lasting else None
            if task is not None and task.status is None:
                task.launcher.signal(task.pid, number, group=group)
        except OSError:
            pass  # it has just ended


def _variables(entries: list[str]) -> list[bytes]:
    """The entries that may be added to the environment of a job. Raises `CannotRun`."""
    found = [entry.encode("utf-8", "surrogateescape") for entry in entries]
    if any(b"\0" in entry or entry.find(b"=") < 1 for entry in found):
        raise CannotRun(126, "the environment has an entry that is not NAME=VALUE")
    # The variables that identify the job cannot be replaced.
    return [entry for entry in found if entry.partition(b"=")[0] not in OF_ONE_JOB]
