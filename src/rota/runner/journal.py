"""The runner's diary: what it was about to execute and how that ended, for whoever finds it dead.

Append-only, one write before each spawn, no fsync: only a reboot loses what was written, and a reboot
ends the processes too. It knows nothing of sockets or processes. Reading never fails: what is cut off
or garbled at the end is left out.
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

from rota.core.leases import Finished

COMPACT_OVER = 4 * 1024 * 1024
COMPACT_IDLE_OVER = 64 * 1024

_HEADER = Layout("<II")  # length and checksum of the record that follows
_MAX_RECORD = 1024 * 1024

Key = tuple[int, int, int]  # job, attempt, token


class Entry(Struct, frozen=True, array_like=True, gc=False):
    """Base of all records."""


class Began(Entry, frozen=True, tag="b"):
    """First record: who writes this, and in which life of which machine."""

    runner: str
    machine: str
    boot_id: str
    pid: int
    start_time: int


class Intent(Entry, frozen=True, tag="i"):
    """This lease is about to be executed. Only what has an intent can have run."""

    job: int
    attempt: int
    token: int
    seat: int
    started_at: float
    scratch: bool = False


class Spawned(Entry, frozen=True, tag="p"):
    """The process of a lease: leader of a session of the same number."""

    job: int
    attempt: int
    token: int
    pid: int
    start_time: int  #: in clock ticks since boot, give or take a tick


class Contained(Entry, frozen=True, tag="c"):
    """A cgroup was made for a lease."""

    job: int
    attempt: int
    token: int
    cgroup: str


class Void(Entry, frozen=True, tag="v"):
    """The intent came to nothing: the process could not be started, the lease was handed back."""

    job: int
    attempt: int
    token: int


class Over(Entry, frozen=True, tag="o"):
    """A lease ended like this and nothing of it is left."""

    finished: Finished


class Acked(Entry, frozen=True, tag="a"):
    """The first `count` outcomes of this journal are known to the manager."""

    count: int


Record = Began | Intent | Spawned | Contained | Void | Over | Acked

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


def pack(record: Record) -> bytes:
    payload = _encode(record)
    return _HEADER.pack(len(payload), crc32(payload)) + payload


def unpack(data: bytes) -> tuple[list[Record], bool]:
    """All whole records up to the first damage, and whether that is all that was ever written.

    A record cut short at the end is no loss: whoever writes an intent acts only when it is whole.
    """
    found: list[Record] = []
    at, end = 0, len(data)
    while at + _HEADER.size <= end:
        length, checksum = _HEADER.unpack_from(data, at)
        payload = data[at + _HEADER.size : at + _HEADER.size + length]
        if len(payload) < length:
            return found, length <= _MAX_RECORD
        if length > _MAX_RECORD or crc32(payload) != checksum:
            return found, False
        try:
            found.append(_decode(payload))
        except msgspec.DecodeError:
            return found, False
        at += _HEADER.size + length
    return found, True


class Lease:
    """What a journal says about one lease that was (about to be) executed."""

    __slots__ = ("cgroup", "finished", "intent", "spawned")

    def __init__(self, intent: Intent) -> None:
        self.intent = intent
        self.spawned: Spawned | None = None
        self.cgroup = ""
        self.finished: Finished | None = None


class Story:
    """A journal as read: who wrote it and what became of each lease that is not acknowledged."""

    def __init__(self, records: Iterable[Record], *, whole: bool = True) -> None:
        self.whole = whole  #: False: there may have been leases that this journal no longer shows
        self.began: Began | None = None
        self.leases: dict[Key, Lease] = {}
        over: list[Key] = []
        for record in records:
            match record:
                case Began():
                    self.began = record
                case Intent():
                    self.leases[record.job, record.attempt, record.token] = Lease(record)
                case Void():
                    self.leases.pop((record.job, record.attempt, record.token), None)
                case Spawned():
                    if (lease := self._lease(record)) is not None:
                        lease.spawned = record
                case Contained():
                    if (lease := self._lease(record)) is not None:
                        lease.cgroup = record.cgroup
                case Over(finished):
                    key = (finished.job, finished.attempt, finished.token)
                    over.append(key)
                    if key in self.leases:
                        self.leases[key].finished = finished
                case Acked(count):
                    for key in over[:count]:
                        self.leases.pop(key, None)

    def _lease(self, record: Spawned | Contained) -> Lease | None:
        return self.leases.get((record.job, record.attempt, record.token))


def read(path: str) -> Story:
    """Raises `FileNotFoundError` if there is no journal."""
    with open(path, "rb") as file:
        records, whole = unpack(file.read())
    return Story(records, whole=whole)


class Journal:
    """The journal of this runner, open for appending.

    Records other than intents wait in a buffer and go out with the next intent or `flush`.
    """

    def __init__(self, directory: str, began: Began) -> None:
        self._directory = directory
        self._path = f"{directory}/journal"
        self._began = began
        self._buffer = bytearray(pack(began))
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = 0
        self.flush()

    @property
    def size(self) -> int:
        return self._size

    def add(self, record: Record) -> None:
        """Buffer a record."""
        self._buffer += pack(record)

    def over(self, finished: Finished) -> None:
        """Buffer an outcome."""
        self._buffer += pack(Over(finished))

    def intend(self, intent: Intent) -> None:
        """On file when this returns. Raises `OSError`, and then nothing of the intent is there."""
        before = len(self._buffer)
        self._buffer += pack(intent)
        try:
            self.flush()
        except OSError:
            del self._buffer[before:]
            raise

    def flush(self) -> None:
        """Write what is buffered. Raises `OSError`; the buffer then stays for the next time."""
        buffer = self._buffer
        if not buffer:
            return
        try:
            written = os.write(self._fd, buffer)
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise
        if written != len(buffer):
            # The disk filled up in the middle of a record: what follows must not come after garbage.
            os.ftruncate(self._fd, self._size)
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        self._size += written
        buffer.clear()

    def compact(self, live: Iterable[Record]) -> None:
        """Begin anew with only these records. Raises `OSError`; then the old journal goes on."""
        fresh = bytearray(pack(self._began))
        for record in live:
            fresh += pack(record)
        path = f"{self._path}.new"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            _write_all(fd, fresh)
            os.rename(path, self._path)
        except OSError:
            os.close(fd)
            raise
        os.close(self._fd)
        self._fd, self._size = fd, len(fresh)
        self._buffer.clear()

    def close(self) -> None:
        os.close(self._fd)


def _write_all(fd: int, data: bytearray) -> None:
    if os.write(fd, data) != len(data):
        raise OSError(ENOSPC, os.strerror(ENOSPC))


def take_lock(directory: str, *, create: bool = False) -> int | None:
    """Hold the lock of a runner's directory, or None: that runner lives, or has no lock yet.

    The lock is held until the returned descriptor is closed.
    """
    path = f"{directory}/lock"
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
        os.close(fd)  # somebody else has settled and removed it meanwhile
        return None
    return fd
