"""The runner's write-ahead journal: what it was about to execute and how that ended, for its successor.

Append-only, one write before each spawn, no fsync: only a reboot loses what was written, and a reboot ends the
processes too. It knows nothing of sockets or processes. Reading never fails: a truncated or damaged end is left
out.

The form of the file is that of `launcher.blocks`.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from rota.core.attempts.leases import Finished
from rota.launcher import blocks
from rota.runner.log import say

COMPACT_OVER = 4 * 1024 * 1024
COMPACT_IDLE_OVER = 64 * 1024

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

_decode = msgspec.msgpack.Decoder(list[Record]).decode


def pack(records: Iterable[Record]) -> bytes:
    """Encode records as one block."""
    return blocks.pack(records)


def unpack(data: bytes) -> tuple[list[Record], bool]:
    """All records of whole blocks up to the first damage, and whether that is all that was written."""
    return blocks.unpack(data, _decode)


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
        """Goes on after what an earlier runner wrote to it. Raises `OSError`."""
        self._began = began
        self._block = blocks.empty()
        self._room = len(self._block)
        self._count = 0
        self._file = blocks.BlockFile(f"{directory}/journal", goes_on=True)
        self.add(began)
        self.flush()

    @property
    def size(self) -> int:
        """Bytes on file."""
        return self._file.size

    def add(self, record: Record) -> None:
        """Buffer a record."""
        blocks.encode_into(record, self._block, -1)
        self._count += 1

    def intend(self, block: bytes) -> None:
        """The block is on file when this returns. Raises `OSError`, and then nothing of it is there."""
        if self._count:
            self._file.write(blocks.sealed(self._block, self._count) + block)
            self._clear()
        else:
            self._file.write(block)

    def flush(self) -> None:
        """Write what is buffered. Raises `OSError`; the buffer then stays for the next time."""
        if self._count:
            self._file.write(blocks.sealed(self._block, self._count))
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

    def _clear(self) -> None:
        self._count = 0
        del self._block[self._room :]

    def compact(self, live: Iterable[Record]) -> None:
        """Replace the journal by these records. Raises `OSError`; the old journal then stays in use."""
        self._file.replace([self._began, *live])
        self._clear()

    def close(self) -> None:
        self._file.close()


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
