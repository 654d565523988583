"""Hands leases to a lasting launcher ahead of their start, so that no seat waits for this process between jobs.

Each is bound to a seat and follows another lease there; its launcher starts it by itself if that one ends quietly.
Until then it waits like any lease without a seat. It can be taken back: the launcher then promises not to start
it. Only what a plain shell runs is handed over, and only where nothing is to be done between two jobs.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rota.launcher.base import Begun, CannotRun, Launcher, Refused
from rota.runner.current_rules import CurrentRules
from rota.runner.launch.keeping import Keeping
from rota.runner.launch.launchers import Launchers
from rota.runner.log import say
from rota.runner.loop import Loop
from rota.runner.output.followers import Followers
from rota.runner.output.told_progress import ToldProgress
from rota.runner.report.connection import Connection
from rota.runner.report.journal import Journal, Void
from rota.runner.start.disk_room import DiskRoom
from rota.runner.start.seats import Seating
from rota.runner.task import LeaseQueue, Seat, Task
from rota.runner.task_table import TaskTable

#: Leases ahead of each seat: with one, the launcher would wait for this process whenever two jobs end in a row.
DEPTH = 2


class LeasesAhead:
    """Hands leases over, takes them back, and hears what became of them."""

    def __init__(
        self,
        *,
        loop: Loop,
        launchers: Launchers,
        tasks: TaskTable,
        rules: CurrentRules,
        journal: Journal,
        seating: Seating,
        connection: Connection,
        followers: Followers,
        keeping: Keeping,
        disk: DiskRoom,
        told: ToldProgress,
    ) -> None:
        self._loop = loop
        self._launchers = launchers
        self._tasks = tasks
        self._rules = rules
        self._journal = journal
        self._seating = seating
        self._connection = connection
        self._followers = followers
        self._keeping = keeping
        self._disk = disk
        self._told = told
        self.wanting: dict[Seat, None] = {}  #: seats that should have more leases ahead
        #: Called with a task that its launcher has begun, and the time of that; the second, if that is in doubt.
        self.when_begun: Callable[[Task, Begun, float], None] = lambda task, begun, at: None
        self.when_in_doubt: Callable[[Task, CannotRun], None] = lambda task, why: None
        seating.recall = self.take_back

    # -------------------------------------------------------------- handing over

    def fill(self) -> None:
        """Hand leases over to the seats that should have more, each in its turn."""
        wanting, self.wanting = self.wanting, {}
        for _ in range(DEPTH):
            for seat in list(wanting):
                if len(seat.ahead) >= DEPTH or not self._taken(seat) or not self._hand_over(seat):
                    del wanting[seat]

    def follow(self, seat: Seat, task: Task) -> bool:
        """This task has just ended quietly in its seat: let the next one follow. False: none was handed over."""
        if seat.ahead:
            seat.waits = True  # its launcher is about to tell what it did
        elif self._may(seat, task) and self._hand_over(seat):
            seat.waits = True
        else:
            return False
        self.wanting[seat] = None
        return True

    def _taken(self, seat: Seat) -> bool:
        """Does this seat have a job, or a lease ahead, that another may follow?"""
        before = None if seat.pipes is None else seat.pipes.task
        return before is not None and (not before.over or bool(seat.ahead)) and self._may(seat, before)

    def _may(self, seat: Seat, before: Task) -> bool:
        pipes, launcher, rules = seat.pipes, self._launchers.new, self._rules
        if pipes is None or pipes.launcher is not launcher or not launcher.lasting or not seat.quiet:
            return False
        if rules.contain_first or rules.current.prologue or rules.current.epilogue or self._followers:
            return False
        return before is pipes.task and before.seat is seat and seat.share is not None and before.plain

    def _hand_over(self, seat: Seat) -> bool:
        task = self._seating.pick(seat.queue)
        if task is None:
            return False
        pipes, share, env = seat.pipes, seat.share, task.env
        assert pipes is not None
        assert pipes.task is not None
        assert share is not None
        if task.text is None:
            self._seating.wait_again(task)
            return False
        task.seat, task.pipes, task.share = seat, pipes, share
        task.launcher = launcher = self._launchers.new
        before = seat.ahead[-1] if seat.ahead else pipes.task
        task.fill_environment()
        try:
            self._disk.demand()
            self._journal.intend(task.block)
            launcher.hold(
                task.key,
                self._told.command(seat, task, task.text) if env.tells else task.text,
                env,
                env.cwd,
                pipes.held,
                share.bound,
                after=before.key,
                note=self._keeping.note_of_held(task),
                until=self._expiry(),
            )
        except (OSError, Refused) as why:
            say(f"lease of job {task.key[0]} is not handed over: {why}")
            self._journal.add(Void(*task.key))
            self._seating.wait_again(task)
            return False
        task.follows = before
        seat.ahead.append(task)
        self._tasks.ahead[task.key] = task
        return True

    def _expiry(self) -> float:
        """Without a manager for so long this process would drop its leases."""
        connection = self._connection
        last = self._loop.now if connection.joined else connection.disconnected_since
        return last + self._rules.current.orphan_after_s

    # -------------------------------------------------------------- taking back

    def take_back(self, task: Task) -> bool:
        """A task that waits must not be started by its launcher: it waits on. False: it has begun, or its end is
        known."""
        if task.key not in self._tasks.ahead:
            return True
        if task.launcher.withdraw(task.key):
            self._waits_again(task)
        self.hear(task.launcher)
        return task.key in self._seating.waiting

    def give_way(self, queue: LeaseQueue) -> bool:
        """There is a free seat and no lease for it: let one that is ahead of another seat wait again. False: there
        is none."""
        bound = [seat for seat in self._seating.seats.values() if seat.queue is queue and seat.ahead]
        if not bound:
            return False
        self.take_back(max(bound, key=lambda seat: len(seat.ahead)).ahead[-1])
        return True

    def reconsider(self) -> None:
        """Leases have come: none of a higher rank may be ahead of them."""
        for task in list(self._tasks.ahead.values()):
            heap = task.queue.heap
            if heap and heap[0][0] < task.grant.rank and task.key in self._tasks.ahead:
                self.take_back(task)

    def take_all_back(self) -> None:
        """Hand over nothing under rules that no longer hold."""
        for task in list(self._tasks.ahead.values()):
            self.take_back(task)

    def _waits_again(self, task: Task) -> None:
        self._remove(task)
        self._journal.add(Void(*task.key))
        task.noted, task.follows = b"", None
        self._seating.wait_again(task)
        seat = task.seat
        if seat.waits and not seat.ahead:
            seat.waits = False
            self._seating.vacate(seat, self._loop.now)

    def _remove(self, task: Task) -> None:
        del self._tasks.ahead[task.key]
        task.seat.ahead.remove(task)

    # -------------------------------------------------------------- what became of them

    def hear(self, launcher: Launcher) -> None:
        """Take in what a launcher has done with what it held."""
        for fate in launcher.decided():
            task = self._tasks.ahead[fate.key]
            if fate.begun is not None:
                self._begun(task, fate.begun, fate.at)
            elif fate.doubt is not None:
                self._begun_perhaps(task, fate.doubt)
            else:
                task.seat.quiet = False
                self._waits_again(task)

    def _begun(self, task: Task, begun: Begun, at: float) -> None:
        seat = task.seat
        self._remove(task)
        self._seating.leave(task)
        before, task.follows = task.follows, None
        if before is not None:
            before.left = True
        seat.waits = False
        self.wanting[seat] = None
        self.when_begun(task, begun, min(at, time.monotonic()))

    def _begun_perhaps(self, task: Task, doubt: CannotRun) -> None:
        self._remove(task)
        self._seating.leave(task)
        task.follows = None
        task.seat.waits = False
        self.when_in_doubt(task, doubt)
