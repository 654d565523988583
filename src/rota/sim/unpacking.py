"""Unpacks gzipped traces piece by piece, so that a large trace is never in memory as a whole."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from rota.errors import BadInput

#: Far above any published trace.
MAX_BYTES: Final = 1 << 30
_GZIP: Final = b"\x1f\x8b"
_PIECE: Final = 1 << 20


def pieces(data: bytes, name: str) -> Iterator[bytes]:
    """The text, in pieces of at most 1 MiB. Raises `BadInput`."""
    if not data.startswith(_GZIP):
        for at in range(0, len(data), _PIECE):
            yield data[at : at + _PIECE]
        return
    length = 0
    rest = data
    while rest.startswith(_GZIP):  # gzip files may be concatenated
        member = zlib.decompressobj(wbits=31)
        at = 0
        while not member.eof:
            packed = member.unconsumed_tail or rest[at : at + _PIECE]
            at += 0 if member.unconsumed_tail else len(packed)
            try:
                piece = member.decompress(packed, _PIECE)
            except zlib.error:
                raise BadInput(f"{name} is a damaged gzip file", hint="fetch it again") from None
            if not piece and not packed:
                raise BadInput(f"{name} is a gzip file that ends too early", hint="fetch it again")
            length += len(piece)
            if length > MAX_BYTES:
                raise BadInput(f"{name} is larger than 1 GiB when unpacked", hint="give a part of it")
            if piece:
                yield piece
        rest = rest[at - len(member.unused_data) :]


def unpacked(data: bytes, name: str, *, most: int = MAX_BYTES) -> bytes:
    """The whole text. Raises `BadInput` if it is longer than `most` bytes."""
    if not data.startswith(_GZIP):
        return data
    text = bytearray()
    for piece in pieces(data, name):
        text += piece
        if len(text) > most:
            raise BadInput(f"{name} is larger than {most >> 20} MiB when unpacked", hint="give a part of it")
    return bytes(text)
