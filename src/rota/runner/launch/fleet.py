"""The launcher processes of an agent: one for new leases, others that hold older tasks.

If the launcher for new leases dies, another is started. Any other is told to leave once it is empty.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

from rota.launcher.base import Launcher
from rota.launcher.client.processes import start_launcher
from rota.launcher.client.remote import RemoteLauncher
from rota.launcher.trees import remove
from rota.runner.launch.launched import directory_of
from rota.runner.launch.launchers import Launchers
from rota.runner.launch.predecessor import save_rules
from rota.runner.log import say, say_all
from rota.runner.task import Task
from rota.runner.task_table import TaskTable
from rota.wire.orders import Rules

_LEAVES_S = 10.0
#: If no launcher can be started, it is tried again after this.
_AGAIN_S = 1.0
#: A launcher with running processes is asked at least this often: a job can stop it, and then it says nothing.
_ASK_EVERY_S = 10.0


class Fleet(Launchers):
    """All launchers of an agent."""

    new: RemoteLauncher

    def __init__(self, poll: select.epoll, directory: str, epoch: int, *, tasks: TaskTable) -> None:
        """Starts a launcher. Raises `OSError`."""
        self._directory = directory
        self._epoch = epoch
        self._tasks = tasks
        self._rules: Rules | None = None
        self._renew_at = 0.0
        self._ask_at = 0.0
        self._count = 0  #: of launchers that were started
        self._held: set[RemoteLauncher] = set()  #: all but that for new leases
        #: Called with the tasks of a launcher that this agent did not start, and that has died.
        self.when_lost: Callable[[RemoteLauncher, list[Task]], None] = lambda launcher, tasks: None
        super().__init__(poll, self._started())

    def adopt(self, launcher: RemoteLauncher) -> None:
        """Watch over one that an earlier agent has started."""
        self.add(launcher)
        self._held.add(launcher)

    @property
    def roots(self) -> list[int]:
        # The children of a dead launcher that this process has started are its own by now.
        living = [each.pid for each in self.all if isinstance(each, RemoteLauncher) and not each.dead]
        return living if len(living) == len(self.all) else [*living, os.getpid()]

    @property
    def own(self) -> set[int]:
        return {launcher.pid for launcher in self.all}

    def queued(self) -> list[tuple[Launcher, int]]:
        return [(each, pid) for each in self.all if isinstance(each, RemoteLauncher) for pid in each.queued]

    @property
    def fenced(self) -> bool:
        return any(isinstance(launcher, RemoteLauncher) and launcher.fenced for launcher in self.all)

    def obey(self, rules: Rules) -> None:
        """Let all of them follow these rules, and the next agent until it has others."""
        self._rules = rules
        try:
            save_rules(self._directory, rules)
        except OSError as error:
            say(f"the rules cannot be kept for the next agent: {error}")
        for launcher in self.all:
            if isinstance(launcher, RemoteLauncher):
                self._tell_rules(launcher, rules)

    def _tell_rules(self, launcher: RemoteLauncher, rules: Rules) -> None:
        launcher.obey(keep_output=rules.keep_output, orphan_after_s=rules.orphan_after_s, grace_s=rules.grace_s)

    def look(self) -> None:
        """Check on launchers that have died, hang, or are empty."""
        now = time.monotonic()
        if now >= self._ask_at:
            self._ask_at = now + _ASK_EVERY_S
            self._ask()
        if self.new.dead and time.monotonic() >= self._renew_at:
            self._renew()
        for launcher in list(self._held):
            try:
                self._look_at(launcher)
            except OSError as error:
                say(f"launcher {launcher.pid} cannot be let go: {error}")

    def _ask(self) -> None:
        """Ask a launcher for a sign of life. One that does not answer is killed and counts as dead."""
        for launcher in self.all:
            if isinstance(launcher, RemoteLauncher) and not (launcher.dead or launcher.idle):
                launcher.children()
                self.when_told(launcher)

    def hear(self) -> None:
        for launcher in self.all:
            self.when_told(launcher)

    def catch_up(self) -> None:
        if self._tasks.ahead:
            self.new.children()  # what it has begun is told before it answers
            self.hear()

    def flush(self) -> None:
        for launcher in self.all:
            launcher.flush()

    def _look_at(self, launcher: RemoteLauncher) -> None:
        """Let go of a launcher that is dead, or that is not needed any more. Raises `OSError`."""
        tasks = [task for task in self._tasks.by_key.values() if task.launcher is launcher]
        if launcher.dead and not launcher.own:
            self.when_lost(launcher, tasks)
            self._let_go(launcher)
        elif not tasks and launcher.idle and not self._waits(launcher):
            launcher.leave()
            self._let_go(launcher)

    def _waits(self, launcher: RemoteLauncher) -> bool:
        """Is the end of one of its tasks not in the journal yet?"""
        table = self._tasks
        return any(task.launcher is launcher for task in (*table.quiet, *table.released))

    def _started(self) -> RemoteLauncher:
        """Another launcher, in a directory of its own. Raises `OSError`."""
        self._count += 1
        return start_launcher(directory_of(self._directory, self._epoch, self._count), self._epoch)

    def _renew(self) -> None:
        before = self.new
        try:
            launcher = self._started()
        except OSError as error:
            say(f"no launcher can be started: {error}")
            self._renew_at = time.monotonic() + _AGAIN_S
            return
        self.new = launcher
        self._held.add(before)
        self.add(launcher)
        if self._rules is not None:
            self._tell_rules(launcher, self._rules)

    def _let_go(self, launcher: RemoteLauncher) -> None:
        for gone in self.when_gone:
            gone(launcher)
        self._held.discard(launcher)
        self.remove(launcher)
        if launcher.dead:
            say_all(remove(launcher.directory))
        launcher.close()

    def end(self) -> None:
        """This agent leaves; it has no task left."""
        for launcher in [*self._held, self.new]:
            if not launcher.dead:
                launcher.leave()
        give_up = time.monotonic() + _LEAVES_S
        for launcher in [*self._held, self.new]:
            while not launcher.dead and time.monotonic() < give_up:
                select.select([launcher.fd], [], [], 0.1)
                launcher.receive()
            if os.path.isdir(launcher.directory):
                say_all(remove(launcher.directory))
