"""The launcher's write-ahead journal: what it is about to start, what runs, and how processes ended.

The agent reads it if the launcher dies. Without an intent nothing was started, as long as the machine was not
rebooted since. Exits are written before the process is reaped, so that no exit code is lost with the launcher.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from rota.launcher import room
from rota.launcher.base import Key
from rota.launcher.blocks import BlockFile, unpack

NAME: Final = "journal"
#: A longer journal is compacted once most of it is no longer needed.
COMPACT_OVER: Final = 256 * 1024
#: A command is started only where so many bytes are left, for the records of its end.
_LEAST_ROOM: Final = 16 * 1024
#: Releases that wait for another record to be written with.
_LATE: Final = 64
#: Kinds of processes that are forgotten once the agent knows their end: a lease may have very many.
PASSING: Final = ("exec", "script")


class JournalEntry(Struct, frozen=True, array_like=True, gc=False):
    """Base of all records."""


class Began(JournalEntry, frozen=True, tag="b"):
    """First record: the launcher that writes this, and since which boot."""

    boot_id: str
    pid: int
    start_time: int
    version: int


class Intent(JournalEntry, frozen=True, tag="i"):
    """A process of this kind is about to be started for a lease."""

    key: Key
    kind: str
    serial: int = 0  #: of the order


class Void(JournalEntry, frozen=True, tag="v"):
    """The last intent for a lease came to nothing."""

    key: Key


class Spawned(JournalEntry, frozen=True, tag="p"):
    """The last intent for a lease became a process: leader of a session of the same number."""

    key: Key
    kind: str
    pid: int
    start_time: int  #: in clock ticks since boot
    serial: int = 0


class Exited(JournalEntry, frozen=True, tag="e"):
    """A process has ended with this status of wait(2)."""

    key: Key
    pid: int
    status: int


class Released(JournalEntry, frozen=True, tag="r"):
    """The agent has recorded the end of a lease: its records are no longer needed."""

    key: Key


Record = Began | Intent | Void | Spawned | Exited | Released

_decode = msgspec.msgpack.Decoder(list[Record]).decode


class JournalledTask:
    """What a journal says about one lease."""

    __slots__ = ("exits", "intended", "processes")

    def __init__(self) -> None:
        self.intended: Intent | None = None  #: of which it is unknown whether it became a process
        self.processes: list[Spawned] = []
        self.exits: dict[int, int] = {}  #: pid -> status of wait(2)


class Story:
    """A journal as read: its writer, and each lease that was not released."""

    def __init__(self, records: Iterable[Record], *, whole: bool) -> None:
        self.whole = whole  #: False: there may have been leases that this journal no longer shows
        self.began: Began | None = None
        self.tasks: dict[Key, JournalledTask] = {}
        for record in records:
            match record:
                case Began():
                    self.began = record
                case Intent(key):
                    self.tasks.setdefault(key, JournalledTask()).intended = record
                case Void(key):
                    task = self.tasks.get(key)
                    if task is not None:
                        task.intended = None
                        if not task.processes:
                            del self.tasks[key]
                case Spawned(key):
                    task = self.tasks.setdefault(key, JournalledTask())
                    task.intended = None
                    task.processes.append(record)
                case Exited(key, pid, status):
                    if key in self.tasks:
                        self.tasks[key].exits[pid] = status
                case Released(key):
                    self.tasks.pop(key, None)

    def records(self) -> list[Record]:
        """The journal's records without those that are no longer needed."""
        found: list[Record] = [] if self.began is None else [self.began]
        for key, task in self.tasks.items():
            for process in task.processes:
                status = task.exits.get(process.pid)
                if status is None:
                    found.append(process)
                elif process.kind not in PASSING:
                    found += [process, Exited(key, process.pid, status)]
            if task.intended is not None:
                found.append(task.intended)
        return found


def read(directory: str) -> Story:
    """The journal of the launcher in this directory. Raises `OSError`."""
    with open(f"{directory}/{NAME}", "rb") as file:
        records, whole = unpack(file.read(), _decode)
    return Story(records, whole=whole)


class Journal:
    """The journal of this launcher."""

    def __init__(self, directory: str, began: Began) -> None:
        self._directory = directory
        self._file = BlockFile(f"{directory}/{NAME}")
        self._worth_it = COMPACT_OVER
        self._late: list[Record] = []  #: not written yet, because the disk was full
        self._file.append([began])

    @property
    def size(self) -> int:
        return self._file.size

    def intend(self, *records: Record) -> None:
        """Write intents now. Raises `OSError`, and then none is in the file."""
        if any(isinstance(record, Intent) and record.kind == "command" for record in records):
            room.demand(self._directory, _LEAST_ROOM)
        self._file.append([*self._late, *records])
        self._late.clear()

    def add_later(self, record: Released) -> None:
        """Write this with the next record: a journal without it only says more than is needed."""
        self._late.append(record)
        if len(self._late) >= _LATE:
            self.add(self._late.pop())

    def add(self, record: Record) -> None:
        """Write what has happened; on a full disk, as soon as there is room."""
        self._late.append(record)
        try:
            self._file.append(self._late)
            self._late.clear()
            if isinstance(record, Released) and self._file.size > self._worth_it:
                self._file.replace(read(self._directory).records())
                self._worth_it = max(COMPACT_OVER, 2 * self._file.size)
        except OSError:
            pass

    def close(self) -> None:
        self._file.close()
