"""Fill free seats with leases, lowest rank first, and start their commands.

A lease that cannot be started now is handed back, and nothing is started for a while.
"""

from __future__ import annotations

import time

from rota.core.jobs.outcome import Outcome
from rota.runner import clock
from rota.runner.contain import procfs
from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.end.behaviours import Behaviours
from rota.runner.end.finishing import Finisher
from rota.runner.end.sampling import Sampling
from rota.runner.end.task_signals import TaskSignals
from rota.runner.end.verdict import failed_to_start
from rota.runner.log import say, say_exception
from rota.runner.loop import Loop
from rota.runner.output.pipe_pool import PipePool
from rota.runner.report.journal import Journal, Key, Void
from rota.runner.report.outbox import Outbox
from rota.runner.start.allocation import bind_child
from rota.runner.start.command_setup import CommandSetup
from rota.runner.start.hooks import NodeHooks
from rota.runner.start.process import CannotRun, Refused, start_shell
from rota.runner.start.seats import Seating
from rota.runner.task import Seat, Task
from rota.runner.task_table import TaskTable

_FIRST_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 5.0


class Launcher:
    """Starts tasks."""

    def __init__(
        self,
        *,
        loop: Loop,
        tasks: TaskTable,
        rules: CurrentRules,
        journal: Journal,
        outbox: Outbox,
        seating: Seating,
        pool: PipePool,
        containment: Containment,
        sampling: Sampling,
        task_signals: TaskSignals,
        behaviours: Behaviours,
        hooks: NodeHooks,
        finisher: Finisher,
        special: CommandSetup,
    ) -> None:
        self._loop = loop
        self._tasks = tasks
        self._rules = rules
        self._journal = journal
        self._outbox = outbox
        self._seating = seating
        self._pool = pool
        self._containment = containment
        self._sampling = sampling
        self._signals = task_signals
        self._behaviours = behaviours
        self._hooks = hooks
        self._finisher = finisher
        self._special = special
        self.retry_at = 0.0  #: nothing is started before; 0: nothing was refused
        self._backoff_s = _FIRST_BACKOFF_S

    def tick(self, now: float) -> None:
        if self.retry_at > now:
            self._loop.due(self.retry_at)

    def follow(self, seat: Seat) -> None:
        """Give this seat to the next lease of its queue at once, if there is one."""
        if not self.retry_at:
            following = self._seating.take(seat.queue)
            if following is not None:
                self._try(seat, following)
                return
        self._seating.vacate(seat, self._loop.now)

    def fill(self) -> None:
        """Start the leases of lowest rank in the free seats, and give back seats without a lease."""
        if self._loop.now < self.retry_at:
            self._loop.due(self.retry_at)
            return
        seating = self._seating
        fillable, seating.fillable = seating.fillable, {}
        for queue in fillable:
            while queue.free:
                task = seating.take(queue)
                if task is None:
                    for seat in seating.close(queue):
                        self._finisher.seat_closed(seat)
                    break
                if not self._try(queue.free.pop(), task):
                    seating.fillable.update(fillable)
                    return
        if self.retry_at:
            self.retry_at, self._backoff_s = 0.0, _FIRST_BACKOFF_S

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
            self._refuse(seat, task.key, "unexpected error")
            return False
        return True

    def go_on(self, task: Task) -> None:
        """The prologue of a task, which has its seat, is done."""
        if not self._try(task.seat, task):
            self._containment.clean_up(task)

    def _never_began(self, task: Task, outcome: Outcome) -> None:
        whole: Outcome | None = outcome
        if task.env.behaves:
            whole = self._behaviours.begin(task, outcome)
        if whole is not None:
            self._finisher.conclude(task, whole)

    def _start(self, seat: Seat, task: Task) -> None:
        task.seat = seat
        task.started_at = clock.now()
        try:
            pipes = seat.pipes
            if pipes is None:
                pipes = seat.pipes = self._pool.lend()
            task.pipes = pipes
            self._journal.intend(task.block)
        except OSError as error:
            raise Refused(f"cannot prepare: {error}") from None
        env = task.env
        env.fill(task.job_entry, task.key[1], task.lease_entry)
        if task.index_entry is not None:
            env.at_index(task.index_entry)
        share = seat.share
        if share is None or task.text is None:
            share = self._containment.share(task)
        task.share = share
        env.on_cores(share.entry)
        if task.text is not None and not self._rules.contain_first:
            pid = start_shell(task.text, env, pipes)
            if share.binds:
                bind_child(pid, share.cores)
        elif self._rules.current.prologue and not task.prepared:
            self._hooks.prepare(task, self.go_on)
            return
        else:
            pid = self._special.start(task)
        task.pid = pid
        task.start_time = procfs.start_time_now()
        task.began = now = time.monotonic()
        pipes.task = task
        tasks = self._tasks
        tasks.by_key[task.key] = tasks.by_pid[pid] = task
        tasks.begun.append(task)
        if task.deadline is not None:
            self._loop.due(task.deadline)
            self._signals.began(task)
        self._sampling.began(now)

    def _refuse(self, seat: Seat, key: Key, why: str) -> None:
        """Hand a lease back because nothing can be started now, and wait a little longer each time."""
        say(f"lease of job {key[0]} handed back: {why}")
        self._journal.add(Void(*key))
        self._seating.vacate(seat, self._loop.now)
        self._outbox.give_back(key)
        self.retry_at = self._loop.now + self._backoff_s
        self._backoff_s = min(_MAX_BACKOFF_S, self._backoff_s * 2)
        self._loop.due(self.retry_at)
