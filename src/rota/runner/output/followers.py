"""Live output: sent to each follower from the beginning, then as it comes, at the follower's own pace.

A follower that only watches never slows a job: it misses what memory has no room for. An attached one gets every
byte: what it has not consumed waits on disk, and when the disk is full the job waits until the follower catches up
or goes away.
"""

from __future__ import annotations

from rota.core.jobs.outcome import Outcome
from rota.runner.current_rules import CurrentRules
from rota.runner.loop import Loop
from rota.runner.output.audience import Audience, Follower
from rota.runner.output.capture import Captured
from rota.runner.output.pipe_pool import PipePool
from rota.runner.report.connection import Connection
from rota.runner.task import Task
from rota.runner.task_table import TaskTable
from rota.spool import Spool
from rota.wire import codec
from rota.wire.greeting import Chunk
from rota.wire.reports import Full, Live, LiveEnd

COALESCE_S = 0.03
_PIECE = 256 * 1024
#: This many bytes are sent at once.
_PROMPT = 64 * 1024
#: With more than this unsent the manager is slow: send nothing until it has caught up.
_BACKLOG = 1024 * 1024
#: Bytes read from a pipe at once, if there is room for twice as much.
READ = 64 * 1024
#: Memory for the output of ended attempts that is still being read.
_MOST_ENDED = 64 << 20
#: A reader whose manager went away may come back within this time after the runner has.
_COMES_BACK_S = 60.0
#: The spool leaves this much of the disk to others, such as the manager's database.
_SPARE_DISK = 256 << 20
_NEVER = float("inf")


