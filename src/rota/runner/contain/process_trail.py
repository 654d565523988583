"""Follows the processes of an attempt where no control group holds them.

They are identified by what they cannot easily lose: an earlier sighting, their session, their ancestors, the
lease in their environment. A process that sheds all four between two looks is not found here; the runner's
`ProcessFamily` still has it, as its sub-reaper. Sends no signals.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from rota.launcher import procfs
from rota.runner.contain import process_mark


class ProcessTrail:
    """The processes of one attempt."""

    def __init__(self, token: int | None = None) -> None:
        self._lease = b"" if token is None else process_mark.value(token)
        self._known: dict[int, int] = {}  #: pid -> start time
        self._sessions: dict[int, int] = {}  #: the same for leaders of sessions

    def add(self, pid: int) -> None:
        """Follow this process and what it starts."""
        seen = procfs.process(pid)
        if seen is not None:
            self._know(seen)

    def _know(self, seen: procfs.Process) -> None:
        self._known[seen.pid] = seen.start_time
        if seen.session == seen.pid:
            self._sessions[seen.pid] = seen.start_time

    def living(self, more: Iterable[int] = ()) -> list[procfs.Process]:
        """All living ones; `more`: pids that are known to belong to them."""
        table = procfs.table()
        children: dict[int, list[procfs.Process]] = {}
        for seen in table.values():
            children.setdefault(seen.ppid, []).append(seen)
        own, wanted = os.getpid(), set(more)
        stack = [seen for seen in table.values() if seen.pid in wanted or self._is_ours(seen, table)]
        tree = {seen.pid: seen for seen in stack}
        while stack:
            for child in children.get(stack.pop().pid, ()):
                if child.pid not in tree:
                    tree[child.pid] = child
                    stack.append(child)
        tree.pop(own, None)
        for seen in tree.values():
            self._know(seen)
        return [seen for seen in tree.values() if seen.alive]

    def _is_ours(self, seen: procfs.Process, table: dict[int, procfs.Process]) -> bool:
        if self._known.get(seen.pid) == seen.start_time:
            return True
        if seen.session in self._sessions:
            leader = table.get(seen.session)
            # A number is not used again while a session of that number is left.
            return leader is None or leader.start_time == self._sessions[seen.session]
        return (
            bool(self._lease)
            and seen.alive
            and procfs.environ_value(seen.pid, process_mark.VARIABLE) == self._lease
        )
