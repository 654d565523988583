"""Sets of resources as integers, one bit a resource, and as text like ``1-8,17``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rota.errors import BadInput


def lowest(mask: int, number: int) -> int:
    """The lowest `number` set bits. At least so many must be set."""
    if number <= 0:
        return 0
    # Binary search for the last bit to take.
    width = mask.bit_length()
    rest, below = mask, 0
    while width > 1:
        half = width >> 1
        low = rest & ((1 << half) - 1)
        there = low.bit_count()
        if there >= number:
            rest, width = low, half
        else:
            number -= there
            rest >>= half
            below += half
            width -= half
    return mask & ((2 << below) - 1)


def positions(mask: int) -> Iterator[int]:
    """The positions of the set bits, ascending."""
    offset = 0
    while mask:
        low = mask & ((1 << 64) - 1)
        while low:
            bit = low & -low
            yield offset + bit.bit_length() - 1
            low ^= bit
        mask >>= 64
        offset += 64


def runs(mask: int) -> Iterator[tuple[int, int]]:
    """Runs of set bits as (first, last), ascending."""
    offset = 0
    while mask:
        skipped = (mask & -mask).bit_length() - 1
        mask >>= skipped
        offset += skipped
        length = (~mask & (mask + 1)).bit_length() - 1
        yield offset, offset + length - 1
        mask >>= length
        offset += length


def spans_of(ids: Iterable[int]) -> str:
    """Ascending numbers as text: ``1-8,17``."""
    found: list[list[int]] = []
    for id in ids:
        if found and found[-1][1] == id - 1:
            found[-1][1] = id
        else:
            found.append([id, id])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def parse_spans(text: str, *, most: int = 1_000_000) -> list[int]:
    """The numbers in a text like ``1-8,17``, in its order. Raises `BadInput`."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isascii() or not first.isdigit() or (dash and not (last.isascii() and last.isdigit())):
            raise BadInput(f"'{part.strip()[:40]}' is not a number or a range", hint="write them like 1-8,17")
        if len(first) > 9 or len(last) > 9:
            raise BadInput(f"'{part.strip()[:40]}' is too large", hint="numbers have at most 9 digits")
        begin, end = int(first), int(last) if dash else int(first)
        if end < begin:
            raise BadInput(f"'{part.strip()}' runs backwards", hint=f"write {end}-{begin}")
        if len(found) + end - begin >= most:
            raise BadInput(f"more than {most:,} numbers", hint="write fewer")
        found.extend(range(begin, end + 1))
    return found
