"""Copies of the segments of nodes: what their jobs printed, kept beside that of the manager's own host.

A piece is written at its offset in the original, so that a repeated piece changes nothing. Agents are not trusted:
each may write the output of the leases that it holds, one range per lease, and no more.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from rota.core.jobs.outcome import Outcome
from rota.core.output.output_report import NOT_SENT, OutputReport, not_kept
from rota.errors import WireError
from rota.manager.output.open_files import OpenFiles

log = logging.getLogger("rota.manager")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}-\d{6,10}")
_OPEN = 64
#: A segment ends after so much, and what the last attempt printed.
_MOST = 64 << 20
#: Runners may still use a larger `keep_output` of an earlier manager.
_LEAST_ROOM: Final = 2 * (16 << 20)
#: With more ranges than this, those whose lease is over are forgotten.
_MANY: Final = 1024

#: (job, attempt, token)
Key = tuple[int, int, int]


class CopiedRange(Struct, gc=False):
    """Where the output of one attempt goes."""

    segment: str
    begin: int
    reach: int  #: up to here it is written without a gap
    failed: OutputReport | None = None  #: why it could not be written

    def holds(self, segment: str, offset: int, length: int) -> bool:
        return segment == self.segment and self.begin <= offset and offset + length <= self.reach


class UnnamedCopies(Struct, gc=False):
    """What an agent of the first release sent: it does not say whose output a piece is, but sends the outputs of
    attempts whole, in order, and before it tells their ends."""

    ranges: list[CopiedRange]
    used: int = 0  #: bytes of these ranges and of discarded ones


class SegmentCopies:
    """Writes the copies. A piece that cannot be written is missing, and recorded as missing with the end of its
    attempt."""

    def __init__(self, directory: Path, *, keep_output: int) -> None:
        self._directory = directory
        self._room = max(2 * keep_output, _LEAST_ROOM)
        self._files = OpenFiles(self._open, most=_OPEN)
        self._ranges: dict[Key, CopiedRange] = {}
        self._unnamed: dict[str, UnnamedCopies] = {}  #: by runner
        self._failed = False

    def keep(self, key: Key, segment: str, offset: int, data: bytes) -> None:
        """Write a piece of the output of this attempt, whose lease the caller has seen to be valid. What lies
        outside of its range is not written. Raises `WireError` for what no runner sends."""
        self._check(segment, offset, data)
        its = self._ranges.get(key)
        if its is None:
            its = self._ranges[key] = CopiedRange(segment, offset, offset)
        if its.segment != segment or not its.begin <= offset <= its.begin + self._room - len(data):
            return  # no runner sends this
        if offset == its.begin:  # it is sent for the first time, or again
            its.reach, its.failed = offset, None
        self._write(its, offset, data)

    def keep_unnamed(self, runner: str, leases: int, segment: str, offset: int, data: bytes) -> None:
        """Write a piece that does not say which attempt printed it, of a runner that holds so many leases; no more
        than these could need. Raises `WireError` for what no runner sends."""
        self._check(segment, offset, data)
        known = self._unnamed.setdefault(runner, UnnamedCopies([]))
        if any(each.holds(segment, offset, len(data)) for each in known.ranges):
            return  # it is sent again
        if known.used + len(data) > leases * self._room:
            return
        known.used += len(data)
        its = known.ranges[-1] if known.ranges else None
        if its is None or its.segment != segment or offset != its.reach or its.failed is not None:
            its = CopiedRange(segment, offset, offset)
            known.ranges = [*known.ranges[-_OPEN:], its]
        self._write(its, offset, data)

    def _check(self, segment: str, offset: int, data: bytes) -> None:
        if not _NAME.fullmatch(segment) or not 0 <= offset <= _MOST + self._room - len(data):
            raise WireError("a piece of no segment")

    def _write(self, its: CopiedRange, offset: int, data: bytes) -> None:
        try:
            handle = self._files[its.segment]
            end = offset + len(data)
            while data:
                written = os.pwrite(handle, data, end - len(data))
                data = data[written:]
        except OSError as error:
            its.failed = not_kept(error, whose="the manager's disk")
            if not self._failed:
                log.error("output of nodes is lost, it cannot be written: %s", error.strerror)  # noqa: TRY400
            self._failed = True
        else:
            self._failed = False
            if offset <= its.reach:
                its.reach = max(its.reach, end)

    def settled(self, key: Key, outcome: Outcome) -> Outcome:
        """The outcome of an attempt, corrected by what was received of its output. Forgets its range."""
        its = self._ranges.pop(key, None)
        length = outcome.out_len + outcome.err_len
        if not length:
            return outcome
        if its is None and (unnamed := self._unnamed.get(outcome.segment.rpartition("-")[0])) is not None:
            unnamed.used = max(0, unnamed.used - length)
            around = (each for each in unnamed.ranges if each.holds(outcome.segment, outcome.offset, length))
            its = next(around, None) or (unnamed.ranges[-1] if unnamed.ranges else None)
        kept = OutputReport(missing=NOT_SENT, message="its node did not send all of its output")
        if its is not None and its.failed is not None:
            kept = its.failed
        elif its is not None and its.holds(outcome.segment, outcome.offset, length):
            return outcome
        return replace(outcome, segment="", offset=0, out_len=0, err_len=0, kept=kept)

    def forget(self, valid: Callable[[Key], bool]) -> None:
        """Forget the ranges of leases that have ended, if there are many."""
        if len(self._unnamed) > _MANY:
            self._unnamed.clear()
        if len(self._ranges) > _MANY:
            self._ranges = {key: its for key, its in self._ranges.items() if valid(key)}

    def close(self) -> None:
        self._files.close()

    def _open(self, segment: str) -> int:
        self._directory.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(self._directory / segment, flags, 0o600)
