"""What a runner says about the output of an attempt: its checksums and where its middle is left out, or why it was
not kept."""

from __future__ import annotations

from errno import EDQUOT, ENOSPC
from typing import Final

from msgspec import Struct

#: Codes of `output_missing`: why an output that should be there is not.
DISK_FULL: Final = "disk_full"  #: there was no room to write it
NOT_WRITTEN: Final = "not_written"  #: writing failed otherwise
NOT_SENT: Final = "not_sent"  #: a node did not send it
PRUNED: Final = "pruned"  #: it was too old or took too much space, as the settings say
GONE: Final = "gone"  #: its segment is not there
CUT: Final = "cut"  #: its segment ends too early
DAMAGED: Final = "damaged"  #: its segment holds something else
UNREADABLE: Final = "unreadable"  #: its segment cannot be read


class OutputReport(Struct, frozen=True, array_like=True, gc=False):
    """What a runner says about an output that it kept, or could not keep."""

    sums: tuple[int, ...] = ()  #: CRC-32 of each block of stdout, then of stderr
    out_head: int = 0  #: bytes of stdout before the gap, where its middle was left out
    err_head: int = 0
    missing: str = ""  #: a code from above: nothing of it could be kept
    message: str = ""


def not_kept(error: OSError, *, whose: str = "the disk") -> OutputReport:
    """What is said of an output that could not be written."""
    if error.errno in (ENOSPC, EDQUOT):
        return OutputReport(missing=DISK_FULL, message=f"{whose} was full when its output was to be kept")
    return OutputReport(missing=NOT_WRITTEN, message=f"its output could not be written: {error.strerror}")
