"""The peak memory of the launcher itself, with which the kernel's record of each child begins."""

from __future__ import annotations

#: The kernel counts pages in batches: two readings of the same peak may differ by this.
_LAZY = 1 << 20


class OwnPeak:
    """The most memory that a process has had since it was executed."""

    __slots__ = ("_known", "_pid")

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._known = 0  #: the last reading; it only grows

    def covers(self, recorded: int) -> bool:
        """Can the kernel's record of a child, in bytes, be this process's own peak?

        Read again only when the record is above what is known: for short jobs, one after the other, it is not.
        """
        if recorded > self._known + _LAZY:
            self._known = max(self._known, self.read())
        return recorded <= self._known + _LAZY

    def read(self) -> int:
        """Bytes. Not `ru_maxrss`, which includes the memory of the process that forked this one."""
        try:
            with open(f"/proc/{self._pid}/status", "rb") as file:
                for line in file:
                    if line.startswith(b"VmHWM:"):
                        return int(line.split()[1]) * 1024
        except OSError:
            pass  # it is gone: what was read before holds
        return 0
