"""One open watch: ends of its jobs since the last message, their output, and the end of the last job.

A watcher holds one byte per watched job, so that a client may wait for a million of them.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable

from rota.core.jobs.command import Command, brief
from rota.core.jobs.outcome import Outcome
from rota.core.states import State
from rota.core.world import World
from rota.wire import messages as m
from rota.wire.views import SettledView

_UNWATCHED, _PENDING = 0, 255  # other values of a flag: the state the job has settled in

#: Output up to this size comes with the news that a job has ended.
INLINE_OUTPUT = 64 * 1024
#: Output of more ended jobs than this is not sent along with the news.
_GATHERED = 8 << 20
_FAILED_LISTED = 100_000
_COUNT_EVERY_S = 0.1

#: (outcome, stream, offset, length): verified bytes of an output, or nothing if they are not all there
ReadOutput = Callable[[Outcome, int, int, int], bytes]


class Watcher:
    """One open `Watch` request."""

    def __init__(
        self,
        ids: list[int],
        *,
        fresh: set[int] | None,
        outputs: bool,
        follow: bool,
        read: ReadOutput,
        window: int = 0,
        attach: bool = False,
    ) -> None:
        self._base = min(ids, default=0)
        self._flags = bytearray(max(ids, default=0) - self._base + 1)
        for id in ids:
            self._flags[id - self._base] = _PENDING
        self.pending = len(set(ids))
        self._only = ids[0] if len(ids) == 1 else None
        self._single: int | None = None
        self._fresh = fresh  #: jobs whose end is news even if it came before the watch; None: none
        self._counts: Counter[int] = Counter()
        self._failed: list[int] = []
        self._outputs = outputs
        self.follow = follow
        self.window = window  #: bytes of live output that may be on their way; 0: any
        self._attach = attach and window > 0
        self._read = read
        self._counted_at = 0.0
        self._last_counts: dict[str, int] = {}
        self._ended: list[m.Ended] = []
        self._chunks: list[m.Chunk] = []
        self._sent: dict[tuple[int, int, int], int] = {}  #: (job, attempt, stream) → bytes passed on live
        #: job → attempt and bytes of both streams, all passed on
        self._whole: dict[int, tuple[int, int, int]] = {}
        self.gathered = 0  #: bytes of output that have not been sent to it
        self.crowded = False  #: it does not keep up: what is not urgent should wait until it asks

    def watches(self, job: int) -> bool:
        place = job - self._base
        return 0 <= place < len(self._flags) and self._flags[place] != _UNWATCHED

    def attached(self, job: int) -> bool:
        """Does it get every byte of this job, which its submission added?"""
        return self._attach and self._fresh is not None and job in self._fresh

    def live_ended(self, job: int, attempt: int, totals: tuple[int, int]) -> None:
        """All that an attempt printed was passed on; so much."""
        self._whole[job] = (attempt, *totals)

    def unsettled(self) -> Iterable[int]:
        """The watched jobs that have not settled, as far as the watcher knows."""
        return (self._base + place for place, flag in enumerate(self._flags) if flag == _PENDING)

    def settled(self, job: int, *, state: int, attempt: int, cmd: Command, outcome: Outcome | None,
                reason: tuple[str, str], news: bool = True) -> None:  # fmt: skip
        """A job has settled; a repeat is ignored."""
        place = job - self._base
        if not 0 <= place < len(self._flags) or self._flags[place] != _PENDING:
            return
        self._flags[place] = state
        self._counts[state] += 1
        self.pending -= 1
        if state == State.FAILED and len(self._failed) < _FAILED_LISTED:
            self._failed.append(job)
        if job == self._only:
            self._single = _exit_status(state, outcome)
        if news or (self._fresh is not None and job in self._fresh):
            self._ended.append(self._ended_message(job, state, attempt, cmd, outcome, reason))

    def reopened(self, job: int) -> None:
        """A settled job may run again, so there is something to wait for again."""
        place = job - self._base
        if not 0 <= place < len(self._flags) or self._flags[place] in (_UNWATCHED, _PENDING):
            return
        state = self._flags[place]
        self._flags[place] = _PENDING
        self._counts[state] -= 1
        self.pending += 1
        if state == State.FAILED:
            with contextlib.suppress(ValueError):  # beyond the first so many they are only counted
                self._failed.remove(job)

    def removed(self, job: int) -> None:
        """A watched job does not exist any more: nothing to wait for."""
        place = job - self._base
        if self._flags[place] == _PENDING:
            self._flags[place] = _UNWATCHED
            self.pending -= 1

    def printed(self, chunk: m.Chunk) -> None:
        """A watched job has printed something."""
        key = (chunk.job, chunk.attempt, chunk.stream)
        have = self._sent.get(key, 0)
        end = chunk.offset + len(chunk.data)
        if end <= have:
            return
        data = chunk.data[max(0, have - chunk.offset) :]
        self._sent[key] = end
        self.gathered += len(data)
        self._chunks.append(m.Chunk(chunk.job, chunk.attempt, chunk.stream, end - len(data), data))

    def take_progress(self, world: World, now: float) -> m.Progress | None:
        """What is new since the last call; the counts may be a little older."""
        if not self._ended and not self._chunks:
            return None
        if now - self._counted_at > _COUNT_EVERY_S or not self.pending:
            self._counted_at = now
            self._last_counts = self.counts(world)
        progress = m.Progress(self._ended, self._last_counts, self._chunks)
        self._ended, self._chunks = [], []
        self.gathered = 0
        return progress

    def counts(self, world: World) -> dict[str, int]:
        """Watched jobs by state. Unsettled jobs without a lease are only counted, not looked at."""
        counts = {State(state).label: n for state, n in self._counts.items() if n}
        leased = 0
        for runner in world.runners.values():
            for id in runner.leases:
                if self.watches(id):
                    label = world.jobs[id].state.label
                    counts[label] = counts.get(label, 0) + 1
                    leased += 1
        waiting = self.pending - leased
        if waiting > 0:
            counts["ready"] = counts.get("ready", 0) + waiting
        return counts

    def result(self) -> SettledView:
        """The end: every watched job has settled."""
        counts = {State(state).label: n for state, n in sorted(self._counts.items()) if n}
        return SettledView(counts=counts, failed=sorted(self._failed), single=self._single)

    def _ended_message(
        self, job: int, state: int, attempt: int, cmd: Command, outcome: Outcome | None, reason: tuple[str, str]
    ) -> m.Ended:
        out = err = b""
        live = (-1, -1)
        shown = brief(cmd)[:4096]
        if outcome is None:
            return m.Ended(job, state, None, None, reason[0], reason[1], shown, attempt)
        whole = self._whole.pop(job, (0, -1, -1))
        if whole[0] == attempt:
            live = whole[1:]
            for stream in (1, 2):
                self._sent.pop((job, attempt, stream), None)
        elif self._outputs and outcome.segment:
            out = self._rest((job, attempt, 1), outcome, outcome.out_len, outcome.out_total)
            err = self._rest((job, attempt, 2), outcome, outcome.err_len, outcome.err_total)
        return m.Ended(
            job, state, outcome.exit_code, outcome.signal, reason[0], reason[1], shown, attempt, out, err,
            outcome.out_len, outcome.err_len, outcome.out_total, outcome.err_total,
            missing=outcome.kept.missing if outcome.kept is not None else "", live_out=live[0], live_err=live[1],
        )  # fmt: skip

    def _rest(self, stream: tuple[int, int, int], outcome: Outcome, kept: int, written: int) -> bytes:
        """What of a stream has not been passed on live, if it is small enough to come along."""
        sent = self._sent.pop(stream, None)
        if sent is None:
            if kept > INLINE_OUTPUT or self.crowded or self.gathered > _GATHERED:
                return b""
            self.gathered += kept
            return self._read(outcome, stream[2], 0, kept)
        if self.window and written - sent > INLINE_OUTPUT:
            return b""
        # Beyond `keep_output` only head and tail are kept: the tail ends where the stream ended.
        missing = min(written - sent, kept if written == kept else kept // 2)
        return self._read(outcome, stream[2], kept - missing, missing) if missing > 0 else b""


def _exit_status(state: int, outcome: Outcome | None) -> int:
    """What `rota run` of a single job exits with."""
    if state == State.COMPLETE:
        return 0
    if outcome is not None and outcome.exit_code:
        return outcome.exit_code
    if outcome is not None and outcome.signal:
        return 128 + outcome.signal
    return 1
