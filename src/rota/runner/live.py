"""Output of running jobs for those who follow it: from the beginning, then as it comes, in pieces.

Reads captures; sends only when the manager keeps up. Keeps no copy of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.runner.output import Capture
from rota.runner.task import Task
from rota.wire import codec
from rota.wire.greeting import Chunk
from rota.wire.reports import Live, LiveEnd

if TYPE_CHECKING:
    from rota.runner.agent import Agent

COALESCE_S = 0.03
_PIECE = 256 * 1024
#: More than this waiting in the socket: the manager is slow, say nothing until it has caught up.
_BACKLOG = 1024 * 1024


class Follower:
    """How far each stream of a task was sent."""

    __slots__ = ("sent", "task")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.sent = [0, 0]


class Followers:
    """All tasks that are being followed."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._by_attempt: dict[tuple[int, int], Follower] = {}
        self._send_at: float | None = None

    def __bool__(self) -> bool:
        return bool(self._by_attempt)

    def follow(self, job: int, attempt: int, now: float) -> None:
        for key, task in self._agent.tasks.items():
            if key[:2] == (job, attempt) and not task.part:
                self._by_attempt[job, attempt] = Follower(task)
                self.wrote(task, now)
                return
        self._agent.contact.send(codec.frame(LiveEnd(job, attempt)))

    def stop(self, job: int, attempt: int) -> None:
        self._by_attempt.pop((job, attempt), None)

    def clear(self) -> None:
        """Nobody listens any more."""
        self._by_attempt.clear()

    def wrote(self, task: Task, now: float) -> None:
        """There may be something new to send."""
        if self._send_at is None and task.key[:2] in self._by_attempt:
            self._send_at = now + COALESCE_S
            self._agent.due(self._send_at)

    def tick(self, now: float) -> None:
        if self._send_at is None:
            return
        if now >= self._send_at:
            self._send_at = None
            more = [self._send(follower) for follower in list(self._by_attempt.values())]
            if any(more):
                self._send_at = now + COALESCE_S
        if self._send_at is not None:
            self._agent.due(self._send_at)

    def ended(self, task: Task) -> None:
        """Send the rest and the end."""
        follower = self._by_attempt.pop(task.key[:2], None)
        if follower is None:
            return
        while self._send(follower, patient=False):
            pass
        self._agent.contact.send(codec.frame(LiveEnd(*task.key[:2])))

    def _send(self, follower: Follower, *, patient: bool = True) -> bool:
        """Send one piece of each stream; True if there is more."""
        contact = self._agent.contact
        if patient and contact.unsent > _BACKLOG:
            return True
        task = follower.task
        chunks: list[Chunk] = []
        more = False
        captures: tuple[Capture | None, Capture | None] = (task.out, task.err)
        for index, capture in enumerate(captures):
            if capture is None or capture.total <= follower.sent[index]:
                continue
            at, data = capture.read(follower.sent[index], _PIECE)
            follower.sent[index] = at + len(data)
            chunks.append(Chunk(*task.key[:2], index + 1, at, data))
            more = more or follower.sent[index] < capture.total
        if chunks:
            contact.send(codec.frame(Live(chunks)))
        return more
