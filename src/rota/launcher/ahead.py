"""Leases held ahead: the launcher starts each by itself, as soon as the one before it in its seat has ended
quietly.

Quietly means that the agent has nothing left to do for that lease: it succeeded, wrote nothing, had no fence and
no limits, and left no process. In any other case the agent decides, and is told that the lease was dropped.
Nothing is started for an agent that is gone, after a withdrawal was acknowledged, or when the lease has expired.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from rota.launcher import journal
from rota.launcher import messages as m
from rota.launcher.base import Key
from rota.launcher.frames import Broken
from rota.launcher.holdings import Holdings, Task
from rota.launcher.pump import Pump
from rota.launcher.starts import Starts, intent_of

#: More leases than any agent hands over.
_MOST: Final = 65536


class Ahead:
    """The leases held ahead. They are not in the journal."""

    def __init__(
        self,
        journal: journal.Journal,
        holdings: Holdings,
        pump: Pump,
        starts: Starts,
        *,
        attended: Callable[[], bool],
    ) -> None:
        """`attended`: is there an agent for which a process may be started?"""
        self._journal = journal
        self._holdings = holdings
        self._pump = pump
        self._starts = starts
        self._attended = attended
        self._by_key: dict[Key, m.Hold] = {}
        self._by_former: dict[Key, Key] = {}  #: the lease before -> what is held after it

    def hold(self, hold: m.Hold) -> list[m.Message]:
        """Hold this lease. Returns what to tell the agent. Raises `Broken`."""
        key, after, stdio = hold.start.key, hold.after, hold.start.stdio
        if not isinstance(stdio, m.ToPipes) or hold.start.kind != "command" or len(self._by_key) >= _MOST:
            raise Broken("it wants something held that cannot be")
        if key in self._by_key or key in self._holdings.tasks or after in self._by_former:
            raise Broken("it wants something held twice")
        before = self._holdings.tasks.get(after)
        if after not in self._by_key and (before is None or (not before.runs and not before.quiet)):
            return [m.Dropped(key)]  # the lease before has ended otherwise
        self._by_key[key] = hold
        self._by_former[after] = key
        if before is None or before.runs:
            return []
        before.quiet = False  # once only
        following = self.following(before)
        if following is None:
            return self.drop_after(after)
        try:
            self._journal.intend(intent_of(following))
        except OSError:
            return self.drop_after(after)
        return self.start(following, before)

    def __contains__(self, key: Key) -> bool:
        return key in self._by_key

    def withdraw(self, key: Key) -> list[m.Message]:
        """Drop this lease and all that are held after it. Returns what to tell the agent."""
        hold = self._by_key.pop(key, None)
        if hold is None:
            return [m.Withdrawn(False)]
        del self._by_former[hold.after]
        return [*self.drop_after(key), m.Withdrawn(True)]

    def clear(self) -> None:
        """The agent has disconnected: drop everything."""
        self._by_key.clear()
        self._by_former.clear()

    def following(self, task: Task) -> m.Start | None:
        """The lease to start now that this one has ended quietly."""
        key = self._by_former.get(task.key)
        hold = None if key is None else self._by_key[key]
        if hold is None or not isinstance(hold.start.stdio, m.ToPipes):
            return None
        same = task.pipes is not None and task.pipes.number == hold.start.stdio.pipes
        return hold.start if same and time.monotonic() < hold.until and self._attended() else None

    def start(self, start: m.Start, before: Task) -> list[m.Message]:
        """Start a lease whose intent is in the journal. Returns what to tell the agent."""
        key = start.key
        self._holdings.task(key).note = self._by_key[key].note
        answer, _ = self._starts.start_intended(start)
        if not isinstance(answer, m.Started):
            self._holdings.release(key)
            return self.drop_after(before.key)  # the agent finds out why
        del self._by_key[key], self._by_former[before.key]
        return [m.Begun(key, answer.pid, answer.start_time, time.monotonic())]

    def drop_after(self, key: Key) -> list[m.Message]:
        """Drop what is held after this lease. Returns what to tell the agent."""
        told: list[m.Message] = []
        following = self._by_former.pop(key, None)
        while following is not None:
            self._by_key.pop(following, None)
            told.append(m.Dropped(following))
            following = self._by_former.pop(following, None)
        return told

    def ended_quietly(self, task: Task, status: int) -> bool:
        """Did this lease, whose last process ended with this status, end quietly?"""
        if status or len(task.processes) != 1 or task.cgroups or task.end_at is not None or task.pipes is None:
            return False
        return not any(spool.total for spool in task.pipes.spools) and not task.ended_for