class Followers:
    """All attempts that are being followed, or were asked about."""

    def __init__(
        self,
        directory: str,
        *,
        loop: Loop,
        tasks: TaskTable,
        rules: CurrentRules,
        connection: Connection,
        pool: PipePool,
    ) -> None:
        """`directory`: on whose file system unread output is spooled."""
        self._loop = loop
        self._tasks = tasks
        self._rules = rules
        self._connection = connection
        self._pool = pool
        self._by_attempt: dict[tuple[int, int], Audience] = {}
        self._spool = Spool(directory, spare=_SPARE_DISK)
        self._send_at: float | None = None
        self.parked: dict[Task, None] = {}  #: their processes are gone, their end waits for a reader

    def obey(self, output_spool: int) -> None:
        """So much disk may be used."""
        self._spool.most = max(0, output_spool)

    def __bool__(self) -> bool:
        return bool(self._by_attempt)

    @property
    def busy(self) -> bool:
        """Does a connected reader still need output of an attempt that has ended?"""
        return any(audience.over and audience.strict for audience in self._by_attempt.values())

    # -------------------------------------------------------------- what the manager says

    def follow(self, follower: Follower) -> None:
        """A reader wants the output of an attempt."""
        job, attempt = follower.key
        audience = self._by_attempt.get((job, attempt))
        if audience is None:
            for key, task in self._tasks.by_key.items():
                if key[:2] == (job, attempt) and not task.part and not task.preparing:
                    audience = self._by_attempt[job, attempt] = Audience(task)
                    break
            else:
                self._connection.send(codec.frame(LiveEnd(job, attempt, follower.tail)))
                return
        audience.add(follower)
        self._advance(audience)

    def stop(self, job: int, attempt: int, tail: int) -> None:
        """A reader has gone; or (tail 0) no reader wants every byte."""
        audience = self._by_attempt.get((job, attempt))
        if audience is not None:
            audience.remove(tail)
            self._advance(audience)

    def took(self, key: tuple[int, int], tail: int, *, taken: list[int], window: int) -> None:
        """A reader has consumed some of what it was sent."""
        audience = self._by_attempt.get(key)
        if audience is not None and audience.took(tail, taken, window):
            self._advance(audience)

    def lost(self) -> None:
        """The connection is gone, and with it all readers: no job waits for them. A reader that wanted every byte
        may come back, so what it lacks is kept as far as there is room."""
        for audience in list(self._by_attempt.values()):
            audience.orphan()
            self._advance(audience)

    def joined(self, now: float) -> None:
        """There is a manager again."""
        for job, attempt in [key for key, audience in self._by_attempt.items() if audience.orphaned]:
            self._by_attempt[job, attempt].forget_at = now + _COMES_BACK_S
            self._loop.due(now + _COMES_BACK_S)
            self._connection.send(codec.frame(Full(job, attempt, held=True)))

    # -------------------------------------------------------------- what the task does

    def room(self, task: Task, index: int, left: int) -> int:
        """How much may be read from a stream with this much room `left`; 0: it must wait."""
        if left > 0:
            return left
        key = task.key[:2]
        audience = self._by_attempt.get(key)
        if audience is None:
            if not self._asks:
                return READ
            audience = self._by_attempt[key] = Audience(task)
        if not (audience.held or audience.asked or audience.unwanted) and self._asks:
            audience.asked = True
            self._connection.send(codec.frame(Full(*key)))
        if audience.asked:
            return 0
        return READ if audience.admits(index, 2 * READ, self._spool) else 0

    @property
    def _asks(self) -> bool:
        return self._connection.joined and self._rules.current.output_spool >= 0

    def wrote(self, task: Task, now: float) -> None:
        """There may be something new to send."""
        audience = self._by_attempt.get(task.key[:2])
        if audience is None:
            return
        if any(audience.unsent(follower) >= _PROMPT for follower in audience.followers.values()):
            self._advance(audience)
        elif self._send_at is None and audience.followers:
            self._send_at = now + COALESCE_S
            self._loop.due(self._send_at)

    def reads(self, task: Task) -> bool:
        """Is there a reader for what the command of this task printed?"""
        return task.key[:2] in self._by_attempt and task.behaviours is None

    def unstrict(self, task: Task) -> None:
        """The task was ended: from now on rather lose bytes than wait for a reader."""
        self._by_attempt[task.key[:2]].unstrict()

    def postpones(self, task: Task) -> bool:
        """All processes of a task are gone. Must its end wait for a slow reader? Then it is in `parked`."""
        audience = self._by_attempt.get(task.key[:2])
        waits = audience is not None and (audience.asked or (audience.strict and not self._fits(audience)))
        if waits or self._pool.paused(task.pipes):
            self.parked[task] = None
            task.deadline = None  # it has ended in time
            return True
        return False

    def _fits(self, audience: Audience) -> bool:
        needed = audience.memory if audience.inexact else 0
        if not needed:
            return True
        return self._spool.room() > needed + (1 << 20) or self._ended_memory() + needed <= _MOST_ENDED

    def _ended_memory(self) -> int:
        return sum(audience.memory for audience in self._by_attempt.values() if audience.over)

    def ended(self, task: Task, outcome: Outcome) -> None:
        """The end of a task is about to be reported: send the rest, ask about output that is not all stored."""
        key = task.key[:2]
        exact = (outcome.out_len, outcome.err_len) == (_total(task.out), _total(task.err))
        audience = self._by_attempt.get(key)
        if audience is None:
            if exact or not self._asks or self._ended_memory() + _memory(task) > _MOST_ENDED:
                return
            audience = self._by_attempt[key] = Audience(task)
            audience.asked = True
            self._connection.send(codec.frame(Full(*key)))
        elif not exact and not (audience.held or audience.asked or audience.unwanted) and self._asks:
            audience.asked = True
            self._connection.send(codec.frame(Full(*key)))
        audience.over, audience.exact = True, exact
        self._advance(audience)
        if key in self._by_attempt and audience.held and not exact:
            audience.park(self._spool)
        if key in self._by_attempt and audience.over and self._ended_memory() > _MOST_ENDED:
            self._end(audience)

    # -------------------------------------------------------------- sending

    def tick(self, now: float) -> None:
        for audience in list(self._by_attempt.values()):
            if audience.orphaned and self._connection.joined and now >= audience.forget_at:
                audience.remove(0)
                self._advance(audience)
        if self._send_at is not None and now >= self._send_at:
            self._send_at = None
            for audience in list(self._by_attempt.values()):
                self._advance(audience)
        if self._send_at is not None:
            self._loop.due(self._send_at)

    def _advance(self, audience: Audience) -> None:
        """Do all that can be done for the readers of an attempt now."""
        for follower in list(audience.followers.values()):
            if self._send(audience, follower) and self._send_at is None:
                self._send_at = self._loop.now + COALESCE_S
                self._loop.due(self._send_at)
        task = audience.task
        if not audience.over:
            for index, fd in enumerate((task.pipes.out, task.pipes.err)):
                if not audience.asked and audience.admits(index, 2 * READ, self._spool):
                    self._pool.resume(fd)
            if task in self.parked:
                self._loop.due(self._loop.now)
            if not audience.followers and not audience.asked and not audience.held and not audience.unwanted:
                self._forget(audience)
            return
        if audience.exact:
            # All of it is stored: a reader that lacks the rest gets it from there.
            for tail in [tail for tail, each in audience.followers.items() if audience.behind(each)]:
                self._send_end(audience, tail, known=False)
        for tail in [tail for tail, each in audience.followers.items() if audience.has_all(each)]:
            self._send_end(audience, tail, known=True)
        if not audience.followers and not audience.asked and (audience.exact or not audience.orphaned):
            self._forget(audience)

    def _send_end(self, audience: Audience, tail: int, *, known: bool) -> None:
        del audience.followers[tail]
        totals = [_total(capture) if known else -1 for capture in audience.captures]
        self._connection.send(codec.frame(LiveEnd(*audience.task.key[:2], tail, *totals)))

    def _end(self, audience: Audience) -> None:
        """There is no room for the rest of an ended attempt: what its readers lack is left out."""
        for tail in list(audience.followers):
            self._send_end(audience, tail, known=True)
        self._forget(audience)

    def _forget(self, audience: Audience) -> None:
        audience.close()
        self._by_attempt.pop(audience.task.key[:2], None)

    def _send(self, audience: Audience, follower: Follower) -> bool:
        """Send what its reader and the manager can take; True if there is more that only the manager cannot."""
        connection = self._connection
        while room := min(_PIECE, audience.sendable(follower)):
            if connection.unsent > _BACKLOG:
                return True
            chunks: list[Chunk] = []
            for index, capture in enumerate(audience.captures):
                if capture is None or capture.total <= follower.sent[index] or room <= 0:
                    continue
                at, data = capture.read(follower.sent[index], room)
                follower.sent[index] = at + len(data) if data else capture.total
                room -= len(data)
                if data:
                    follower.awaited[index] = at + len(data)
                    chunks.append(Chunk(*follower.key, index + 1, at, data))
            if not chunks:
                return False
            connection.send(codec.frame(Live(chunks, follower.tail)))
        return False


def _total(capture: Captured | None) -> int:
    return 0 if capture is None else capture.total


def _memory(task: Task) -> int:
    return sum(capture.memory for capture in (task.out, task.err) if capture is not None)
