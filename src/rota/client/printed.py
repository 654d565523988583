"""What a job printed, as a reader gets it: its bytes, with a mark at each place where some are missing."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from rota.wire.answers import OutputPart
from rota.wire.gaps import NOT_KEPT, mark

#: The code of what was left out of the middle, because there was more than `keep_output`.
LEFT_OUT: Final = "not_kept"


class Absent(Struct, frozen=True):
    """Bytes of an output that a reader does not get."""

    offset: int  #: where in the kept bytes they are missing
    bytes: int  #: how many; 0: nobody knows
    code: str  #: `not_kept`, or that of the attempt's `output_missing`
    message: str


class Printed(bytes):
    """An output. `absent` says what of it is missing, if anything is."""

    absent: tuple[Absent, ...] = ()


class Marking:
    """Puts marks between the parts of one stream, one at each place where something is missing."""

    def __init__(self, offset: int = 0, *, marks: bool = True) -> None:
        self.offset = offset  #: where the next part must begin
        self.more = True  #: should one be asked for?
        self.absent: list[Absent] = []
        self._marks = marks
        self._last = b""  #: the byte before
        self._pending: Absent | None = None  #: perhaps more is missing right behind it

    def took(self, part: OutputPart) -> bytes:
        """The bytes of this part, with marks. Nothing may come yet where much is missing."""
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
        """Nothing more is asked for: what is left to say."""
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
