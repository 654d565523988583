"""The first in rank that waits for room is not delayed: when it will fit on a host, and who may pass it there."""

from __future__ import annotations

from rota.plan.need import Need
from rota.plan.packing.hosts import Host, amounts, fits, parts
from rota.plan.packing.lanes import Lane
from rota.plan.size import Size


class Shadows:
    """What the first that waits for room, if somebody does, leaves to those after it on each host."""

    __slots__ = ("_first", "_found", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._first: Lane | None = None
        self._found: dict[str, tuple[float, list[int]]] = {}  #: host → when it could begin, and what is left

    def protect(self, lane: Lane | None) -> None:
        """From now on this lane is the first that waits for room; None: nobody does."""
        self._first = lane
        self._found.clear()

    def may_pass(self, lane: Lane, host: Host) -> bool:
        """Would it not delay the first of all, should that wait for room?"""
        first = self._first
        if first is None or lane.rank() < first.rank():
            return True
        shadow, spare = self._shadow(host, first.need)
        return self.now + lane.need.size.time_s <= shadow or fits(lane.need.size, spare)

    def passed(self, host: Host, size: Size) -> None:
        """A job of this size, which may pass, begins on this host."""
        shadow, spare = self._found[host.name]
        if self.now + size.time_s > shadow:
            self._found[host.name] = shadow, [s - n for s, n in zip(spare, parts(size), strict=True)]

    def _shadow(self, host: Host, need: Need) -> tuple[float, list[int]]:
        """When this need will fit on the host, and what is then left beside it."""
        known = self._found.get(host.name)
        if known is None:
            known = self._found[host.name] = self._foreseen(host, need)
        return known

    def _foreseen(self, host: Host, need: Need) -> tuple[float, list[int]]:
        size, now = need.size, self.now
        if not fits(size, amounts(host.capacity)) or host.only not in (None, need):
            return float("inf"), list(host.free)
        free = list(host.free)
        when = now
        for seat in sorted(host.seats.values(), key=lambda seat: seat.expected_end(now)):
            if fits(size, free):
                break
            free = [f + n for f, n in zip(free, parts(seat.size), strict=True)]
            when = seat.expected_end(now)
        return when, [f - n for f, n in zip(free, parts(size), strict=True)]
