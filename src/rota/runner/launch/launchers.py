"""All launchers of a runner: the one for new leases, and others that still hold tasks."""

from __future__ import annotations

import select
from collections.abc import Callable, Collection

from rota.launcher.base import Launcher
from rota.wire.orders import Rules


class Launchers:
    """Which launchers there are. Each task refers to its own."""

    def __init__(self, poll: select.epoll, new: Launcher) -> None:
        self._poll = poll
        self.new = new  #: starts the commands of new leases
        self.all: list[Launcher] = []
        self.when_gone: list[Callable[[Launcher], None]] = []  #: called with one before its removal
        #: Called with a launcher that may have decided about leases that it held.
        self.when_told: Callable[[Launcher], None] = lambda launcher: None
        self.by_fd: dict[int, Launcher] = {}  #: launchers that signal events by a descriptor
        self.add(new)

    def add(self, launcher: Launcher) -> None:
        """Watch a launcher: from now on its messages reach the runner."""
        self.all.append(launcher)
        if launcher.fd >= 0:
            self._poll.register(launcher.fd, select.EPOLLIN)
            self.by_fd[launcher.fd] = launcher

    def remove(self, launcher: Launcher) -> None:
        """Forget a launcher that is empty."""
        self.all.remove(launcher)
        if self.by_fd.pop(launcher.fd, None) is not None:
            self._poll.unregister(launcher.fd)

    @property
    def roots(self) -> list[int]:
        """The processes whose children are everything that was started, and all orphans."""
        return [launcher.pid for launcher in self.all]

    @property
    def own(self) -> Collection[int]:
        """Launchers that are children of this process."""
        return ()

    @property
    def fenced(self) -> bool:
        """Has another runner taken the place of this one?"""
        return False

    def queued(self) -> list[tuple[Launcher, int]]:
        """Children whose end was not returned by `reap` yet, and which are in no process table any more."""
        return []

    def look(self) -> None:
        """Check on launchers that have died or are no longer needed."""

    def hear(self) -> None:
        """Process what launchers report about leases that they held."""

    def catch_up(self) -> None:
        """Learn of everything that launchers have started by now."""

    def flush(self) -> None:
        """Send the messages of this turn to the launchers."""

    def obey(self, rules: Rules) -> None:
        """Let all of them follow these rules."""

    def end(self) -> None:
        """This runner leaves; it has no task left."""

    def children(self) -> int:
        """How many children all launchers have: see `Launcher.children`."""
        if len(self.all) == 1:
            return self.new.children()
        return sum(launcher.children() for launcher in self.all)

    def rest(self) -> None:
        """No job is left for now: keep no directory busy."""
        for launcher in self.all:
            launcher.rest()
