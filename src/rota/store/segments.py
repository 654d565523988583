"""Reads outputs of ended attempts from their segments. Only verified bytes are returned; gaps are reported.

A segment may be missing, truncated or damaged. `check` verifies many outputs, for `rota doctor` too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeVar
from zlib import crc32

from rota.core.output.output_blocks import Output, block_size
from rota.core.output.output_report import CUT, DAMAGED, GONE, PRUNED, UNREADABLE

K = TypeVar("K")

#: Bytes of a segment from an offset on, or fewer at its end. Raises `OSError`.
Pread = Callable[[str, int, int], bytes]

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_PAGE: Final = 1 << 20
_ATTEMPTS: Final = 10_000

MESSAGES: Final = {
    PRUNED: "removed because of its age or for space (settings output_days and output_space)",
    GONE: "the file that held it is gone",
    CUT: "the file that held it is cut short",
    DAMAGED: "the file that held it is damaged",
    UNREADABLE: "the file that holds it cannot be read",
}


class Missing(NamedTuple):
    """Why an output is incomplete: a code of `core.output.output_report`, and a sentence."""

    code: str
    message: str


class VerifiedSpan(NamedTuple):
    """Verified bytes of a stream, and how many bytes after them are unavailable, and why."""

    data: bytes
    lost: int = 0
    missing: Missing | None = None


def read(pread: Pread, output: Output, stream: int, *, offset: int, limit: int) -> VerifiedSpan:
    """What is kept of a stream (1: stdout, 2: stderr) from `offset` on, at most `limit` bytes of it.

    It ends at the first gap; continue reading behind it. Outputs of older versions have no checksums: only their
    length is verified.
    """
    if output.kept is not None and output.kept.missing:
        if not output.total(stream) and output.out_total + output.err_total:
            return VerifiedSpan(b"")  # everything went to the other stream (if both are 0, that is unknown)
        return VerifiedSpan(b"", output.total(stream), Missing(output.kept.missing, output.kept.message))
    length = output.length(stream)
    end = min(length, offset + limit)
    if offset >= end:
        return VerifiedSpan(b"")
    size = 1 if output.kept is None else block_size(length)
    begin = offset - offset % size
    try:
        data = pread(output.segment, output.begins(stream) + begin, min(length, -(-end // size) * size) - begin)
    except FileNotFoundError:
        return VerifiedSpan(b"", length - offset, _missing(GONE))
    except OSError as error:
        return VerifiedSpan(b"", length - offset, Missing(UNREADABLE, f"{MESSAGES[UNREADABLE]}: {error.strerror}"))
    if output.kept is None:
        cut = len(data) < end - offset
        return VerifiedSpan(data, length - offset - len(data), _missing(CUT)) if cut else VerifiedSpan(data)
    good = _good_until(data, begin, end, output, stream)
    if good < end and begin + len(data) < min(length, good + size):
        missing, until = _missing(CUT), length
    else:
        missing, until = _missing(DAMAGED), min(end, good + size)
    read_to = min(max(good, offset), end)
    data = data[offset - begin : read_to - begin]
    return VerifiedSpan(data) if good >= end else VerifiedSpan(data, until - read_to, missing)


def _good_until(data: bytes, begin: int, end: int, output: Output, stream: int) -> int:
    """Where in a stream the first block begins that is not as it should be; `end` or more: all are. `data` begins
    at `begin`, where a block does."""
    length = output.length(stream)
    size, sums = block_size(length), output.sums(stream)
    view = memoryview(data)
    for at in range(begin, end, size):
        number, block = at // size, view[at - begin : min(length, at + size) - begin]
        if number >= len(sums) or len(block) < min(length, at + size) - at or crc32(block) != sums[number]:
            return at
    return end


def check(directory: Path, outputs: Iterable[tuple[K, Output]]) -> Iterator[tuple[K, Missing]]:
    """Read these outputs (each with what its owner calls it) and tell which are not all there, and why.

    An output that could not be kept at all, which its row says, is told as well. Reads every byte that is referred
    to. That a segment was pruned is known to the database only: here it is `gone`. See `check_all`.
    """
    handles: dict[str, int] = {}

    def pread(segment: str, offset: int, length: int) -> bytes:
        if segment not in handles:
            while handles:
                os.close(handles.popitem()[1])
            handles[segment] = open_segment(directory, segment)
        return pread_all(handles[segment], length, offset)

    try:
        for key, output in outputs:
            if (missing := fault(pread, output)) is not None:
                yield key, missing
    finally:
        for handle in handles.values():
            os.close(handle)


class OutputIndex(Protocol):
    """The part of a `Store` that finds all outputs."""

    def outputs(self, *, after: tuple[int, int], limit: int) -> Sequence[tuple[tuple[int, int], Output]]: ...
    def pruned(self, segments: Collection[str]) -> set[str]: ...


def check_all(directory: Path, store: OutputIndex) -> Iterator[tuple[tuple[int, int], Missing]]:
    """The same of every attempt that the database knows: ((job, attempt), what is missing). What was pruned, as
    the settings say, is told as `pruned`."""
    after = (0, 0)
    while page := store.outputs(after=after, limit=_ATTEMPTS):
        where = dict(page)
        faults = list(check(directory, page))
        pruned = store.pruned({where[key].segment for key, missing in faults if missing.code == GONE})
        for key, missing in faults:
            yield key, _missing(PRUNED) if where[key].segment in pruned and missing.code == GONE else missing
        after, _output = page[-1]


def fault(pread: Pread, output: Output) -> Missing | None:
    """What is wrong with one output; None: all of it is there. Reads it whole."""
    for stream in (1, 2):
        offset = 0
        while True:
            span = read(pread, output, stream, offset=offset, limit=_PAGE)
            if span.missing is not None:
                return span.missing
            offset += len(span.data)
            if not span.data:
                break
    return None


def open_segment(directory: Path, segment: str) -> int:
    """A descriptor to read from. Raises `OSError`."""
    if not NAME.fullmatch(segment):
        raise FileNotFoundError(2, "not the name of a segment")
    return os.open(directory / segment, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)


def pread_all(handle: int, length: int, offset: int) -> bytes:
    """So many bytes, or fewer at the end of the file. Raises `OSError`."""
    data = os.pread(handle, length, offset)
    while len(data) < length and (more := os.pread(handle, length - len(data), offset + len(data))):
        data += more
    return data


def _missing(code: str) -> Missing:
    return Missing(code, MESSAGES[code])
