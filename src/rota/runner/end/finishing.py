"""The end of a task whose processes are gone: keep its output, run behaviours and epilogue, record the outcome.

Every end that is not a quiet success passes through here.
"""

from __future__ import annotations

from rota.core.jobs.outcome import Outcome
from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.end.behaviours import Behaviours
from rota.runner.end.measure import Sampler
from rota.runner.end.verdict import judge
from rota.runner.enter.consoles import Consoles
from rota.runner.loop import Loop
from rota.runner.output.followers import COALESCE_S, Followers
from rota.runner.output.pipe_pool import PipePool
from rota.runner.output.segments import Segments
from rota.runner.output.streams import Streams
from rota.runner.report.outbox import bulk_of
from rota.runner.report.records import TaskRecords
from rota.runner.start.hooks import NodeHooks
from rota.runner.start.parts import Parts
from rota.runner.start.seats import Seating
from rota.runner.task import Seat, Task
from rota.runner.task_table import TaskTable


class Finisher:
    """Takes tasks through their end, step by step."""

    def __init__(
        self,
        *,
        loop: Loop,
        tasks: TaskTable,
        rules: CurrentRules,
        records: TaskRecords,
        seating: Seating,
        pool: PipePool,
        streams: Streams,
        followers: Followers,
        segments: Segments,
        sampler: Sampler,
        containment: Containment,
        consoles: Consoles,
        behaviours: Behaviours,
        hooks: NodeHooks,
        parts: Parts,
    ) -> None:
        self._loop = loop
        self._tasks = tasks
        self._rules = rules
        self._records = records
        self._seating = seating
        self._pool = pool
        self._streams = streams
        self._followers = followers
        self._segments = segments
        self._sampler = sampler
        self._containment = containment
        self._consoles = consoles
        self._behaviours = behaviours
        self._hooks = hooks
        self._parts = parts

    def finish(self, task: Task) -> None:
        """No process of this task is left."""
        if task.part:
            self._parts.emptied(task)
            return
        if task.doubtful:
            self._streams.drain(task.pipes)
        if self._followers and self._followers.reads(task) and self._waits_for_readers(task):
            return
        if task.console is not None:
            self._consoles.last_words(task)
        outcome: Outcome | None
        if task.behaviours is not None:
            outcome = self._behaviours.proceed(task, task.behaviours)
        else:
            outcome = judge(task, self._sampler, self._segments)
            if task.env.behaves:
                outcome = self._behaviours.begin(task, outcome)
        if outcome is not None:
            self.conclude(task, outcome)

    def _waits_for_readers(self, task: Task) -> bool:
        """Read the rest of its output. True: a reader must catch up before the task can end."""
        if task.reason:
            self._followers.unstrict(task)  # a job that is ended does not wait for its readers
        self._pool.resume(task.pipes.out)
        self._pool.resume(task.pipes.err)
        self._streams.drain(task.pipes)
        return not task.reason and self._followers.postpones(task)

    def tick(self, now: float) -> None:
        """Try again with tasks whose end waits for readers."""
        parked, self._followers.parked = self._followers.parked, {}
        for task in parked:
            self._streams.drain(task.pipes)
            self.finish(task)
        if self._followers.parked:
            self._loop.due(now + COALESCE_S)

    def conclude(self, task: Task, outcome: Outcome) -> None:
        """The outcome is known: run the site's epilogue, if there is one, then report."""
        if self._rules.current.epilogue:
            self._hooks.conclude(task, outcome, self.close)
        else:
            self.close(task, outcome)

    def close(self, task: Task, outcome: Outcome) -> None:
        """Record the end of a task and free its seat."""
        seat, pipes = task.seat, task.pipes
        task.over = True
        if outcome.returned is not None:
            self._records.outbox.bulk += bulk_of(outcome)
        self._records.end(task, outcome)
        self._tasks.by_key.pop(task.key, None)
        if self._followers or task.out is not None or task.err is not None:
            self._followers.ended(task, outcome)
        if task.console is not None:
            self._consoles.concluded(task, outcome)
        if seat.ahead:
            self._seating.unbind(seat)
        if not task.left:
            pipes.task = None
            if task.doubtful:
                self._pool.discard(pipes)
                seat.pipes = None
        self._containment.clean_up(task)
        if task.left:
            return  # its launcher has started the next one in its seat
        if task.suspended_since is not None:
            # It ended while it was suspended: its cores may be another's by now.
            self._seating.remove(seat, self._loop.now)
            self.seat_closed(seat)
        else:
            self._seating.vacate(seat, self._loop.now)

    def seat_closed(self, seat: Seat) -> None:
        """A seat is given back to the manager: free what it held."""
        self._records.outbox.closed.append(seat.id)
        self._containment.vacated(seat)
        if seat.pipes is not None:
            self._pool.give_back(seat.pipes)
            seat.pipes = None
