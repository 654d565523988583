"""Frames and messages without I/O: bytes in, messages out, and back.

A frame is a 4-byte big-endian length and that many bytes of msgpack. Until a peer has authenticated, read from it
with a small `max_frame`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Generic, TypeVar

import msgspec

from rota.errors import WireError
from rota.wire.greeting import PROTOCOL, Message

MAX_FRAME: Final = 32 * 1024 * 1024
#: Frame limit before `Hello`.
MAX_HELLO: Final = 16 * 1024

#: Error code for a value that cannot be encoded.
UNSENDABLE: Final = "unsendable"

_HEADER: Final = 4
_encoder: Final = msgspec.msgpack.Encoder()

T = TypeVar("T")


@cache
def _decoder(accepts: Any) -> msgspec.msgpack.Decoder[Any]:
    """One decoder for all connections: it is stateless, and its type tables are large."""
    return msgspec.msgpack.Decoder(accepts)


def frame(message: Message) -> bytes:
    """Encode one message as a frame. Raises `WireError` for text with a lone surrogate, an integer of more than 64
    bits, or a message that is too large."""
    buffer = bytearray(_HEADER)
    try:
        _encoder.encode_into(message, buffer, _HEADER)
    except (UnicodeEncodeError, OverflowError, RecursionError) as error:
        raise WireError(f"this cannot be sent: {error}", code=UNSENDABLE) from None
    size = len(buffer) - _HEADER
    if size > MAX_FRAME:
        raise WireError(f"a message of {size} bytes is larger than the {MAX_FRAME} allowed")
    buffer[:_HEADER] = size.to_bytes(_HEADER, "big")
    return bytes(buffer)


def body(value: Any) -> msgspec.Raw:
    """The body of a `Reply` or `Item`."""
    return msgspec.Raw(_encoder.encode(value))


class Reader(Generic[T]):
    """Splits a stream into frames and decodes each as one of the accepted message types."""

    def __init__(self, accepts: Any, *, max_frame: int = MAX_FRAME) -> None:
        self._decode = _decoder(accepts).decode
        self.max_frame = max_frame
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[T]:
        """The messages completed by these bytes. Raises `WireError` on malformed input; the connection must then
        be closed."""
        buffer = self._buffer
        buffer += data
        found: list[T] = []
        start, end = 0, len(buffer)
        while end - start >= _HEADER:
            size = int.from_bytes(buffer[start : start + _HEADER], "big")
            if size > self.max_frame:
                raise WireError(f"a frame of {size} bytes was announced; {self.max_frame} are allowed")
            stop = start + _HEADER + size
            if stop > end:
                break
            # A copy: a `Raw` body keeps a reference to its buffer, and an exported bytearray cannot shrink.
            with memoryview(buffer)[start + _HEADER : stop] as view:
                whole = bytes(view)
            found.append(self._decoded(whole))
            start = stop
        if start:
            del buffer[:start]
        return found

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not complete yet."""
        return len(self._buffer)

    def _decoded(self, whole: bytes) -> T:
        try:
            message: T = self._decode(whole)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError, OverflowError) as error:
            raise WireError(f"not a message of protocol {PROTOCOL}: {error}") from None
        return message
