"""Pass the output of jobs on byte for byte: per job, line by line, or live.

Output of different jobs never mixes within a line. Output that did not come with the message about a job's end is
fetched. A mark stands in the place of missing bytes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, BinaryIO, Final

from rota.cli.session.interruptible_writer import InterruptibleWriter
from rota.core.states import TERMINAL
from rota.wire.client_messages import Chunk, Ended, Progress
from rota.wire.missing_output import NOT_KEPT, mark

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.client.blocking import Client
    from rota.client.printed import Absent
    from rota.wire.job_parts import AttemptView

#: Why bytes are missing from what was followed.
_NOT_PASSED_ON: Final = "not passed on in time"
_LOST: Final = "what it printed last was lost with its runner"
#: Longer lines are printed in pieces, to bound memory.
_LONGEST_LINE: Final = 8 << 20

ENDED: Final = frozenset(int(state) for state in TERMINAL)

Stream = tuple[int, int, int]  #: job, attempt, 1 (stdout) or 2 (stderr)


def _nobody(_job: int, _attempt: int, *, out: int, err: int) -> None:
    """The default of `Printer.took`: ignore what was printed."""


class Printer:
    """Base class: keeps track of the output and prints nothing."""

    follow = False

    def __init__(
        self,
        client: Client,
        *,
        stdout: BinaryIO | None = None,
        stderr: BinaryIO | None = None,
        only: int = 0,
    ) -> None:
        self.client = client
        self.waiting: Callable[[], None] = lambda: None  #: called while a write waits for its reader; may raise
        self._out = InterruptibleWriter(stdout or sys.stdout.buffer, lambda: self.waiting())
        self._err = InterruptibleWriter(stderr or sys.stderr.buffer, lambda: self.waiting())
        self._ended: set[tuple[int, int]] = set()
        self.before: Callable[[], None] = lambda: None  #: called before something is printed
        self.took: Callable[..., None] = _nobody  #: called with what of the live output was dealt with
        self.incomplete = False  #: some bytes are missing
        self._only = only  #: print only this stream, to stdout; 0: both, each to its own
        self._last = {1: b"", 2: b""}  #: what was printed last to each
        #: how far each stream of live output was printed or put aside
        self._reached: dict[Stream, int] = {}
        self._heard: set[Stream] = set()  #: had live output on this connection

    def reconnected(self, client: Client) -> None:
        """Continue over a new connection, on which the ends of jobs are reported again."""
        self.client = client
        self._heard.clear()

    def take(self, progress: Progress) -> None:
        """Print what is new."""
        for chunk in progress.chunks:
            self._chunk(chunk)
        for ended in progress.ended:
            self._settled(ended)
        self._out.flush()
        for job, attempt in {(chunk.job, chunk.attempt): None for chunk in progress.chunks}:
            reached = [self._reached.get((job, attempt, stream), 0) for stream in (1, 2)]
            if (job, attempt) not in self._ended:
                self.took(job, attempt, out=reached[0], err=reached[1])

    def finish(self) -> None:
        """Nothing more will come."""

    def _settled(self, ended: Ended) -> None:
        """A job has ended."""

    def _pass(self, key: Stream, data: bytes) -> None:
        """Print these bytes of a job, or put them aside."""

    def _new(self, ended: Ended) -> bool:
        key = (ended.job, ended.attempt)
        if ended.state not in ENDED or key in self._ended:
            return False
        self._ended.add(key)
        return True

    def _write(self, stream: int, data: bytes) -> None:
        if not data or self._only not in (0, stream):
            return
        self.before()
        self._last[stream] = data[-1:]
        # Keep the order of arrival even if both streams are the same file.
        if stream == 1 or self._only:
            self._out.write(data)
        else:
            self._out.flush()
            sys.stderr.flush()
            self._err.write(data)
            self._err.flush()

    # -- live output

    def _chunk(self, chunk: Chunk) -> None:
        key = (chunk.job, chunk.attempt, chunk.stream)
        self._heard.add(key)
        reached = self._reached.get(key, 0)
        data = chunk.data[max(reached - chunk.offset, 0) :]
        if not data:
            return
        if chunk.offset > reached:
            self._gap(key, chunk.offset - reached, _NOT_PASSED_ON)
        self._reached[key] = chunk.offset + len(chunk.data)
        self._pass(key, data)

    def _gap(self, key: Stream, missing: int, why: str) -> None:
        """Bytes are missing here."""
        self.incomplete = True
        self._pass(key, mark(missing, why, after=self._before_gap(key)))

    def _before_gap(self, key: Stream) -> bytes:
        return self._last[key[2]]

    # -- the rest, when a job has ended

    def catch_up(self, job: int, attempt: AttemptView) -> None:
        """Print the rest of an attempt, unless its end was told. It may have ended just before it was watched."""
        if (job, attempt.attempt) in self._ended:
            return
        streams = ((1, attempt.stdout_bytes, attempt.out_bytes), (2, attempt.stderr_bytes, attempt.err_bytes))
        for stream, kept, total in streams:
            key = (job, attempt.attempt, stream)
            reached = self._reached.pop(key, 0)
            if self._only in (0, stream) and max(kept or 0, total or 0) > reached:
                self._kept(key, reached, kept or 0, total or 0)

    def _rest(self, ended: Ended, stream: int) -> None:
        """Print what did not come live."""
        key = (ended.job, ended.attempt, stream)
        reached = self._reached.pop(key, 0)
        if stream == 1:
            data, kept, total, live = ended.out, ended.out_len, ended.out_total, ended.live_out
        else:
            data, kept, total, live = ended.err, ended.err_len, ended.err_total, ended.live_err
        heard = key in self._heard
        self._heard.discard(key)
        if live >= 0:
            if live > reached:
                self._gap(key, live - reached, _NOT_PASSED_ON)
        elif data and not heard and total <= kept:
            self._pass(key, data[reached:])
        elif data and heard:  # the manager sends the rest
            if total - reached > len(data):
                self._gap(key, total - reached - len(data), NOT_KEPT)
            self._pass(key, data)
        elif max(kept, total) > reached:
            self._kept(key, reached, kept, total)
        elif ended.reason == "lost" and (heard or (stream == 1 and (*key[:2], 2) not in self._heard)):
            self._gap(key, 0, _LOST)

    def _kept(self, key: Stream, reached: int, kept: int, total: int) -> None:
        """Print what is kept from `reached` on. If not everything is kept, that is a head and a tail."""
        head = kept if total <= kept else kept // 2
        if reached < head or not kept:
            self._fetch(key, reached, marks=True)
            return
        begin = max(head, kept - max(0, total - reached))
        if missing := max(0, total - reached - (kept - begin)):
            self._gap(key, missing, NOT_KEPT)
        if begin < kept:
            self._fetch(key, begin, marks=False)

    def _fetch(self, key: Stream, begin: int, *, marks: bool) -> None:
        absent: list[Absent] = []
        job, attempt, stream = key
        for part in self.client.output_parts(
            job, attempt=attempt, err=stream == 2, offset=begin, marks=marks, absent=absent
        ):
            self._pass(key, part)
        self.incomplete = self.incomplete or bool(absent)


class LivePrinter(Printer):
    """Prints output as it comes; with `lines`, in whole lines, so that several jobs can share the stream."""

    follow = True

    def __init__(
        self,
        client: Client,
        *,
        lines: bool,
        stdout: BinaryIO | None = None,
        stderr: BinaryIO | None = None,
        only: int = 0,
    ) -> None:
        super().__init__(client, stdout=stdout, stderr=stderr, only=only)
        self._lines = lines
        self._partial: dict[Stream, bytes] = {}

    def finish(self) -> None:
        for key in list(self._partial):
            self._flush_line(key)
        self._out.flush()

    def _settled(self, ended: Ended) -> None:
        if self._new(ended):
            for stream in (1, 2):
                self._rest(ended, stream)
                self._flush_line((ended.job, ended.attempt, stream))

    def _pass(self, key: Stream, data: bytes) -> None:
        if self._lines:
            end = data.rfind(b"\n") + 1
            if not end and len(data) + len(self._partial.get(key, b"")) <= _LONGEST_LINE:
                self._partial[key] = self._partial.get(key, b"") + data
                return
            data = self._partial.pop(key, b"") + data
            end = data.rfind(b"\n") + 1 or len(data)
            if end < len(data):
                self._partial[key] = data[end:]
            data = data[:end]
        self._write(key[2], data)

    def _before_gap(self, key: Stream) -> bytes:
        return self._partial.get(key, b"\n") if self._lines else super()._before_gap(key)

    def _flush_line(self, key: Stream) -> None:
        self._write(key[2], self._partial.pop(key, b""))
