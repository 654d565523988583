"""All open watches of a manager: who is told what, and when.

News is gathered for a few milliseconds, so that a thousand ends a second are not a thousand messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from rota.core.job import Job, Outcome
from rota.manager.watching import Watcher
from rota.wire import codec
from rota.wire import messages as m

if TYPE_CHECKING:
    from rota.manager.peer import Peer
    from rota.manager.service import Manager

_GATHER_S = 0.02
_LAST_WORDS = 1000
#: Bytes of news in one message, about.
_PIECE = 4 << 20

T = TypeVar("T")


class Watches:
    """The registry of watchers, and of the runners that were asked for live output."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._open: dict[tuple[int, int], Watcher] = {}
        self._due = False
        self._tailed: dict[tuple[int, int], str] = {}  #: (job, attempt) whose runner sends output → runner
        #: jobs that wished to be removed at their end: who asks a moment later is to hear of it
        self._last_words: dict[int, tuple[Job, int, Outcome | None]] = {}

    def open(self, peer: Peer, n: int, watcher: Watcher) -> None:
        """Begin to tell a peer about its jobs."""
        self._open[peer.id, n] = watcher
        if watcher.follow:
            world = self._manager.world
            for runner in list(world.runners.values()):
                for id in runner.leases:
                    job = world.jobs[id]
                    if job.lease and job.lease.started_at is not None and watcher.watches(id):
                        self._tail(id, job.attempt, runner.id)
        self.tell_soon()

    def count(self, peer: Peer) -> int:
        """How many watches a peer has open."""
        return sum(1 for connection, _n in self._open if connection == peer.id)

    def close(self, peer: Peer, n: int | None = None) -> None:
        """Stop telling: one stream, or all of a peer that has gone."""
        for key in [key for key in self._open if key[0] == peer.id and n in (None, key[1])]:
            del self._open[key]
        for (job, attempt), runner in list(self._tailed.items()):
            if not self._followed(job):
                del self._tailed[job, attempt]
                if runner_peer := self._manager.runners.peer_of(runner):
                    runner_peer.send(m.Tail(job, attempt, on=False))

    def _followed(self, job: int) -> bool:
        return any(watcher.follow and watcher.watches(job) for watcher in self._open.values())

    # -- what happens to jobs

    def settled(self, job: Job, state: int, outcome: Outcome | None) -> None:
        self._tailed.pop((job.id, job.attempt), None)
        spec = job.spec
        if "remove" in (*spec.on_success, *spec.on_failure, *spec.on_exit):
            self._last_words[job.id] = (job, state, outcome)
            if len(self._last_words) > _LAST_WORDS:
                del self._last_words[next(iter(self._last_words))]
        if not self._open:
            return
        reason = (job.reason.code, job.reason.message) if job.reason else ("", "")
        for watcher in self._open.values():
            watcher.settled(job.id, state=state, attempt=job.attempt, cmd=job.cmd, outcome=outcome, reason=reason)
        self.tell_soon()

    def tell_of_removed(self, watcher: Watcher, id: int) -> None:
        """A job that is watched does not exist any more: how it ended, if that is still known."""
        last = self._last_words.get(id)
        if last is None:
            watcher.removed(id)
            return
        job, state, outcome = last
        reason = (job.reason.code, job.reason.message) if job.reason else ("", "")
        watcher.settled(id, state=state, attempt=job.attempt, cmd=job.cmd, outcome=outcome, reason=reason)

    def reopened(self, job: int) -> None:
        for watcher in self._open.values():
            watcher.reopened(job)

    def started(self, job: int, attempt: int, runner: str) -> None:
        if self._open and self._followed(job):
            self._tail(job, attempt, runner)

    def printed(self, chunks: list[m.Chunk]) -> None:
        for chunk in chunks:
            for watcher in self._open.values():
                if watcher.follow and watcher.watches(chunk.job):
                    watcher.printed(chunk)
        self.tell_soon()

    def _tail(self, job: int, attempt: int, runner: str) -> None:
        # Asked again for a newcomer, the runner begins again from the start; others skip what they have.
        self._tailed[job, attempt] = runner
        if peer := self._manager.runners.peer_of(runner):
            peer.send(m.Tail(job, attempt))

    # -- telling

    def tell_soon(self) -> None:
        """There is news: tell it after a short while."""
        if not self._due and self._open:
            self._due = True
            self._manager.loop.call_later(_GATHER_S, self._tell)

    def _tell(self) -> None:
        self._due = False
        world, now = self._manager.world, self._manager.loop.time()
        for (connection, n), watcher in list(self._open.items()):
            peer = self._manager.peers.get(connection)
            if peer is None:
                del self._open[connection, n]
                continue
            progress = watcher.take_progress(world, now)
            if progress is not None:
                _send_progress(peer, n, progress)
            if not watcher.pending:
                del self._open[connection, n]
                peer.send(m.Reply(n, codec.body(watcher.result())))


def _send_progress(peer: Peer, n: int, progress: m.Progress) -> None:
    """Send news in pieces that fit a frame, live output first: an end is the last word about a job."""
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
