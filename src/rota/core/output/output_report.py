"""A runner's report about the output of an attempt: checksums and gap, or why it was not kept."""

from __future__ import annotations

from errno import EDQUOT, ENOSPC
from typing import Final

from msgspec import Struct

#: Codes of `output_missing`: why an expected output does not exist.
DISK_FULL: Final = "disk_full"  #: no space to write it
NOT_WRITTEN: Final = "not_written"  #: another error while writing
NOT_SENT: Final = "not_sent"  #: its node did not send it
PRUNED: Final = "pruned"  #: removed for age or space, according to the settings
GONE: Final = "gone"  #: its segment does not exist
CUT: Final = "cut"  #: its segment ends too early
DAMAGED: Final = "damaged"  #: its segment has other contents
UNREADABLE: Final = "unreadable"  #: its segment cannot be read


class OutputReport(Struct, frozen=True, array_like=True, gc=False):
    """A report about an output that was kept, or could not be."""

    sums: tuple[int, ...] = ()  #: CRC-32 of each block of stdout, then of stderr
    out_head: int = 0  #: bytes of stdout before the gap, if its middle was left out
    err_head: int = 0
    missing: str = ""  #: one of the codes above, if nothing could be kept
    message: str = ""


def not_kept(error: OSError, *, whose: str = "the disk") -> OutputReport:
    """The report about an output that could not be written."""
    if error.errno in (ENOSPC, EDQUOT):
        return OutputReport(missing=DISK_FULL, message=f"{whose} was full when its output was to be kept")
    return OutputReport(missing=NOT_WRITTEN, message=f"its output could not be written: {error.strerror}")
