"""Processes that a client starts inside a running job (`rota exec`), at this end of their channel.

They belong to the job: they are in its control group and on its cores, are measured with it, and end with it at
the latest. When the client goes away they are hung up.
"""

from __future__ import annotations

import os
import pwd
import signal
from contextlib import ExitStack

from rota.runner import libc
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
from rota.runner.start import process
from rota.runner.start.environment import OF_ONE_JOB
from rota.runner.start.process import CannotRun, Refused
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
        cmd = start.cmd or [_shell(variables.value(b"SHELL"))]
        cwd = start.cwd.encode("utf-8", "surrogateescape") or place.cwd
        words = process.words_of(cmd, pipefail=False)
        with ExitStack() as afterwards:
            conduit, actions_at = self._streams(start, afterwards)
            try:
                pid = place.start(words, variables, actions_at, cwd=cwd)
            except BaseException:
                conduit.close()
                raise
        place.adopted(pid)
        self._by_pid[pid] = (conduit, place)
        self._conduits.by_n[start.n] = conduit
        conduit.welcome()

    def _streams(self, start: c.StartChannel, afterwards: ExitStack) -> tuple[Conduit, int]:
        """The conduit of a process, and what that is to do with its descriptors."""
        try:
            if start.tty:
                terminal = Terminal(start.rows, start.cols)
                conduit = self._conduits.make(start.n, terminal.fd, {terminal.fd: c.STDOUT}, terminal=terminal)
                afterwards.callback(terminal.started)
                return conduit, terminal.actions_at
            with ExitStack() as unless_all:
                pipes = []
                for _ in range(3):
                    pipes.append(os.pipe())
                    for fd in pipes[-1]:
                        unless_all.callback(os.close, fd)
                unless_all.pop_all()
        except OSError as error:
            raise Refused(f"cannot prepare: {error.strerror}") from None
        (theirs, inp), (out, out_write), (err, err_write) = pipes
        for fd in (inp, out, err):
            os.set_blocking(fd, False)
        for fd in (theirs, out_write, err_write):
            afterwards.callback(os.close, fd)
        actions = libc.FileActions([(theirs, 0), (out_write, 1), (err_write, 2)])
        afterwards.callback(actions.close)
        return self._conduits.make(start.n, inp, {out: c.STDOUT, err: c.STDERR}), actions.address

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
        for pid, (other, _) in self._by_pid.items():
            if other is conduit and not (group and _in_session(group, pid)):
                group = pid  # not reaped: the number is its own
        if group > 1:
            try:
                os.killpg(group, number)
            except OSError:
                pass


def _in_session(group: int, leader: int) -> bool:
    """Is this process group still one of this session? A terminal remembers the number of one that is gone."""
    try:
        return os.getsid(group) == leader
    except ProcessLookupError:
        return True  # its leader is gone: the number of a living group is not reused
    except OSError:
        return False


def _variables(entries: list[str]) -> list[bytes]:
    """The entries that may be added to the environment of a job. Raises `CannotRun`."""
    found = [entry.encode("utf-8", "surrogateescape") for entry in entries]
    if any(b"\0" in entry or entry.find(b"=") < 1 for entry in found):
        raise CannotRun(126, "the environment has an entry that is not NAME=VALUE")
    # The variables that identify the job cannot be replaced.
    return [entry for entry in found if entry.partition(b"=")[0] not in OF_ONE_JOB]


def _shell(given: bytes) -> str:
    """The user's shell."""
    if given.startswith(b"/") and os.access(given, os.X_OK):
        return os.fsdecode(given)
    try:
        return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return "/bin/sh"
