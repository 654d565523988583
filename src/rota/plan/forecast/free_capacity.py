"""When a capacity becomes free: it is kept in pieces, each with the moment at which its job is expected to end."""

from __future__ import annotations

from bisect import insort
from math import inf
from typing import Final, NamedTuple

_MOST_GAPS: Final = 256  #: no more are remembered


class CapacityPiece(NamedTuple):
    """A part of a capacity, and from when on it is free."""

    free: float
    amount: int
    mask: int = 0  #: which resources, where that matters


class Gap(NamedTuple):
    """An amount that is free until the wide job that waits for it has all it needs."""

    free: float
    until: float
    amount: int


class FreeCapacity:
    """One capacity, in pieces ordered by the time from which they are free."""

    __slots__ = ("_pieces", "gaps", "total")

    def __init__(self, pieces: list[CapacityPiece]) -> None:
        self._pieces = sorted(piece for piece in pieces if piece.amount > 0)
        self.gaps: list[Gap] = []
        self.total = sum(piece.amount for piece in self._pieces)

    def free_at(self, mask: int) -> float:
        """When all of these resources are free."""
        return max((piece.free for piece in self._pieces if piece.mask & mask), default=0.0)

    def first(self, width: int) -> float:
        """When so much is free; `inf`: unknown, or more than there is."""
        for piece in self._pieces:
            width -= piece.amount
            if width <= 0:
                return piece.free
        return inf

    def hold(self, mask: int, until: float) -> None:
        """These resources are held until then."""
        kept = []
        for piece in self._pieces:
            rest = piece.mask & ~mask
            if rest == piece.mask:
                kept.append(piece)
            elif rest:
                kept.append(CapacityPiece(piece.free, rest.bit_count(), rest))
        self._pieces = kept
        insort(self._pieces, CapacityPiece(until, mask.bit_count(), mask))

    def take(self, width: int, most: int) -> list[CapacityPiece]:
        """Take up to `most` places of this width, the earliest first. A place is free when all its pieces are."""
        taken: list[CapacityPiece] = []
        at, amount, mask, begun = 0, 0, 0, 0
        pieces = self._pieces
        while at < len(pieces) and len(taken) < most:
            piece = pieces[at]
            lacking = width - amount
            if piece.amount > lacking:
                first, rest = _cut(piece, lacking)
                self._note_gaps(pieces[begun:at], piece.free)
                taken.append(CapacityPiece(piece.free, width, mask | first))
                pieces[at] = rest
                amount, mask, begun = 0, 0, at
                continue
            at += 1
            amount, mask = amount + piece.amount, mask | piece.mask
            if amount == width:
                self._note_gaps(pieces[begun : at - 1], piece.free)
                taken.append(CapacityPiece(piece.free, width, mask))
                amount, mask, begun = 0, 0, at
        del pieces[: begun if amount else at]
        return taken

    def _note_gaps(self, parts: list[CapacityPiece], until: float) -> None:
        if len(self.gaps) < _MOST_GAPS:
            self.gaps += [Gap(part.free, until, part.amount) for part in parts if part.free < until]

    def give(self, places: list[CapacityPiece]) -> None:
        """Put places back; each says when it is free."""
        joined = sorted([*self._pieces, *places])
        merged: list[CapacityPiece] = []
        for piece in joined:
            if merged and merged[-1].free == piece.free:
                before = merged[-1]
                merged[-1] = CapacityPiece(piece.free, before.amount + piece.amount, before.mask | piece.mask)
            else:
                merged.append(piece)
        self._pieces = merged


def _cut(piece: CapacityPiece, amount: int) -> tuple[int, CapacityPiece]:
    """The mask of a part of this amount, and the rest of the piece."""
    first, rest = 0, piece.mask
    if rest:
        for _ in range(amount):
            first |= rest & -rest
            rest &= rest - 1
    return first, CapacityPiece(piece.free, piece.amount - amount, rest)
