"""What jobs print, passed through byte for byte: grouped per job, by whole lines, or live.

The output of two jobs never mixes (but by whole lines, when asked). Output that did not come with
the news of a job's end is fetched.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec

from rota.cli.printing import aside
from rota.core.states import TERMINAL
from rota.wire.messages import Chunk, Ended, Progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.client.blocking import Client

#: More than this is not held back in memory for `--keep-order`, but fetched again later.
_HELD: Final = 64 << 20

_TERMINAL: Final = frozenset(int(state) for state in TERMINAL)


class Printer:
    """Base: prints nothing."""

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
        self._out = stdout or sys.stdout.buffer
        self._err = stderr or sys.stderr.buffer
        self._ended: set[tuple[int, int]] = set()
        self.before: Callable[[], None] = lambda: None  #: called before something is printed
        self._only = only  #: print only this stream, to stdout; 0: both, each to its own

    def reconnected(self, client: Client) -> None:
        """The same jobs are watched through a new connection: what was told comes again."""
        self.client = client

    def take(self, progress: Progress) -> None:
        """Print what is new."""

    def finish(self) -> None:
        """Nothing more will come."""

    def _new(self, ended: Ended) -> bool:
        key = (ended.job, ended.attempt)
        if ended.state not in _TERMINAL or key in self._ended:
            return False
        self._ended.add(key)
        return True

    def _write(self, stream: int, data: bytes) -> None:
        if not data or self._only not in (0, stream):
            return
        self.before()
        # In the order in which it comes, also where both streams are one file.
        if stream == 1 or self._only:
            self._out.write(data)
        else:
            self._out.flush()
            sys.stderr.flush()
            self._err.write(data)
            self._err.flush()

    def _tell_gap(self, ended: Ended, stream: int, missing: int) -> None:
        """Whoever reads a spliced output must know."""
        if missing > 0 and self._only in (0, stream):
            self._out.flush()
            self.before()
            name = "stdout" if stream == 1 else "stderr"
            aside(
                f"rota: warning: job {ended.job} printed much; {missing} bytes in the middle of its {name} were "
                "not kept (setting keep_output)"
            )

    def _fetch(self, ended: Ended, stream: int, offset: int = 0) -> None:
        for part in self.client.output_parts(ended.job, attempt=ended.attempt, err=stream == 2, offset=offset):
            self._write(stream, part)


class Grouped(Printer):
    """The whole output of a job when it has ended; in the order of the input if asked."""

    def __init__(self, client: Client, *, order: list[int] | None = None, stdout: BinaryIO | None = None) -> None:
        super().__init__(client, stdout=stdout)
        self._order = order or []
        self._place = 0
        self._ordered = frozenset(self._order)
        self._waiting: dict[int, Ended] = {}
        self._held = 0

    def take(self, progress: Progress) -> None:
        for ended in progress.ended:
            if ended.job in self._ordered:
                # Blocked ones have nothing to print, but must not hold up the others.
                if ended.state not in _TERMINAL or self._new(ended):
                    self._hold(ended)
            elif self._new(ended):
                self._print(ended)
        if self._order:
            self._release()
        self._out.flush()

    def finish(self) -> None:
        for job in sorted(self._waiting):
            self._print(self._waiting[job])
        self._waiting.clear()
        self._out.flush()

    def _hold(self, ended: Ended) -> None:
        size = len(ended.out) + len(ended.err)
        if size and self._held + size > _HELD:
            ended = msgspec.structs.replace(ended, out=b"", err=b"")
            size = 0
        self._held += size
        self._waiting[ended.job] = ended

    def _release(self) -> None:
        while self._place < len(self._order) and (ended := self._waiting.pop(self._order[self._place], None)):
            self._held -= len(ended.out) + len(ended.err)
            self._place += 1
            self._print(ended)

    def _print(self, ended: Ended) -> None:
        if ended.state not in _TERMINAL:
            return
        if ended.out or ended.out_len == 0:
            self._write(1, ended.out)
        else:
            self._fetch(ended, 1)
        if ended.err or ended.err_len == 0:
            self._write(2, ended.err)
        else:
            self._fetch(ended, 2)
        self._tell_gap(ended, 1, ended.out_total - ended.out_len)
        self._tell_gap(ended, 2, ended.err_total - ended.err_len)


class Live(Printer):
    """Output as it comes; with `lines`, only whole lines, for several jobs at once."""

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
        #: (job, attempt, stream) → bytes printed or held back
        self._reached: dict[tuple[int, int, int], int] = {}
        self._partial: dict[tuple[int, int, int], bytes] = {}
        self._passed: dict[tuple[int, int, int], int] = {}  #: bytes printed of each stream
        self._heard: set[tuple[int, int, int]] = set()  #: had live output on this connection

    def reconnected(self, client: Client) -> None:
        super().reconnected(client)
        self._heard.clear()

    def take(self, progress: Progress) -> None:
        for chunk in progress.chunks:
            self._chunk(chunk)
        for ended in progress.ended:
            if self._new(ended):
                self._end(ended)
        self._out.flush()

    def finish(self) -> None:
        for key in list(self._partial):
            self._write(key[2], self._partial.pop(key))
        self._out.flush()

    def _chunk(self, chunk: Chunk) -> None:
        key = (chunk.job, chunk.attempt, chunk.stream)
        self._heard.add(key)
        skip = self._reached.get(key, 0) - chunk.offset
        data = chunk.data[max(skip, 0) :]
        if data:
            self._reached[key] = chunk.offset + len(chunk.data)
            self._pass(key, data)

    def _pass(self, key: tuple[int, int, int], data: bytes) -> None:
        self._passed[key] = self._passed.get(key, 0) + len(data)
        if self._lines:
            data = self._partial.pop(key, b"") + data
            end = data.rfind(b"\n") + 1
            if end < len(data):
                self._partial[key] = data[end:]
            data = data[:end]
        self._write(key[2], data)

    def _end(self, ended: Ended) -> None:
        for stream, data, kept, total in (
            (1, ended.out, ended.out_len, ended.out_total),
            (2, ended.err, ended.err_len, ended.err_total),
        ):
            key = (ended.job, ended.attempt, stream)
            reached = self._reached.pop(key, 0)
            if key in self._heard:
                self._pass(key, data)  # the manager sends the rest
            elif data:
                self._pass(key, data[reached:])
            elif kept > reached:
                self._flush_line(key)
                self._fetch(ended, stream, reached)
                self._passed[key] = self._passed.get(key, 0) + kept - reached
            self._heard.discard(key)
            self._flush_line(key)
            self._tell_gap(ended, stream, total - self._passed.pop(key, 0))

    def _flush_line(self, key: tuple[int, int, int]) -> None:
        self._write(key[2], self._partial.pop(key, b""))
