"""Seats matched to machines so that most preferences are met, with the prices that prove it.

Preferences alone are matched first. Each seat that is left then takes the cheapest way to a free machine, in which
others exchange theirs. Machines of one price, and seats that have the same wishes, are looked at as sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from rota.plan.matching.hopcroft_karp import maximum
from rota.plan.site.bitset import positions


class Assignment(NamedTuple):
    """A machine for each seat, and what any way to meet as many preferences has in common with it."""

    held: list[int]
    tight: list[int]  #: the machines that each seat could have in such a way
    needed: int  #: the machines that are taken in all of them


class _Reached(NamedTuple):
    """Machines that are reached at the same cost."""

    cost: int
    machines: int


def assign(candidates: Sequence[int], preferred: Sequence[int]) -> Assignment:
    """Fill all seats, which must be possible, so that most preferences are met."""
    prices = _Prices(candidates, preferred)
    for seat, machine in enumerate(prices.held):
        if machine == -1:
            prices.fill(seat)
    return Assignment(prices.held, prices.tight(), prices.needed())


class _Prices:
    """A way to fill some of the seats, and prices that prove it to be the cheapest.

    A seat pays 1 for a machine that does not meet its preference, else 0. That is never less than its own price
    and that of the machine together, and just as much for the one it holds. No machine has a price above 0, and
    free ones have 0.
    """

    def __init__(self, candidates: Sequence[int], preferred: Sequence[int]) -> None:
        self._liked = [some & liked for some, liked in zip(candidates, preferred, strict=True)]
        self._others = [some & ~liked for some, liked in zip(candidates, self._liked, strict=True)]
        kinds: dict[tuple[int, int], int] = {}
        self._kind = [kinds.setdefault(each, len(kinds)) for each in zip(self._liked, self._others, strict=True)]
        self.held, self._holder = maximum(self._liked)
        everything = 0
        for each in candidates:
            everything |= each
        self._free = everything & ~sum(1 << machine for machine in self._holder)
        self._seat_price = [0] * len(candidates)
        self._at_price = {0: everything}  #: the machines of each price

    def tight(self) -> list[int]:
        """The machines for which each seat pays just as much as its price and theirs."""
        found = []
        for liked, others, price in zip(self._liked, self._others, self._seat_price, strict=True):
            found.append(liked & self._at_price.get(-price, 0) | others & self._at_price.get(1 - price, 0))
        return found

    def needed(self) -> int:
        found = 0
        for price, machines in self._at_price.items():
            found |= machines if price else 0
        return found

    def fill(self, seat: int) -> None:
        """Give this seat a machine by the cheapest exchanges, after which prices prove the new way."""
        ways: list[tuple[int, bool, int, int]] = []  #: cost, leads to machines that are held, by which seat, which
        cheapest: dict[
            int, int
        ] = {}  #: kind of seat → the least that seats of it were reached for, less their price
        by: dict[int, int] = {}  #: machine → the seat that would take it
        reached: list[_Reached] = []
        done = 0
        self._offer(ways, seat, 0, done=done, cheapest=cheapest)
        while True:
            cost, held, taker, machines = heappop(ways)
            new = machines & ~done
            if not held and new:
                break
            done |= new
            reached.append(_Reached(cost, new))
            for machine in positions(new):
                by[machine] = taker
                self._offer(ways, self._holder[machine], cost, done=done, cheapest=cheapest)
        self._follow(seat, reached, cost)
        machine = (new & -new).bit_length() - 1
        self._free ^= 1 << machine
        while True:
            before = self.held[taker]
            self.held[taker], self._holder[machine] = machine, taker
            if taker == seat:
                return
            machine, taker = before, by[before]

    def _offer(
        self, ways: list[tuple[int, bool, int, int]], seat: int, cost: int, *, done: int, cheapest: dict[int, int]
    ) -> None:
        """This seat was reached at this cost: note which machines it could take, and what that costs in all."""
        kind, base = self._kind[seat], cost - self._seat_price[seat]
        if base >= cheapest.get(kind, base + 1):
            return  # another of its kind offers the same for no more
        cheapest[kind] = base
        for price, machines in self._at_price.items():
            for pays, those in ((0, self._liked[seat]), (1, self._others[seat])):
                if some := those & machines & ~done:
                    if some & self._free:
                        heappush(ways, (base + pays - price, False, seat, some & self._free))
                    if some & ~self._free:
                        heappush(ways, (base + pays - price, True, seat, some & ~self._free))

    def _follow(self, seat: int, reached: list[_Reached], cost: int) -> None:
        """Prices after a search that found a free machine at this cost: what was reached for less is contested."""
        self._seat_price[seat] += cost
        for each in reached:
            less = cost - each.cost
            if not less:
                continue
            for machine in positions(each.machines):
                self._seat_price[self._holder[machine]] += less
        moved: dict[int, int] = {}
        for each in reached:
            less = cost - each.cost
            for price in list(self._at_price) if less else ():
                if some := self._at_price[price] & each.machines:
                    self._at_price[price] ^= some
                    moved[price - less] = moved.get(price - less, 0) | some
        for price, machines in moved.items():
            self._at_price[price] = self._at_price.get(price, 0) | machines
        self._at_price = {price: machines for price, machines in self._at_price.items() if machines}
