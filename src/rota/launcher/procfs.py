"""Facts about processes, read from /proc. To which job they belong is decided elsewhere.

A process is identified by (pid, start time), since pids are reused. A zombie is dead.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Process(NamedTuple):
    """One line of the process table."""

    pid: int
    state: str
    ppid: int
    session: int
    cpu_ticks: int
    start_time: int

    @property
    def alive(self) -> bool:
        return self.state not in "ZXx"


def process(pid: int) -> Process | None:
    """The process with this pid now, or None."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(fd, 4096)
    except OSError:
        return None
    finally:
        os.close(fd)
    # The name is in parentheses and may contain anything, parentheses too.
    fields = data[data.rindex(b")") + 2 :].split()
    return Process(
        pid=pid,
        state=chr(fields[0][0]),
        ppid=int(fields[1]),
        session=int(fields[3]),
        cpu_ticks=int(fields[11]) + int(fields[12]),
        start_time=int(fields[19]),
    )


def table() -> dict[int, Process]:
    """All processes. Not atomic: one that forks meanwhile may leave a child unseen."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (seen := process(int(name))) is not None:
            found[seen.pid] = seen
    return found


def lives(pid: int, start_time: int, *, slack: int = 0) -> bool:
    """Is this very process still there and not a zombie?"""
    seen = process(pid)
    return seen is not None and seen.alive and abs(seen.start_time - start_time) <= slack


def start_time_now() -> int:
    """The start time, give or take a tick, of a process that is started now."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS_PER_S)


def began_at(start_time: int) -> float:
    """When a process of this start time began, as told by `time.monotonic`, unless the machine has slept since."""
    return time.monotonic() - max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - start_time / TICKS_PER_S)


def boot_id() -> str:
    """The kernel's boot id, new with every boot; empty where the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def environ_value(pid: int, name: bytes) -> bytes | None:
    """The value of a variable a process was started with, if that can be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            data = file.read()
    except OSError:
        return None
    prefix = name + b"="
    for entry in data.split(b"\0"):
        if entry.startswith(prefix):
            return entry[len(prefix) :]
    return None


def memory(pid: int) -> tuple[int, int]:
    """(resident, of which file-backed or shared) bytes."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            fields = file.read().split()
    except OSError:
        return 0, 0
    if len(fields) < 3:
        return 0, 0
    return int(fields[1]) * PAGE, int(fields[2]) * PAGE


class OwnChildren:
    """Counts the children of this (single-threaded) process with one read.

    The list is exact here: children leave it only when this process reaps them.
    """

    def __init__(self) -> None:
        pid = os.getpid()
        try:
            self._fd = os.open(f"/proc/{pid}/task/{pid}/children", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = -1  # a kernel without CONFIG_PROC_CHILDREN
        self._own = pid

    def count(self) -> int:
        if self._fd < 0:
            return len(self.pids())
        total = 0
        offset = 0
        while data := os.pread(self._fd, 65536, offset):
            total += data.count(b" ")
            if len(data) < 4000:  # the kernel fills a page, so there is no more
                break
            offset += len(data)
        return total

    def pids(self) -> set[int]:
        """The children, zombies included."""
        if self._fd < 0:
            return {seen.pid for seen in table().values() if seen.ppid == self._own}
        data = b""
        while part := os.pread(self._fd, 65536, len(data)):
            data += part
        return {int(word) for word in data.split()}
