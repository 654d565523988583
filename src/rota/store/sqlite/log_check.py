"""Does SQLite's write-ahead log hold commits that SQLite would drop?

After a crash SQLite replays the log up to the first invalid frame and silently drops the rest. That is right for
the last commit, which the crash tore before it was acknowledged; it is wrong for earlier commits. If the machine
has not rebooted since, the log's index still says how many frames were committed. Otherwise the frames after the
torn one decide: every commit is synced before the next one begins.

Uncommitted frames may hold anything. A large transaction writes pages before its commit and rewrites some of them,
with checksums that become valid only at the commit; a failed one leaves its frames behind.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import BinaryIO, Final

_HEADER: Final = struct.Struct(">8I")  # magic, version, page size, sequence, two salts, two sums
_FRAME: Final = struct.Struct(">6I")  # page, pages after this commit (or 0), two salts, two sums
_MAGIC: Final = 0x377F0682  #: plus one if the checksums are over big-endian words
_INDEX: Final = struct.Struct("=III2BH2I2I8s2I")
_INDEX_VERSION: Final = 3007000
#: The part of the index that says what was committed: the same header twice.
INDEX_HEAD: Final = 2 * _INDEX.size
_M: Final = 0xFFFFFFFF
_PAGES: Final = frozenset(1 << power for power in range(9, 17))  #: page sizes that SQLite supports

Sums = tuple[int, int]


def committed(log: Path) -> int | None:
    """The number of committed frames according to the log's index; None: unknown. Raises `OSError`.

    Call it before SQLite opens the database and rebuilds the index from the frames it accepts. The index is in
    shared memory, which is lost when the machine crashes.
    """
    try:
        index = log.with_name(log.name.removesuffix("-wal") + "-shm").read_bytes()[:INDEX_HEAD]
    except FileNotFoundError:
        return None
    head, again = index[: _INDEX.size], index[_INDEX.size :]
    if len(head) < _INDEX.size or head != again:
        return None
    version, _, changes, *_, frames, _, _, _, salts, sum0, sum1 = _INDEX.unpack(head)
    if version != _INDEX_VERSION or _sum(head[:-8], (0, 0), little=sys.byteorder == "little") != (sum0, sum1):
        return None
    with log.open("rb") as file:
        of_this_log = file.read(_HEADER.size)[16:24] == salts
    # A change counter of zero: a reader rebuilt the index after the crash.
    return int(frames) if changes and of_this_log else None


def left_out(log: Path, *, valid: int | None = None, known: int | None = None, same_boot: bool) -> str:
    """The committed part of the log that SQLite would drop; empty: nothing. Raises `OSError`.

    `valid`: the number of frames SQLite accepts; None: find out. `known`: the number of committed frames, if
    known. `same_boot`: the log was written since the machine booted.
    """
    with log.open("rb") as file:
        return _left_out(file, log.stat().st_size, valid, known if same_boot else None, same_boot=same_boot)


def _left_out(file: BinaryIO, size: int, valid: int | None, known: int | None, *, same_boot: bool) -> str:
    if size == 0:
        return ""
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size:
        return f"only {size} bytes of its log are left" if same_boot else ""
    magic, _, page, _, *salts, sum0, sum1 = _HEADER.unpack(head)
    walk = _Walk(file, size, page, (salts[0], salts[1]), little=not magic & 1)
    computed = _sum(head[:24], (0, 0), little=walk.little)
    if magic & ~1 != _MAGIC or computed != (sum0, sum1):
        # A crash while the log was restarted may have torn the header, but not if frames follow that match it.
        followed = any(walk.follows(1, seed) for seed in ((sum0, sum1), computed))
        return "the header of its log is damaged" if same_boot or followed else ""
    if valid is None:
        valid = walk.committed((sum0, sum1))
    number = valid + 1
    if known is not None:
        return _damaged(number) if valid < known else ""
    seed = walk.sums(valid) if valid else (sum0, sum1)
    while walk.is_ours(number) and walk.follows(number, seed):
        seed = walk.sums(number)
        number += 1
    if not walk.is_ours(number):
        return ""  # uncommitted frames, if any
    # A writer killed in the act leaves one frame with an old page, or a transaction without its end.
    commits = walk.commits_from(number)
    certain = (commits and walk.is_ours(number + 1)) or walk.one_byte_off(number, seed)
    return _damaged(number) if (same_boot and certain) or commits > 1 else ""


def _damaged(number: int) -> str:
    return f"frame {number} of its log is damaged, and what was committed since is lost"


class _Walk:
    """The frames of a log, counted from 1."""

    def __init__(self, file: BinaryIO, size: int, page: int, salts: Sums, *, little: bool) -> None:
        self._file = file
        self._page = page if page in _PAGES else 4096  # damaged data may claim anything
        self._count = (size - _HEADER.size) // (_FRAME.size + self._page)
        self._salts = salts
        self.little = little

    def _head(self, number: int) -> bytes:
        self._file.seek(_HEADER.size + (number - 1) * (_FRAME.size + self._page))
        return self._file.read(_FRAME.size)

    def is_ours(self, number: int) -> bool:
        """Was the frame written since the log was restarted? Older frames have other salts."""
        if not 0 < number <= self._count:
            return False
        _, _, *salts, _, _ = _FRAME.unpack(self._head(number))
        return bool(salts[0] == self._salts[0] or salts[1] == self._salts[1])

    def sums(self, number: int) -> Sums:
        return _FRAME.unpack(self._head(number))[4:]

    def follows(self, number: int, seed: Sums) -> bool:
        """Does a complete frame follow that continues these checksums?"""
        if not 0 < number <= self._count:
            return False
        head = self._head(number)
        _, _, *salts, sum0, sum1 = _FRAME.unpack(head)
        data = head[:8] + self._file.read(self._page)
        return (salts[0], salts[1]) == self._salts and _sum(data, seed, little=self.little) == (sum0, sum1)

    def one_byte_off(self, number: int, seed: Sums) -> bool:
        """Would the frame be valid if a single byte of it were different?"""
        head = self._head(number)
        _, _, *salts, sum0, sum1 = _FRAME.unpack(head)
        data = head[:8] + self._file.read(self._page)
        a, b = _sum(data, seed, little=self.little)
        off = (sum0 - a) & _M, (sum1 - b) & _M
        if off == (0, 0):
            return (salts[0], salts[1]) != self._salts
        if 0 in off and _is_byte(off[0] or off[1]):
            return True  # in the checksums themselves
        # The effect on the checksums of adding one to a word, from the last pair of words back to the first.
        first, second = (1, 1), (0, 1)
        for _ in range(len(data) // 8):
            for x, y in (first, second):
                more = off[0] * pow(x, -1, 1 << 32) if x & 1 else off[1] * pow(y, -1, 1 << 32)
                if ((x * more) & _M, (y * more) & _M) == off and _is_byte(more & _M):
                    return True
            first, second = _after_one_more_pair(first), _after_one_more_pair(second)
        return False

    def committed(self, seed: Sums) -> int:
        """The number of frames SQLite accepts: up to the last one that ends a commit."""
        number, last = 1, 0
        while self.follows(number, seed):
            seed = self.sums(number)
            if _FRAME.unpack(self._head(number))[1]:
                last = number
            number += 1
        return last

    def commits_from(self, number: int) -> int:
        found = 0
        while self.is_ours(number):
            found += _FRAME.unpack(self._head(number))[1] != 0
            number += 1
        return found


def _sum(data: bytes, seed: Sums, *, little: bool) -> Sums:
    """SQLite's checksum, over pairs of words."""
    a, b = seed
    words = struct.unpack(f"{'<' if little else '>'}{len(data) // 4}I", data)
    for x, y in zip(words[::2], words[1::2], strict=True):
        a = (a + x + b) & _M
        b = (b + y + a) & _M
    return a, b


def _after_one_more_pair(more: Sums) -> Sums:
    """The difference of two checksums after one more pair of words."""
    a = (more[0] + more[1]) & _M
    return a, (more[1] + a) & _M


def _is_byte(difference: int) -> bool:
    """Can two words with this difference differ in one byte only?"""
    least = (difference & -difference).bit_length() - 1 & ~7
    return any(abs(signed) >> least < 256 for signed in (difference, difference - (1 << 32)))
