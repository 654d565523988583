"""The output of a job as a reader gets it: its bytes, with a mark wherever some are missing."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from rota.wire.answers import OutputPart
from rota.wire.missing_output import NOT_KEPT, mark

#: The code for a middle that was dropped because the output exceeded `keep_output`.
LEFT_OUT: Final = "not_kept"


class Absent(Struct, frozen=True):
    """Bytes of an output that a reader does not get."""

    offset: int  #: where in the kept bytes they are missing
    bytes: int  #: how many; 0: nobody knows
    code: str  #: `not_kept`, or that of the attempt's `output_missing`
    message: str


class Printed(bytes):
    """The bytes of an output; `absent` lists what is missing."""

    absent: tuple[Absent, ...] = ()


class Marking:
    """Joins the parts of one stream and inserts a mark at each gap."""

    def __init__(self, offset: int = 0, *, marks: bool = True) -> None:
        self.offset = offset  #: offset of the next part
        self.more = True  #: is there another part to request?
        self.absent: list[Absent] = []
        self._marks = marks
        self._last = b""  #: the byte before
        self._pending: Absent | None = None  #: a gap that the next part may extend

    def took(self, part: OutputPart) -> bytes:
        """The bytes of this part, with marks. A mark is delayed while its gap may still grow."""
        text = b""
        if part.data or part.gap:
            text = self._flushed()
        if part.gap:
            text += self._marked(Absent(self.offset, part.gap, LEFT_OUT, NOT_KEPT))
        if part.data:
            text += part.data
            self._last = part.data[-1:]
        self.offset += len(part.data)
        if part.code:
            before = self._pending
            if before is None or before.code != part.code:
                text += self._flushed()
                before = Absent(self.offset, 0, part.code, part.message)
            self._pending = replace(before, bytes=before.bytes + part.lost)
        self.offset += part.lost
        self.more = bool(part.data or part.lost) and self.offset < part.total
        return text if self.more else text + self.finish()

    def finish(self) -> bytes:
        """The final mark, if one is pending."""
        return self._flushed()

    def _flushed(self) -> bytes:
        absent, self._pending = self._pending, None
        return self._marked(absent) if absent is not None else b""

    def _marked(self, absent: Absent) -> bytes:
        self.absent.append(absent)
        if not self._marks:
            return b""
        text = mark(absent.bytes, absent.message, after=self._last)
        self._last = b"\n"
        return text
