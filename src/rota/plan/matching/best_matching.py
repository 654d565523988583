"""The best of all ways to fill seats: most preferences met, then each seat in turn has the lowest machine.

Where preferences compete, prices say how many can be met, and which machines a seat has in any way that meets as
many. Of these, each in turn takes the lowest that leaves one for all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rota.plan.matching.assignment import assign
from rota.plan.matching.hopcroft_karp import match

#: Instead of a seat and of its kind: of what is free.
_NOBODY: Final = -1


def best(candidates: Sequence[int], preferred: Sequence[int]) -> list[int] | None:
    """A machine for each seat, no two the same; None: there is no such choice.

    `preferred`: for each seat the candidates that meet its preference; all, if it has none.
    """
    found = _in_turn(candidates, preferred)
    if found is not None:
        return found
    given = match(candidates)
    if given is None:
        return None
    if all(not some & ~liked for some, liked in zip(candidates, preferred, strict=True)):
        return _lowest(candidates, given, needed=0)
    return _most_met(candidates, preferred)


def _in_turn(candidates: Sequence[int], preferred: Sequence[int]) -> list[int] | None:
    """Each seat takes the lowest that the ones before it leave; None: that is not possible, or perhaps not best.

    Where every seat that can meet its preference does, the result is best: all others with as many preferences met
    choose from the same sets, and each seat has the lowest one possible after those before it.
    """
    taken, found = 0, []
    for all_of_seat, liked in zip(candidates, preferred, strict=True):
        left = (all_of_seat & liked or all_of_seat) & ~taken
        if not left:
            return None
        bit = left & -left
        taken |= bit
        found.append(bit.bit_length() - 1)
    return found


def _most_met(candidates: Sequence[int], preferred: Sequence[int]) -> list[int]:
    """The best way, if all seats can be filled."""
    found = assign(candidates, preferred)
    return _lowest(found.tight, found.held, needed=found.needed)


def _lowest(candidates: Sequence[int], given: list[int], *, needed: int) -> list[int]:
    """Of all ways to fill the seats and take the needed machines: each seat in turn has the lowest that it can.

    `given`: one such way. Any two differ by exchanges in circles, in which nobody holds what is free.
    """
    exchanges = _Exchanges(candidates, given, needed)
    fixed = 0
    for seat, its in enumerate(candidates):
        wanted = its & ~fixed
        fixed |= 1 << exchanges.take_lowest(seat, wanted)
    return exchanges.given


class _Exchanges:
    """Who has which machine. Seats with equal candidates are of one kind, and looked at together."""

    def __init__(self, candidates: Sequence[int], given: list[int], needed: int) -> None:
        kinds: dict[int, int] = {}
        self._kind = [kinds.setdefault(each, len(kinds)) for each in candidates]
        self._candidates = list(kinds)  #: of each kind
        self._needed = needed
        self.given = given
        self._holder = {machine: seat for seat, machine in enumerate(given)}
        #: the machines of seats that may still exchange theirs, by kind; the last are those that nobody has
        self._held = [0] * (len(kinds) + 1)
        for each in kinds:
            self._held[_NOBODY] |= each
        for seat, machine in enumerate(given):
            self._held[_NOBODY] &= ~(1 << machine)
            self._held[self._kind[seat]] |= 1 << machine

    def take_lowest(self, seat: int, wanted: int) -> int:
        """Give this seat the lowest of these machines that it can have, for good. Returns it."""
        own = self.given[seat]
        self._held[self._kind[seat]] ^= 1 << own
        if (lowest := wanted & -wanted) == 1 << own:
            return own
        reached, instead = self._reach(1 << own, until=lowest)
        taken = wanted & reached
        machine = (taken & -taken).bit_length() - 1
        taker, kind = seat, None
        while machine != own:
            holder = self._holder.get(machine, _NOBODY)
            of_holder = self._kind[holder] if holder != _NOBODY else _NOBODY
            self._held[of_holder] ^= 1 << machine
            self._give(machine, taker, kind)
            taker, kind, machine = holder, of_holder, instead[of_holder]
        self._give(own, taker, kind)
        return self.given[seat]

    def _give(self, machine: int, taker: int, kind: int | None) -> None:
        """`kind`: of the taker; None: it keeps the machine for good."""
        if taker == _NOBODY:
            del self._holder[machine]
        else:
            self.given[taker], self._holder[machine] = machine, taker
        if kind is not None:
            self._held[kind] |= 1 << machine

    def _reach(self, own: int, *, until: int) -> tuple[int, dict[int, int]]:
        """The machines that the seat with `own` could have instead, and for each kind of their holders the one
        that these take for it, which leads to `own` step by step. The search ends when it has reached `until`."""
        reached, instead = own, dict[int, int]()
        left = [kind for kind, held in enumerate(self._held[:_NOBODY]) if held]
        if self._held[_NOBODY]:
            left.append(_NOBODY)
        while not reached & until:
            new, following = 0, []
            for kind in left:
                options = reached & (~self._needed if kind == _NOBODY else self._candidates[kind])
                if options:
                    new |= self._held[kind]
                    instead[kind] = (options & -options).bit_length() - 1
                else:
                    following.append(kind)
            if not new:
                break
            reached |= new
            left = following
        return reached, instead
