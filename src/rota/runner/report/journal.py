"""The runner's write-ahead journal: what it was about to execute and how that ended, for its successor.

Append-only, one write before each spawn, no fsync: only a reboot loses what was written, and a reboot ends the
processes too. It knows nothing of sockets or processes. Reading never fails: a truncated or damaged end is left
out.

Each write is one block: its length, a checksum, and an array of records.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from errno import ENOSPC
from struct import Struct as Layout
from zlib import crc32

import msgspec
from msgspec import Struct

from rota.core.attempts.leases import Finished
from rota.runner.log import say

COMPACT_OVER = 4 * 1024 * 1024
COMPACT_IDLE_OVER = 64 * 1024

_HEADER = Layout(">IIBI")  # length and checksum of what follows: an array of so many records
_ARRAY = 0xDD  # how msgpack marks an array whose length takes four bytes
_PREFIX = 8  # bytes of the header that are not part of the array
_MAX_BLOCK = 1 << 30

Key = tuple[int, int, int]  # job, attempt, token


class JournalEntry(Struct, frozen=True, array_like=True, gc=False):
    """Base of all records."""


class Began(JournalEntry, frozen=True, tag="b"):
    """First record: the runner that writes this, on which boot of which machine."""

    runner: str
    machine: str
    boot_id: str
    pid: int
    start_time: int


class Intent(JournalEntry, frozen=True, tag="i"):
    """This lease is about to be executed. Only what has an intent can have run."""

    job: int
    attempt: int
    token: int
    scratch: bool = False
    part: bool = False  #: it has no command of its own

    @property
    def key(self) -> Key:
        return self.job, self.attempt, self.token


class Preparing(JournalEntry, frozen=True, tag="h"):
    """The prologue of a lease runs. The next intent for it marks the start of its command."""

    job: int
    attempt: int
    token: int


class Spawned(JournalEntry, frozen=True, tag="p"):
    """The process of a lease: leader of a session of the same number."""

    job: int
    attempt: int
    token: int
    pid: int
    start_time: int  #: in clock ticks since boot, give or take a tick
    seat: int
    started_at: float


class Contained(JournalEntry, frozen=True, tag="c"):
    """A fence was made for a lease."""

    job: int
    attempt: int
    token: int
    fence: str  #: see `Fence.record`


class Void(JournalEntry, frozen=True, tag="v"):
    """The intent came to nothing: the process could not be started, the lease was handed back."""

    job: int
    attempt: int
    token: int


class Ended(JournalEntry, frozen=True, tag="e"):
    """The command of a lease has ended, its behaviours have not. Its outcome if no later record follows."""

    finished: Finished
    scratch_goes: bool  #: its scratch directory is then no longer needed


class Over(JournalEntry, frozen=True, tag="o"):
    """A lease has ended and nothing of it is left."""

    finished: Finished


class Acked(JournalEntry, frozen=True, tag="a"):
    """The first `count` outcomes of this journal are known to the manager."""

    count: int


Record = Began | Intent | Preparing | Spawned | Contained | Void | Ended | Over | Acked

_encode_into = msgspec.msgpack.Encoder().encode_into
_decode = msgspec.msgpack.Decoder(list[Record]).decode


def pack(records: Iterable[Record]) -> bytes:
    """Encode records as one block."""
    block = bytearray(_HEADER.size)
    count = 0
    for record in records:
        _encode_into(record, block, -1)
        count += 1
    return bytes(_sealed(block, count))


def _sealed(block: bytearray, count: int) -> bytearray:
    """Fill in the header, for which a block has room at its start."""
    checksum = crc32(block[_HEADER.size :], count)
    _HEADER.pack_into(block, 0, len(block) - _PREFIX, checksum, _ARRAY, count)
    return block


def unpack(data: bytes) -> tuple[list[Record], bool]:
    """All records of whole blocks up to the first damage, and whether that is all that was written.

    A block cut short at the end is no loss: a runner acts on an intent only when it is whole.
    """
    found: list[Record] = []
    at, end = 0, len(data)
    while at + _HEADER.size <= end:
        length, checksum, _, count = _HEADER.unpack_from(data, at)
        block = data[at : at + _PREFIX + length]
        if len(block) < _PREFIX + length:
            return found, length <= _MAX_BLOCK and not _holds_more(block, checksum, count)
        if length > _MAX_BLOCK or crc32(block[_HEADER.size :], count) != checksum:
            return found, False
        try:
            found += _decode(block[_PREFIX:])
        except msgspec.DecodeError:
            return found, False
        at += _PREFIX + length
    return found, True


def _holds_more(tail: bytes, checksum: int, count: int) -> bool:
    """Is this a whole block whose length field is damaged?"""
    view = memoryview(tail)[_HEADER.size :]
    for at in range(len(view)):
        count = crc32(view[at : at + 1], count)
        if count == checksum:
            return True
    return False


class JournalledLease:
    """What a journal says about one lease that was (about to be) executed."""

    __slots__ = ("ended", "fence", "finished", "intent", "preparing", "spawned")

    def __init__(self, intent: Intent) -> None:
        self.intent = intent
        self.preparing = False  #: its command was never begun
        self.spawned: Spawned | None = None
        self.fence = ""
        self.ended: Ended | None = None
        self.finished: Finished | None = None


class Story:
    """A journal as read: its writer, and what became of each lease that is not acknowledged."""

    def __init__(self, records: Iterable[Record], *, whole: bool = True) -> None:
        self.whole = whole  #: False: there may have been leases that this journal no longer shows
        self.began: Began | None = None
        self.leases: dict[Key, JournalledLease] = {}
        over: list[Key] = []
        for record in records:
            match record:
                case Began():
                    self.began = record
                case Intent():
                    self.leases[record.job, record.attempt, record.token] = JournalledLease(record)
                case Void():
                    self.leases.pop((record.job, record.attempt, record.token), None)
                case Preparing():
                    if (lease := self._lease(record)) is not None:
                        lease.preparing = True
                case Spawned():
                    if (lease := self._lease(record)) is not None:
                        lease.spawned = record
                case Contained():
                    if (lease := self._lease(record)) is not None:
                        lease.fence = record.fence
                case Ended(finished):
                    key = (finished.job, finished.attempt, finished.token)
                    if key in self.leases:
                        self.leases[key].ended = record
                case Over(finished):
                    key = (finished.job, finished.attempt, finished.token)
                    over.append(key)
                    if key in self.leases:
                        self.leases[key].finished = finished
                case Acked(count):
                    for key in over[:count]:
                        self.leases.pop(key, None)

    def _lease(self, record: Preparing | Spawned | Contained) -> JournalledLease | None:
        return self.leases.get((record.job, record.attempt, record.token))


def read(path: str) -> Story:
    """Raises `FileNotFoundError` if there is no journal."""
    with open(path, "rb") as file:
        records, whole = unpack(file.read())
    return Story(records, whole=whole)


class Journal:
    """The journal of this runner, open for appending.

    Intents are written at once, as blocks made beforehand (`pack`). Other records wait in a buffer and
    go out with the next intent or `flush`.
    """

    def __init__(self, directory: str, began: Began) -> None:
        self._path = f"{directory}/journal"
        self._began = began
        self._block = bytearray(_HEADER.size)
        self._count = 0
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.size = 0  #: bytes on file
        self.add(began)
        self.flush()

    def add(self, record: Record) -> None:
        """Buffer a record."""
        _encode_into(record, self._block, -1)
        self._count += 1

    def intend(self, block: bytes) -> None:
        """The block is on file when this returns. Raises `OSError`, and then nothing of it is there."""
        if self._count:
            self._append(_sealed(self._block, self._count) + block)
            self._clear()
        else:
            self._append(block)

    def flush(self) -> None:
        """Write what is buffered. Raises `OSError`; the buffer then stays for the next time."""
        if self._count:
            self._append(_sealed(self._block, self._count))
            self._clear()

    def flush_or_log(self) -> None:
        """Write what is buffered, if that is possible now.

        A full disk must not stop jobs: the journal matters only if this process dies before the manager has
        acknowledged their ends.
        """
        try:
            self.flush()
        except OSError as error:
            say(f"journal: {error}")

    def _append(self, data: bytes | bytearray) -> None:
        written = 0
        try:
            written = os.write(self._fd, data)
        finally:
            if written != len(data):
                # The disk filled up in the middle of a block: the next must not come after garbage.
                os.ftruncate(self._fd, self.size)
        if written != len(data):
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        self.size += written

    def _clear(self) -> None:
        self._count = 0
        del self._block[_HEADER.size :]

    def compact(self, live: Iterable[Record]) -> None:
        """Replace the journal by these records. Raises `OSError`; the old journal then stays in use."""
        fresh = pack([self._began, *live])
        path = f"{self._path}.new"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            _write_all(fd, fresh)
            os.rename(path, self._path)
        except OSError:
            os.close(fd)
            raise
        os.close(self._fd)
        self._fd, self.size = fd, len(fresh)
        self._clear()

    def close(self) -> None:
        os.close(self._fd)


def _write_all(fd: int, data: bytes) -> None:
    if os.write(fd, data) != len(data):
        raise OSError(ENOSPC, os.strerror(ENOSPC))


def take_lock(directory: str, *, create: bool = False) -> int | None:
    """Hold the lock of a runner's directory, or None: that runner lives, or has no lock yet."""
    return lock_file(f"{directory}/lock", create=create)


def lock_file(path: str, *, create: bool) -> int | None:
    """A descriptor that holds this lock until it is closed, or None: another process does, or there is none."""
    flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
    try:
        fd = os.open(path, flags, 0o600)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        here, there = os.fstat(fd), os.stat(path)
    except OSError:
        os.close(fd)
        return None
    if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
        os.close(fd)  # another runner has settled and removed it meanwhile
        return None
    return fd
