"""What becomes free when: a capacity in pieces, each with the moment from which nobody is expected to hold it."""

from __future__ import annotations

from bisect import insort
from math import inf
from typing import Final, NamedTuple

#: Gaps that are remembered.
_MOST_GAPS: Final = 256


class Piece(NamedTuple):
    """A part of a capacity: free from then on."""

    free: float
    amount: int
    mask: int = 0  #: which resources, where that matters


class Gap(NamedTuple):
    """Free until whoever waits for it, and for more, has all."""

    free: float
    until: float
    amount: int


class Room:
    """All of one capacity, in pieces by time."""

    __slots__ = ("_pieces", "gaps", "total")

    def __init__(self, pieces: list[Piece]) -> None:
        self._pieces = sorted(piece for piece in pieces if piece.amount > 0)
        self.gaps: list[Gap] = []
        self.total = sum(piece.amount for piece in self._pieces)

    def free_at(self, mask: int) -> float:
        """When all of these resources are free."""
        return max((piece.free for piece in self._pieces if piece.mask & mask), default=0.0)

    def first(self, width: int) -> float:
        """When so much is free; `inf`: nobody knows, or there is not so much."""
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
                kept.append(Piece(piece.free, rest.bit_count(), rest))
        self._pieces = kept
        insort(self._pieces, Piece(until, mask.bit_count(), mask))

    def take(self, width: int, most: int) -> list[Piece]:
        """Take at most so many places of this width, those that are free first. Each is free when all of it is."""
        taken: list[Piece] = []
        at, amount, mask, begun = 0, 0, 0, 0
        pieces = self._pieces
        while at < len(pieces) and len(taken) < most:
            piece = pieces[at]
            lacking = width - amount
            if piece.amount > lacking:
                first, rest = _cut(piece, lacking)
                self._note_gaps(pieces[begun:at], piece.free)
                taken.append(Piece(piece.free, width, mask | first))
                pieces[at] = rest
                amount, mask, begun = 0, 0, at
                continue
            at += 1
            amount, mask = amount + piece.amount, mask | piece.mask
            if amount == width:
                self._note_gaps(pieces[begun : at - 1], piece.free)
                taken.append(Piece(piece.free, width, mask))
                amount, mask, begun = 0, 0, at
        del pieces[: begun if amount else at]
        return taken

    def _note_gaps(self, parts: list[Piece], until: float) -> None:
        if len(self.gaps) < _MOST_GAPS:
            self.gaps += [Gap(part.free, until, part.amount) for part in parts if part.free < until]

    def give(self, places: list[Piece]) -> None:
        """These are free at those moments."""
        joined = sorted([*self._pieces, *places])
        merged: list[Piece] = []
        for piece in joined:
            if merged and merged[-1].free == piece.free:
                before = merged[-1]
                merged[-1] = Piece(piece.free, before.amount + piece.amount, before.mask | piece.mask)
            else:
                merged.append(piece)
        self._pieces = merged


def _cut(piece: Piece, amount: int) -> tuple[int, Piece]:
    """The mask of so much of it, and the rest."""
    first, rest = 0, piece.mask
    if rest:
        for _ in range(amount):
            first |= rest & -rest
            rest &= rest - 1
    return first, Piece(piece.free, piece.amount - amount, rest)
