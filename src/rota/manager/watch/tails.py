"""Live output on its way from runners to watchers: one tail per watcher and attempt, each at its own pace.

The manager only forwards chunks. The window of a tail bounds the bytes in flight; it moves as the reader
acknowledges them. An attached reader gets every byte. It may hold up its own job, but no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rota.core.world import World
from rota.manager.peers.peer import Peer
from rota.manager.watch.watcher import Watcher
from rota.wire import messages as m

#: Bytes on their way to one watcher, about, and the bounds for one of its tails.
_ALL_WINDOWS: Final = 8 << 20
_WINDOW: Final = 1 << 20
_LEAST_WINDOW: Final = 4096
#: Attempts that runners hold for a reader that may come back.
_OFFERS: Final = 10_000

Reader = tuple[int, int]  #: a connection, and the number of the watch


class LiveTail:
    """The output of one attempt for one reader."""

    __slots__ = ("attempt", "hold", "id", "job", "plain", "reader", "runner", "settled", "taken", "watcher")

    def __init__(self, id: int, reader: Reader, watcher: Watcher, job: int, attempt: int, runner: str) -> None:
        self.id = id
        self.reader = reader
        self.watcher = watcher
        self.job = job
        self.attempt = attempt
        self.runner = runner
        self.hold = False
        self.plain = False  #: its runner knows no tails: it sends everything, once, to all
        self.taken = (0, 0)
        self.settled: Callable[[], None] | None = None  #: reports the end, when all output was forwarded


class OutputTails:
    """All tails of a manager."""

    def __init__(self, world: World, peers: Mapping[int, Peer], *, peer_of: Callable[[str], Peer | None]) -> None:
        self._world = world
        self._peers = peers
        self._peer_of = peer_of  #: the connection of a runner
        self.watchers: dict[Reader, Watcher] = {}  #: all open watches
        self._next = 0
        self._by_id: dict[int, LiveTail] = {}
        #: reader → job → attempt; by job, since thousands may run at once and each of them begins and ends
        self._of: dict[Reader, dict[int, dict[int, LiveTail]]] = {}
        self._unanswered: dict[tuple[int, int], str] = {}  #: attempts whose runner waits for an answer
        #: attempts that a runner holds for a reader that may come back
        self._offered: dict[tuple[int, int], str] = {}

    # -------------------------------------------------------------- readers

    def follow(self, reader: Reader, watcher: Watcher, *, job: int, attempt: int, runner: str) -> None:
        """Begin to forward the output of an attempt, unless that is being done."""
        own = self._of.setdefault(reader, {})
        peer = self._peer_of(runner)
        if peer is None or attempt in own.get(job, ()):
            return
        self._next += 1
        tail = LiveTail(self._next, reader, watcher, job, attempt, runner)
        tail.hold = watcher.attached(job)
        tail.plain = not peer.tails
        own.setdefault(job, {})[attempt] = self._by_id[tail.id] = tail
        peer.send(m.Tail(job, attempt, tail=tail.id, hold=tail.hold, window=self._window(tail)))

    def taken(self, peer: Peer, taken: m.Taken) -> None:
        """A reader acknowledges some of its output."""
        tail = self._of.get((peer.id, taken.n), {}).get(taken.job, {}).get(taken.attempt)
        if tail is not None and not tail.plain:
            tail.taken = (taken.out, taken.err)
            self._go_on(tail)

    def settles(self, reader: Reader, *, job: int, attempt: int, tell: Callable[[], None]) -> None:
        """Report an end to a watcher, after all of the output."""
        tail = self._of.get(reader, {}).get(job, {}).get(attempt)
        if tail is None:
            tell()
        else:
            tail.settled = tell

    def reopened(self, job: int) -> None:
        """A job runs again: report its former end now, without waiting for the rest of its output."""
        for tail in [tail for own in self._of.values() for tail in own.get(job, {}).values()]:
            _release(tail)

    def close(self, reader: Reader) -> None:
        """A watch is over: nothing waits for it any more."""
        for tail in [tail for same in self._of.get(reader, {}).values() for tail in same.values()]:
            self._drop(tail)
            runner = self._peer_of(tail.runner)
            if runner is None:
                continue
            if not tail.plain:
                runner.send(m.Tail(tail.job, tail.attempt, on=False, tail=tail.id))
            elif not any(self._same(other, tail) for other in self._by_id.values()):
                runner.send(m.Tail(tail.job, tail.attempt, on=False))
        self._of.pop(reader, None)

    def expected(self) -> None:
        """A client has attached, or no longer means to: answer the runners that waited for that."""
        for (job, attempt), runner in list(self._unanswered.items()):
            del self._unanswered[job, attempt]
            self._answer(job, attempt, runner, held=False)

    def offered_to(self, reader: Reader, watcher: Watcher) -> None:
        """A reader attaches: give it what runners hold for it."""
        for (job, attempt), runner in list(self._offered.items()):
            if watcher.attached(job):
                del self._offered[job, attempt]
                self.follow(reader, watcher, job=job, attempt=attempt, runner=runner)

    # -------------------------------------------------------------- runners

    def asked(self, runner: str, full: m.Full) -> None:
        """A runner asks whether a reader needs every byte of an attempt."""
        self._answer(full.job, full.attempt, runner, held=full.held)

    def printed(self, runner: str, live: m.Live) -> set[Reader]:
        """Forward chunks of output. Returns the readers that got some."""
        reached: set[Reader] = set()
        tails = [self._by_id.get(live.tail)] if live.tail else list(self._by_id.values())
        for tail in tails:
            if tail is None or tail.runner != runner or (not live.tail and not tail.plain):
                continue
            for chunk in live.chunks:
                if (chunk.job, chunk.attempt) == (tail.job, tail.attempt):
                    tail.watcher.printed(chunk)
                    reached.add(tail.reader)
        return reached

    def ended(self, runner: str, end: m.LiveEnd) -> None:
        """The output of an attempt was passed on to its end."""
        tails = [self._by_id.get(end.tail)] if end.tail else list(self._by_id.values())
        for tail in tails:
            if tail is None or tail.runner != runner or (not end.tail and not tail.plain):
                continue
            if (tail.job, tail.attempt) == (end.job, end.attempt):
                if end.out >= 0 and end.err >= 0:
                    tail.watcher.live_ended(end.job, end.attempt, (end.out, end.err))
                self._over(tail)

    def gone(self, runner: str) -> None:
        """A runner is not connected any more."""
        for tail in [tail for tail in self._by_id.values() if tail.runner == runner]:
            self._over(tail)
        for asked in (self._unanswered, self._offered):
            for key in [key for key, by in asked.items() if by == runner]:
                del asked[key]

    # -------------------------------------------------------------- inside

    def _attached(self, job: int) -> list[tuple[Reader, Watcher]]:
        """The watchers that get every byte of this job."""
        return [(reader, watcher) for reader, watcher in self.watchers.items() if watcher.attached(job)]

    def _expects(self, job: int) -> bool:
        """Is a client of the job's owner about to attach?"""
        found = self._world.jobs.get(job)
        return found is not None and any(
            peer.attaching and peer.user == found.spec.user for peer in self._peers.values()
        )

    def _answer(self, job: int, attempt: int, runner: str, *, held: bool) -> None:
        readers = self._attached(job)
        for reader, watcher in readers:
            self.follow(reader, watcher, job=job, attempt=attempt, runner=runner)
        if readers:
            return
        if held:
            if len(self._offered) < _OFFERS:
                self._offered[job, attempt] = runner
        elif self._expects(job):
            self._unanswered[job, attempt] = runner
        elif peer := self._peer_of(runner):
            peer.send(m.Tail(job, attempt, on=False))

    def _window(self, tail: LiveTail) -> int:
        if not tail.watcher.window:
            return -1
        own = self._of[tail.reader]
        if any(attempt < tail.attempt for attempt in own[tail.job]):
            return 0  # the attempt before it comes first
        return max(_LEAST_WINDOW, min(tail.watcher.window, _WINDOW, _ALL_WINDOWS // len(own)))

    def _go_on(self, tail: LiveTail) -> None:
        if peer := self._peer_of(tail.runner):
            peer.send(m.Took(tail.job, tail.attempt, tail.id, *tail.taken, self._window(tail)))

    def _same(self, one: LiveTail, other: LiveTail) -> bool:
        return one.plain and (one.job, one.attempt, one.runner) == (other.job, other.attempt, other.runner)

    def _over(self, tail: LiveTail) -> None:
        self._drop(tail)
        _release(tail)
        for other in self._of.get(tail.reader, {}).get(tail.job, {}).values():
            if not other.plain and other.watcher.window:
                self._go_on(other)

    def _drop(self, tail: LiveTail) -> None:
        self._by_id.pop(tail.id, None)
        own = self._of.get(tail.reader, {})
        same = own.get(tail.job, {})
        same.pop(tail.attempt, None)
        if not same:
            own.pop(tail.job, None)


def _release(tail: LiveTail) -> None:
    tell, tail.settled = tail.settled, None
    if tell is not None:
        tell()
