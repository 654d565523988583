"""Output of ended attempts: reads, verifies and syncs the append-only segment files.

Runners on this host write segments themselves; the manager only syncs and reads them.
"""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from pathlib import Path
from typing import Final

from rota.core.jobs.outcome import Outcome
from rota.core.output.output_blocks import Output
from rota.core.output.output_report import CUT, GONE, PRUNED, OutputReport
from rota.core.stored import StoredAttempt, output_of
from rota.errors import NotFound
from rota.manager.loop.readers import Readers
from rota.manager.output.open_files import OpenFiles
from rota.store import segments
from rota.store.base import Store
from rota.store.segments import MESSAGES, Missing, VerifiedSpan
from rota.wire import messages as m

log = logging.getLogger("rota.manager")

#: Why the output of an attempt is missing: it was in the memory of a lost runner.
LOST: Final = "lost"
#: Bytes that are verified to answer one question about a job; beyond that only lengths are checked.
_READ_AT_ONCE: Final = 256 << 20
_REMEMBERED: Final = 4096
#: Of one stream, in one answer.
_PART_MAX: Final = 4 << 20


class SegmentFiles:
    """The segment files of a deployment. Not shared between threads: each thread makes its own."""

    def __init__(self, directory: Path, *, open_files: int = 64) -> None:
        self._directory = directory
        self._files = OpenFiles(self._open, most=open_files)

    def all_of(self, outcome: Outcome, stream: int, *, offset: int, length: int) -> bytes:
        """These bytes of an output, or none if some are missing. For jobs that have just ended: it does not check
        whether the file was replaced."""
        if length <= 0:
            return b""
        output = Output(
            outcome.segment, outcome.offset, outcome.out_len, outcome.err_len, outcome.out_total,
            outcome.err_total, outcome.kept,
        )  # fmt: skip
        span = segments.read(self._pread_open, output, stream, offset=offset, limit=length)
        return span.data if len(span.data) == length else b""

    def span(self, output: Output, stream: int, *, offset: int, limit: int) -> VerifiedSpan:
        """A part of a stream, verified, and what is missing after it."""
        return segments.read(self._pread, output, stream, offset=offset, limit=limit)

    def sync(self, names: set[str]) -> dict[str, OSError]:
        """Sync these segments. Returns the errors by segment; a segment that does not exist is no error."""
        failed = {}
        for segment in names:
            try:
                handle = self._files[segment]
            except OSError:
                continue
            try:
                os.fdatasync(handle)
            except OSError as error:
                log.error("output is lost, a segment cannot be synced: %s", error.strerror)  # noqa: TRY400
                failed[segment] = error
        return failed

    def close(self) -> None:
        self._files.close()

    def _pread_open(self, segment: str, offset: int, length: int) -> bytes:
        return os.pread(self._files[segment], length, offset)

    def _pread(self, segment: str, offset: int, length: int) -> bytes:
        handle = self._files[segment]
        there = os.stat(self._directory / segment, follow_symlinks=False)
        if not os.path.samestat(os.fstat(handle), there):  # it was replaced
            self._files.close()
            handle = self._files[segment]
        return segments.pread_all(handle, length, offset)

    def _open(self, segment: str) -> int:
        return segments.open_segment(self._directory, segment)


class OutputChecks:
    """Checks whether outputs are complete. For worker threads. A complete output is not read again until its
    segment changes."""

    def __init__(self, directory: Path, store: Store) -> None:
        self._directory = directory
        self._store = store
        self._whole: OrderedDict[tuple[str, int], tuple[int, int, int]] = OrderedDict()

    def missing(self, attempts: list[StoredAttempt]) -> list[Missing | None]:
        """What is missing of each of these attempts. The newest ones are verified first."""
        found: list[Missing | None] = []
        left = _READ_AT_ONCE
        for output in map(output_kept, reversed(attempts)):
            left -= output.out_len + output.err_len
            found.append(self._missing(output, thorough=left >= 0))
        return found[::-1]

    def _missing(self, output: Output, *, thorough: bool) -> Missing | None:
        if output.kept is not None and output.kept.missing:
            return Missing(output.kept.missing, output.kept.message)
        if not output.segment:
            return None
        key = (output.segment, output.offset)
        state = self._state(output.segment)
        if state is not None and self._whole.get(key) == state:
            return None
        if state is not None and not thorough:
            short = state[1] < output.offset + output.out_len + output.err_len
            return Missing(CUT, MESSAGES[CUT]) if short else None
        for _, missing in segments.check(self._directory, [(None, output)]):
            return explained(missing, output, self._store)
        if state is not None:
            self._whole[key] = state
            if len(self._whole) > _REMEMBERED:
                self._whole.popitem(last=False)
        return None

    def _state(self, segment: str) -> tuple[int, int, int] | None:
        try:
            facts = os.stat(self._directory / segment, follow_symlinks=False)
        except (OSError, ValueError):
            return None
        return facts.st_mtime_ns, facts.st_size, facts.st_ino


def output_kept(row: StoredAttempt) -> Output:
    """Where the output of an attempt is. That of a lost attempt is lost, too."""
    output = output_of(row)
    if row.reason_code == "lost" and not output.segment and output.kept is None and row.started_at is not None:
        return Output(
            "", 0, 0, 0, 0, 0, OutputReport(missing=LOST, message="what it had printed was lost with its runner")
        )
    return output


def explained(missing: Missing, output: Output, store: Store) -> Missing:
    """The same, or that it was pruned, if the database says so."""
    if missing.code == GONE and store.pruned({output.segment}):
        return Missing(PRUNED, MESSAGES[PRUNED])
    return missing


async def read_part(ask: m.ReadOutput, *, store: Store, outputs: SegmentFiles, readers: Readers) -> m.OutputPart:
    """Part of an output, verified, and what is missing there. Raises `NotFound` if there is no such attempt."""
    attempts = await readers.read(lambda: store.attempts(ask.job))
    executed = [each for each in attempts if each.outcome != "void"]
    number = ask.attempt or (executed[-1].number if executed else 0)
    found = next((each for each in executed if each.number == number), None)
    if found is None:
        if ask.attempt:
            raise NotFound(f"job {ask.job} has no attempt {ask.attempt}", hint=f"see 'rota show {ask.job}'")
        return m.OutputPart(b"", 0, 0, done=False)
    output = output_kept(found)
    kept, head, left_out = output.length(ask.stream), output.head(ask.stream), output.left_out(ask.stream)
    limit = min(ask.limit, _PART_MAX)
    if left_out and ask.offset < head:
        limit = min(limit, head - ask.offset)  # a part ends where output was left out
    span = outputs.span(output, ask.stream, offset=ask.offset, limit=limit)
    code = message = ""
    if span.missing is not None:
        missing = span.missing
        code, message = await readers.read(lambda: explained(missing, output, store))
    end = ask.offset + len(span.data) + span.lost
    return m.OutputPart(
        data=span.data,
        total=kept,
        written=output.total(ask.stream),
        done=found.outcome is not None and end >= kept,
        attempt=number,
        gap=left_out if ask.offset == head else 0,
        lost=span.lost,
        code=code,
        message=message,
    )
