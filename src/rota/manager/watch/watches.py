"""All open watches: which watcher gets which news, and when.

News is batched for a few milliseconds, so that a thousand ends a second are not a thousand messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from rota.core.jobs.command import Command
from rota.core.jobs.job import Job
from rota.core.jobs.outcome import Outcome
from rota.core.world import World
from rota.manager.peers.peer import Peer
from rota.manager.watch.tails import OutputTails, Reader
from rota.manager.watch.watcher import Watcher
from rota.wire import codec
from rota.wire import messages as m

_GATHER_S = 0.02
_MOST_REMOVED = 1000
#: Bytes of news in one message, about.
_PIECE = 4 << 20
#: So much output is passed on at once.
_PROMPT = 64 * 1024
#: A peer with so many unread bytes gets nothing more for a while.
_CROWDED = 8 << 20
_CROWDED_S = 0.05

T = TypeVar("T")


class Watches:
    """The registry of watchers."""

    def __init__(
        self, world: World, peers: Mapping[int, Peer], tails: OutputTails, *, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._loop = loop
        self._world = world
        self._peers = peers
        self._tails = tails
        self._open = tails.watchers
        self._due = False
        #: jobs that were removed at their end, for a watch that is opened a moment later
        self._just_removed: dict[int, tuple[Job, int, Outcome | None]] = {}

    def open(self, peer: Peer, n: int, watcher: Watcher) -> None:
        """Begin to report to a peer."""
        self._open[peer.id, n] = watcher
        if watcher.follow:
            world = self._world
            for runner in list(world.runners.values()):
                for id in runner.leases:
                    job = world.jobs[id]
                    if job.lease and job.lease.started_at is not None and watcher.watches(id):
                        self._tails.follow((peer.id, n), watcher, job=id, attempt=job.attempt, runner=runner.id)
        self._tails.offered_to((peer.id, n), watcher)
        self.flush_soon()

    def count(self, peer: Peer) -> int:
        """How many watches a peer has open."""
        return sum(1 for connection, _n in self._open if connection == peer.id)

    def close(self, peer: Peer, n: int | None = None) -> None:
        """Close one watch of a peer, or all of a peer that was disconnected."""
        for key in [key for key in self._open if key[0] == peer.id and n in (None, key[1])]:
            self._shut(key)
        if n is None and peer.attaching:
            peer.attaching.clear()
            self._tails.expected()

    def _shut(self, key: Reader) -> None:
        del self._open[key]
        self._tails.close(key)

    # -- what happens to jobs

    def settled(self, job: Job, state: int, outcome: Outcome | None) -> None:
        spec = job.spec
        if "remove" in (*spec.on_success, *spec.on_failure, *spec.on_exit):
            self._just_removed[job.id] = (job, state, outcome)
            if len(self._just_removed) > _MOST_REMOVED:
                del self._just_removed[next(iter(self._just_removed))]
        if not self._open:
            return
        reason = (job.reason.code, job.reason.message) if job.reason else ("", "")
        for reader, watcher in list(self._open.items()):
            if watcher.watches(job.id):
                self.report_end(
                    reader, job.id, state=state, attempt=job.attempt, cmd=job.cmd, outcome=outcome, reason=reason
                )

    def report_end(self, reader: Reader, job: int, *, state: int, attempt: int, cmd: Command,
                 outcome: Outcome | None, reason: tuple[str, str], news: bool = True) -> None:  # fmt: skip
        """Report to a watcher that a job has settled, after all of its output."""

        def tell() -> None:
            if watcher := self._open.get(reader):
                watcher.settled(
                    job, state=state, attempt=attempt, cmd=cmd, outcome=outcome, reason=reason, news=news
                )
                self.flush_soon()

        self._tails.settles(reader, job=job, attempt=attempt, tell=tell)

    def report_removed(self, watcher: Watcher, id: int) -> None:
        """A watched job does not exist any more: report its end, if that is still known."""
        last = self._just_removed.get(id)
        if last is None:
            watcher.removed(id)
            return
        job, state, outcome = last
        reason = (job.reason.code, job.reason.message) if job.reason else ("", "")
        watcher.settled(id, state=state, attempt=job.attempt, cmd=job.cmd, outcome=outcome, reason=reason)

    def reopened(self, job: int) -> None:
        self._tails.reopened(job)
        for watcher in self._open.values():
            watcher.reopened(job)

    def started(self, job: int, attempt: int, runner: str) -> None:
        for reader, watcher in self._open.items():
            if watcher.follow and watcher.watches(job):
                self._tails.follow(reader, watcher, job=job, attempt=attempt, runner=runner)

    def rejoined(self, runner: str) -> None:
        """A runner is back: its running jobs are followed again."""
        world = self._world
        found = world.runners.get(runner)
        if found is None or not any(watcher.follow for watcher in self._open.values()):
            return
        for id in found.leases:
            job = world.jobs[id]
            if job.lease and job.lease.started_at is not None:
                self.started(id, job.attempt, runner)

    def printed(self, runner: str, live: m.Live) -> None:
        for reader in self._tails.printed(runner, live):
            if reader in self._open and self._open[reader].gathered >= _PROMPT:
                self._flush_one(reader)
        self.flush_soon()

    # -- sending

    def flush_soon(self) -> None:
        """Send news after a short while."""
        if not self._due and self._open:
            self._due = True
            self._loop.call_later(_GATHER_S, self._flush)

    def _flush(self) -> None:
        self._due = False
        for reader in list(self._open):
            self._flush_one(reader)

    def _flush_one(self, reader: Reader) -> None:
        watcher, peer = self._open[reader], self._peers.get(reader[0])
        if peer is None:
            self._shut(reader)
            return
        watcher.crowded = peer.unsent > _CROWDED
        if watcher.crowded:
            self._flush_later()  # it does not read; others need not wait for it
            return
        progress = watcher.take_progress(self._world, self._loop.time())
        if progress is not None:
            _send_progress(peer, reader[1], progress)
        if not watcher.pending:
            self._shut(reader)
            peer.send(m.Reply(reader[1], codec.body(watcher.result())))

    def _flush_later(self) -> None:
        if not self._due:
            self._due = True
            self._loop.call_later(_CROWDED_S, self._flush)


def _send_progress(peer: Peer, n: int, progress: m.Progress) -> None:
    """Send news in messages that fit a frame, live output first: the end comes after all of it."""
    for chunks in _pieces(progress.chunks, lambda chunk: len(chunk.data)):
        peer.send(m.Item(n, codec.body(m.Progress([], progress.counts, chunks))))
    for ended in _pieces(progress.ended, lambda each: len(each.out) + len(each.err) + len(each.cmd)):
        peer.send(m.Item(n, codec.body(m.Progress(ended, progress.counts))))


def _pieces(things: list[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    piece: list[T] = []
    total = 0
    for thing in things:
        piece.append(thing)
        total += size(thing) + 256
        if total > _PIECE:
            yield piece
            piece, total = [], 0
    if piece:
        yield piece
