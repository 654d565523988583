"""Print the output of each job in one piece: when it has ended, or in the order of the input.

Output that comes before its turn is buffered in memory, and beyond that in an unnamed file below `TMPDIR`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec

from rota.cli.session.job_output import ENDED, Printer, Stream
from rota.errors import EnvironmentFault
from rota.spool import Spool, SpoolQueue

if TYPE_CHECKING:
    from rota.client.blocking import Client
    from rota.wire.client_messages import Chunk, Ended

#: With `--keep-order`, this much output of ended jobs is kept in memory.
_HELD: Final = 16 << 20


class GroupedPrinter(Printer):
    """Prints a job's whole output when it has ended; with `order`, in that order of jobs."""

    def __init__(self, client: Client, *, order: list[int] | None = None, stdout: BinaryIO | None = None) -> None:
        super().__init__(client, stdout=stdout)
        self._order = order or []
        self._place = 0
        self._ordered = frozenset(self._order)
        self._waiting: dict[int, Ended] = {}
        self._held = 0
        self._spool: Spool | None = None  #: made when something must wait
        self._aside: dict[Stream, SpoolQueue] = {}  #: what jobs printed whose turn has not come
        self._printing = 0  #: the job whose turn it is

    def finish(self) -> None:
        for job in sorted(self._waiting):
            self._print(self._waiting[job])
        self._waiting.clear()
        self._out.flush()
        if self._spool is not None:
            self._spool.close()

    def _settled(self, ended: Ended) -> None:
        if ended.job in self._ordered:
            # Blocked jobs print nothing, but must not hold up the others.
            if ended.state not in ENDED or self._new(ended):
                self._hold(ended)
                self._release()
        elif self._new(ended):
            self._print(ended)

    def _hold(self, ended: Ended) -> None:
        size = len(ended.out) + len(ended.err)
        if size and self._held + size > _HELD:
            # Too much for memory: buffer it on disk, like live output.
            if ended.out and ended.out_total <= ended.out_len:
                self._put_rest_aside((ended.job, ended.attempt, 1), ended.out)
                ended = msgspec.structs.replace(ended, live_out=0)
            if ended.err and ended.err_total <= ended.err_len:
                self._put_rest_aside((ended.job, ended.attempt, 2), ended.err)
                ended = msgspec.structs.replace(ended, live_err=0)
            ended = msgspec.structs.replace(ended, out=b"", err=b"")
            size = 0
        self._held += size
        self._waiting[ended.job] = ended

    def _put_rest_aside(self, key: Stream, data: bytes) -> None:
        """The rest of what came live on this connection, or all of it."""
        self._put_aside(key, data if key in self._heard else data[self._reached.get(key, 0) :])

    def _release(self) -> None:
        while self._place < len(self._order) and (ended := self._waiting.pop(self._order[self._place], None)):
            self._held -= len(ended.out) + len(ended.err)
            self._place += 1
            self._print(ended)

    def _chunk(self, chunk: Chunk) -> None:
        # Of a job that is tried again only the last attempt is shown.
        for key in [key for key in self._aside if key[0] == chunk.job and key[1] < chunk.attempt]:
            self._aside.pop(key).close()
        super()._chunk(chunk)

    def _print(self, ended: Ended) -> None:
        self._printing = ended.job
        for key in [key for key in self._aside if key[0] == ended.job and key[1] != ended.attempt]:
            self._aside.pop(key).close()
        for stream in (1, 2):
            self._print_aside((ended.job, ended.attempt, stream))
            if ended.state in ENDED:
                self._rest(ended, stream)
        self._printing = 0

    def _print_aside(self, key: Stream) -> None:
        queue = self._aside.pop(key, None)
        while queue is not None and (data := queue.read(queue.at, 1 << 20)):
            self._write(key[2], data)
            queue.free(queue.at + len(data))

    def _pass(self, key: Stream, data: bytes) -> None:
        if key[0] == self._printing:
            self._write(key[2], data)
        else:
            self._put_aside(key, data)

    def _before_gap(self, key: Stream) -> bytes:
        queue = self._aside.get(key)
        if queue is None:
            return self._last[key[2]] if key[0] == self._printing else b"\n"
        return queue.read(queue.end - 1, 1)

    def _put_aside(self, key: Stream, data: bytes) -> None:
        queue = self._aside.get(key)
        if queue is None:
            self._spool = self._spool or Spool(_directory())
            queue = self._aside[key] = self._spool.queue(0)
        try:
            queue.append(data)
        except OSError as error:
            raise EnvironmentFault(
                f"the output of job {key[0]} cannot be put aside until its turn: {error.strerror} "
                f"in {_directory()}",
                hint="the jobs go on; set TMPDIR to where there is room, or use --output line",
                code="disk_full",
            ) from error


def _directory() -> str:
    from tempfile import gettempdir  # slow to load, and most runs need none

    return gettempdir()
