"""Fill free seats with leases, lowest rank first, and start their commands.

What cannot be started now is handed back, and nothing is started for a while.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rota.core.jobs.job import Outcome
from rota.runner import clock
from rota.runner.contain import procfs
from rota.runner.end.verdict import failed_to_start
from rota.runner.log import say, say_exception
from rota.runner.report.journal import Key, Void
from rota.runner.start.allocation import bind_child
from rota.runner.start.process import CannotRun, Refused, start_shell
from rota.runner.start.special import Special
from rota.runner.task import Line, Seat, Task

if TYPE_CHECKING:
    from rota.runner.agent import Agent

_FIRST_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 5.0


class Beginnings:
    """Starts the tasks of an agent."""

    def __init__(self, agent: Agent, null: int) -> None:
        self._agent = agent
        self._special = Special(agent, null)
        self.dirty: dict[Line, None] = {}  #: lines with a free seat
        self.retry_at = 0.0  #: nothing is started before; 0: nothing was refused
        self._backoff_s = _FIRST_BACKOFF_S

    def tick(self, now: float) -> None:
        if self.retry_at > now:
            self._agent.due(self.retry_at)

    def vacate(self, seat: Seat) -> None:
        """The seat is free; `fill` comes to it."""
        self._agent.worked_at = self._agent.now
        seat.line.free.append(seat)
        self.dirty[seat.line] = None

    def follow(self, seat: Seat) -> None:
        """The next of its line takes this seat at once, if there is one."""
        if not self.retry_at:
            following = self._agent.seating.take(seat.line)
            if following is not None:
                self._try(seat, following)
                return
        self.vacate(seat)

    def fill(self) -> None:
        """Start the leases of lowest rank in the free seats, and give back seats without a lease."""
        agent = self._agent
        if agent.now < self.retry_at:
            agent.due(self.retry_at)
            return
        dirty, self.dirty = self.dirty, {}
        for line in dirty:
            while line.free:
                task = agent.seating.take(line)
                if task is None:
                    self._close_seats(line)
                    break
                if not self._try(line.free.pop(), task):
                    self.dirty.update(dirty)
                    return
        if self.retry_at:
            self.retry_at, self._backoff_s = 0.0, _FIRST_BACKOFF_S

    def _close_seats(self, line: Line) -> None:
        for seat in self._agent.seating.close(line):
            self._closed(seat)

    def close(self, seat: Seat) -> None:
        """Give back the seat of a task that ended while it was suspended: its cores may be another's by now."""
        self._agent.worked_at = self._agent.now
        self._agent.seating.remove(seat)
        self._closed(seat)

    def _closed(self, seat: Seat) -> None:
        agent = self._agent
        agent.outbox.closed.append(seat.id)
        agent.endings.holding.vacated(seat)
        if seat.pipes is not None:
            agent.streams.give_back(seat.pipes)
            seat.pipes = None

    def _try(self, seat: Seat, task: Task) -> bool:
        """Execute a lease. False: not now; it was handed back and nothing is started for a while."""
        try:
            self._start(seat, task)
        except Refused as why:
            self._refuse(seat, task.key, str(why))
            return False
        except CannotRun as why:
            self._never_began(task, failed_to_start(why, task.started_at))
        except Exception:
            say_exception(f"cannot start job {task.key[0]}")
            self._refuse(seat, task.key, "an unexpected fault")
            return False
        return True

    def go_on(self, task: Task) -> None:
        """The prologue of a task, which has its seat, is done."""
        if not self._try(task.seat, task):
            self._agent.endings.clean_up(task)

    def _never_began(self, task: Task, outcome: Outcome) -> None:
        whole: Outcome | None = outcome
        if task.env.behaves:
            whole = self._agent.behaviours.begin(task, outcome)
        if whole is not None:
            self._agent.conclude(task, whole)

    def _start(self, seat: Seat, task: Task) -> None:
        agent = self._agent
        task.seat = seat
        task.started_at = clock.now()
        try:
            pipes = seat.pipes
            if pipes is None:
                pipes = seat.pipes = agent.streams.lend()
            task.pipes = pipes
            agent.journal.intend(task.block)
        except OSError as error:
            raise Refused(f"cannot prepare: {error}") from None
        env = task.env
        env.fill(task.job_entry, task.key[1], task.lease_entry)
        if task.index_entry is not None:
            env.at_index(task.index_entry)
        share = seat.share
        if share is None or task.text is None:
            share = agent.endings.holding.share(task)
        task.share = share
        env.on_cores(share.entry)
        if task.text is not None and not agent.contain_first:
            pid = start_shell(task.text, env, pipes)
            if share.binds:
                bind_child(pid, share.cores)
        elif agent.rules.prologue and not task.prepared:
            agent.hooks.prepare(task)
            return
        else:
            pid = self._special.start(task)
        task.pid = pid
        task.start_time = procfs.start_time_now()
        task.began = now = time.monotonic()
        pipes.task = task
        agent.tasks[task.key] = agent.by_pid[pid] = task
        agent.begun.append(task)
        if task.deadline is not None:
            agent.due(task.deadline)
            agent.warnings.began(task)
        agent.endings.began(now)

    def _refuse(self, seat: Seat, key: Key, why: str) -> None:
        """Hand a lease back because nothing can be started now, and wait a little longer each time."""
        agent = self._agent
        say(f"lease of job {key[0]} handed back: {why}")
        agent.journal.add(Void(*key))
        self.vacate(seat)
        agent.outbox.give_back(key)
        self.retry_at = agent.now + self._backoff_s
        self._backoff_s = min(_MAX_BACKOFF_S, self._backoff_s * 2)
        agent.due(self.retry_at)
