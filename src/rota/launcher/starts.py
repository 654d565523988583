"""Starts processes for an agent: writes the intent before and a record after, and keeps what the next agent
needs."""

from __future__ import annotations

from typing import Final

from rota.launcher import journal, procfs
from rota.launcher import messages as m
from rota.launcher.base import (
    Begun,
    CannotRun,
    Captured,
    Discarded,
    IntoFile,
    OnTerminal,
    Piped,
    Refused,
    StartOrder,
    Stdio,
)
from rota.launcher.frames import Broken
from rota.launcher.holdings import Holdings, Process
from rota.launcher.inside import InsideLauncher
from rota.launcher.log import say_exception
from rota.launcher.pump import Pump
from rota.launcher.variables import Variables

_MARK: Final = m.MARK + b"="


def intent_of(start: m.Start) -> journal.Intent:
    """The intent to journal before this start."""
    return journal.Intent(start.key, start.kind, start.serial)


class Starts:
    """Starts what agents order."""

    def __init__(self, inside: InsideLauncher, journal: journal.Journal, holdings: Holdings, pump: Pump) -> None:
        self._inside = inside
        self._journal = journal
        self._holdings = holdings
        self._pump = pump
        self.keep = 0  #: bytes kept of each stream

    def start(self, start: m.Start) -> tuple[m.Message, tuple[int, ...]]:
        """Start what an agent ordered. Returns the answer and its descriptors."""
        try:
            self._check(start)
            self._journal.intend(intent_of(start))
        except OSError as error:
            return m.NotStarted(True, f"the launcher cannot record it: {error}"), ()
        return self.start_intended(start)

    def start_intended(self, start: m.Start) -> tuple[m.Message, tuple[int, ...]]:
        """The same for an order whose intent is in the journal and whose pipes exist."""
        key = start.key
        known = key in self._holdings.tasks
        task = self._holdings.task(key)
        before = procfs.start_time_now()
        try:
            if isinstance(start.stdio, m.ToPipes):
                pipes = self._pump.by_number[start.stdio.pipes]
                self._pump.reset(pipes, self.keep)
                self._holdings.lend(task, pipes)
            begun = self._begin(start)
        except Exception as why:
            self._journal.add(journal.Void(key))
            if not known:
                self._holdings.release(key)
            if isinstance(why, CannotRun):
                return m.NotStarted(False, why.message, why.exit_code, why.reason, why.permanent), ()
            if not isinstance(why, Refused):
                say_exception("cannot start a process")
            return m.NotStarted(True, str(why)), ()
        start_time = begun.start_time
        if start_time != before:
            # It may have begun some ticks ago. It was not reaped yet, so the table shows it exactly.
            seen = procfs.process(begun.pid)
            start_time = start_time if seen is None else seen.start_time
        process = Process(task, start.kind, begun.pid, start_time)
        self._holdings.began(process)
        self._journal.add(journal.Spawned(key, start.kind, begun.pid, start_time, start.serial))
        task.cgroups.update(start.cgroups)
        task.mark = next((each[len(_MARK) :] for each in start.variables if each.startswith(_MARK)), task.mark)
        if not isinstance(start.stdio, m.ToAgent):
            process.fds = list(begun.fds)
        return m.Started(begun.pid, start_time, len(begun.fds), begun.unbound), begun.fds

    def _check(self, start: m.Start) -> None:
        if isinstance(start.stdio, m.ToPipes) and start.stdio.pipes not in self._pump.by_number:
            raise Broken("there are no such pipes")

    def _begin(self, start: m.Start) -> Begun:
        stdio = start.stdio
        if start.plain and isinstance(stdio, m.ToPipes):
            pid = self._inside.start_shell(
                start.key,
                start.argv[-1],
                Variables(start.variables, start.search),
                start.cwd,
                self._pump.by_number[stdio.pipes].pipes,
                start.cores,
            )
            return Begun(pid, procfs.start_time_now())
        return self._inside.start(self._order(start))

    def _order(self, start: m.Start) -> StartOrder:
        variables = Variables(start.variables, start.search)
        stdio: Stdio
        match start.stdio:
            case m.ToPipes(number, out, err):
                stdio = Captured(self._pump.by_number[number].pipes, out, err)
            case m.ToTerminal(rows, cols):
                stdio = OnTerminal(rows, cols)
            case m.ToAgent():
                stdio = Piped()
            case m.ToFile(directory):
                stdio = IntoFile(directory)
            case m.ToNothing():
                stdio = Discarded()
        words = start.path, start.argv
        return StartOrder(
            start.key,
            start.kind,
            words,
            variables,
            start.cwd,
            stdio,
            cgroups=start.cgroups,
            cores=start.cores,
            file=start.file,
        )
