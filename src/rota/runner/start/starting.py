"""Fill free seats with leases, lowest rank first, and start their commands.

A lease that cannot be started now is handed back, and nothing is started for a while.
"""

from __future__ import annotations

import time

from rota.core.jobs.outcome import Outcome
from rota.launcher import procfs
from rota.launcher.base import Begun, CannotRun, Refused
from rota.runner import clock
from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.end.behaviours import Behaviours
from rota.runner.end.finishing import Finisher
from rota.runner.end.sampling import Sampling
from rota.runner.end.task_signals import TaskSignals
from rota.runner.end.verdict import failed_to_start
from rota.runner.launch.keeping import Keeping
from rota.runner.launch.launchers import Launchers
from rota.runner.log import say, say_exception
from rota.runner.loop import Loop
from rota.runner.output.pipe_pool import PipePool
from rota.runner.output.told_progress import ToldProgress
from rota.runner.report.journal import Journal, Void
from rota.runner.report.outbox import Outbox
from rota.runner.start.ahead import LeasesAhead
from rota.runner.start.command_setup import CommandSetup
from rota.runner.start.disk_room import DiskRoom
from rota.runner.start.hooks import NodeHooks
from rota.runner.start.seats import Seating
from rota.runner.task import Seat, Task
from rota.runner.task_table import TaskTable

_FIRST_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 5.0


class Starter:
    """Starts tasks."""

    def __init__(
        self,
        *,
        loop: Loop,
        launchers: Launchers,
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
        keeping: Keeping,
        special: CommandSetup,
        disk: DiskRoom,
        ahead: LeasesAhead,
        told: ToldProgress,
    ) -> None:
        self._loop = loop
        self._launchers = launchers
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
        self._keeping = keeping
        self._special = special
        self._disk = disk
        self._ahead = ahead
        self._told = told
        ahead.when_begun, ahead.when_in_doubt = self._began_by_itself, self._began_perhaps
        launchers.when_told = ahead.hear
        self.retry_at = 0.0  #: nothing is started before; 0: nothing was refused
        self._backoff_s = _FIRST_BACKOFF_S

    def tick(self, now: float) -> None:
        if self.retry_at > now:
            self._loop.due(self.retry_at)

    def follow(self, seat: Seat, task: Task) -> None:
        """This task has ended quietly: give its seat to the next lease of its queue at once, if there is one."""
        if not self.retry_at:
            if task.launcher.lasting:
                seat.quiet = True
                if self._ahead.follow(seat, task):
                    return
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
                if task is None and self._ahead.give_way(queue):
                    continue
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
            self._refuse(seat, task, str(why))
            return False
        except CannotRun as why:
            self._never_began(task, failed_to_start(why, task.started_at))
        except Exception:
            say_exception(f"cannot start job {task.key[0]}")
            self._refuse(seat, task, "unexpected error")
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
        task.launcher = launcher = self._launchers.new
        task.started_at = clock.now()
        if launcher.lasting:
            self._disk.demand()
        try:
            pipes = seat.pipes
            if pipes is None or pipes.launcher is not launcher:
                pipes = self._pool.exchange(seat, launcher)
            task.pipes = pipes
            self._journal.intend(task.block)
        except OSError as error:
            if launcher.lasting:
                self._disk.failed(error)
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
            if launcher.lasting:
                self._keeping.announce(task)
            text = self._told.command(seat, task, task.text) if env.tells else task.text
            pid = launcher.start_shell(task.key, text, env, env.cwd, pipes.held, share.bound)
            task.start_time = procfs.start_time_now()
        elif self._rules.current.prologue and not task.prepared:
            self._hooks.prepare(task, self.go_on)
            return
        else:
            begun = self._special.start(task)
            pid, task.start_time = begun.pid, begun.start_time
        self._began(task, pid, time.monotonic())

    def _began(self, task: Task, pid: int, now: float) -> None:
        task.pid = pid
        task.began = now
        task.pipes.task = task
        tasks = self._tasks
        tasks.by_key[task.key] = tasks.by_pid[pid] = task
        tasks.begun.append(task)
        if task.launcher.lasting:
            task.runs += 1
            # Of a plain shell its launcher knows by itself what has changed by its start.
            if task.text is None or self._rules.contain_first:
                tasks.changed[task] = None
            self._ahead.wanting[task.seat] = None
        if task.deadline is not None:
            self._loop.due(task.deadline)
            self._signals.began(task)
        self._sampling.began(now)

    def _began_by_itself(self, task: Task, begun: Begun, at: float) -> None:
        """Its launcher has started it ahead of us."""
        task.started_at = clock.now() - (time.monotonic() - at)
        task.start_time = begun.start_time
        self._began(task, begun.pid, at)

    def _began_perhaps(self, task: Task, doubt: CannotRun) -> None:
        task.started_at = clock.now()
        self._never_began(task, failed_to_start(doubt, task.started_at))

    def _refuse(self, seat: Seat, task: Task, why: str) -> None:
        """Hand a lease back because nothing can be started now, and wait a little longer each time."""
        key = task.key
        say(f"lease of job {key[0]} handed back: {why}")
        if task.launcher.lasting:
            self._tasks.released.append(task)
        self._journal.add(Void(*key))
        self._seating.vacate(seat, self._loop.now)
        self._outbox.give_back(key)
        self.retry_at = self._loop.now + self._backoff_s
        self._backoff_s = min(_MAX_BACKOFF_S, self._backoff_s * 2)
        self._loop.due(self.retry_at)
