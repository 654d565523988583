"""The terminals of interactive jobs. One without a client is kept for a while, then hung up."""

from __future__ import annotations

import signal

from rota.core.jobs.outcome import Outcome
from rota.launcher.base import CannotRun
from rota.runner.contain.signals import signal_sessions
from rota.runner.current_rules import CurrentRules
from rota.runner.end.termination import Terminator
from rota.runner.enter.exec_stream import Conduit
from rota.runner.enter.exec_streams import Conduits
from rota.runner.enter.terminal import Terminal
from rota.runner.log import say
from rota.runner.loop import Loop
from rota.runner.output.capture import Capture
from rota.runner.task import Task
from rota.runner.task_table import TaskTable
from rota.wire import channels as c


class Consoles:
    """The terminals of a runner's tasks."""

    def __init__(
        self, *, loop: Loop, tasks: TaskTable, rules: CurrentRules, conduits: Conduits, terminator: Terminator
    ) -> None:
        self._loop = loop
        self._tasks = tasks
        self._rules = rules
        self._conduits = conduits
        self._terminator = terminator
        self._hang_up_at: dict[Task, float] = {}  #: terminals without a client

    # -------------------------------------------------------------- the beginning

    def began(self, task: Task, fd: int) -> None:
        """The command of a job runs on this terminal."""
        terminal = Terminal(fd)
        task.console = self._conduits.make(None, fd, {fd: c.STDOUT}, terminal=terminal, lasting=True)
        task.plain = False
        task.console.welcome()
        self._await(task)

    def adopt(self, task: Task, fd: int) -> None:
        """The command of a job runs on this terminal, which an earlier runner has opened."""
        self.began(task, fd)
        assert task.console is not None
        task.console.continues = True

    def task_of(self, console: Conduit) -> Task | None:
        """The task whose terminal this is."""
        return next((task for task in self._tasks.by_key.values() if task.console is console), None)

    # -------------------------------------------------------------- attaching

    def attach(self, start: c.StartChannel) -> tuple[Conduit, int | None]:
        """The terminal of a job, and the channel number of the client that is attached now. Raises `CannotRun`."""
        task = self._tasks.by_key.get((start.job, start.attempt, start.token))
        console = task.console if task is not None else None
        if task is None or console is None or console.closed:
            raise CannotRun(None, f"job {start.job} has no terminal here")
        self._hang_up_at.pop(task, None)
        if console.terminal is not None:
            console.terminal.resize(start.rows, start.cols)
        return console, console.n

    def left(self, console: Conduit, *, lost: bool) -> None:
        """The client has gone: for good, or because its connection was lost."""
        task = self.task_of(console)
        if task is None:
            console.close()
        elif lost:
            console.detach()
            self._await(task)
        else:
            self._hang_up(task)

    def _await(self, task: Task) -> None:
        """Wait a limited time for a client."""
        self._hang_up_at[task] = self._loop.now + self._rules.current.interactive_grace_s
        self._loop.due(self._hang_up_at[task])

    def _hang_up(self, task: Task) -> None:
        self._hang_up_at.pop(task, None)
        if task.status is None and task.kill_at is None and not task.over:
            signal_sessions({task.pid}, signal.SIGHUP)
            self._terminator.end(task, self._loop.now, reason="signal", message="its terminal was hung up")
        if task.console is not None:
            task.console.close()

    def tick(self, now: float) -> None:
        for task, at in list(self._hang_up_at.items()):
            if task.over or task.key not in self._tasks.by_key:
                del self._hang_up_at[task]
            elif now >= at:
                say(f"no client at the terminal of job {task.key[0]}: hanging up")
                self._hang_up(task)
            else:
                self._loop.due(at)

    # -------------------------------------------------------------- the end

    def last_words(self, task: Task) -> None:
        """The processes of an interactive job are gone. What no client has received is kept as its output."""
        console = task.console
        if console is None or console.closed:
            return
        rest = console.rest()
        if console.n is None and rest:
            task.out = Capture(self._rules.current.keep_output)
            task.out.add(rest)

    def concluded(self, task: Task, outcome: Outcome) -> None:
        """The outcome is known: tell the client that is attached."""
        console, task.console = task.console, None
        self._hang_up_at.pop(task, None)
        if console is None or console.closed:
            return
        n = console.n
        console.exited(outcome.exit_code, outcome.signal)
        if n is not None:
            self._conduits.forget_closed(n)
