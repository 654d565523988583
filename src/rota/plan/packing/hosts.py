"""Hosts as a placement sees them: what is free, which seats are open, and how fast jobs end there."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from math import exp

from rota.plan.need import Need
from rota.plan.packing.packing_reasons import never_fits
from rota.plan.placement import Opened
from rota.plan.size import Capacity, Size

#: Leases are sent ahead for about this many seconds of work, and no more than this many.
AHEAD_S = 0.08
AHEAD_MAX = 256
_RATE_WINDOW_S = 0.1


class Seat:
    __slots__ = ("host", "since", "size")

    def __init__(self, host: Host, size: Size, since: float) -> None:
        self.host = host
        self.size = size
        self.since = since

    def expected_end(self, now: float) -> float:
        end = self.since + self.size.time_s
        return end if end >= now else now + max(60.0, (now - self.since) / 4)


class Flow:
    """Leases and seats of one size at one host, and how fast its jobs end lately."""

    __slots__ = ("leases", "level", "level_at", "seats")

    def __init__(self) -> None:
        self.seats = 0
        self.leases = 0
        self.level = 0.0
        self.level_at = 0.0

    def ended(self, now: float) -> None:
        self.level = self.level * exp((self.level_at - now) / _RATE_WINDOW_S) + 1 if self.level else 1.0
        self.level_at = now

    def ahead(self, now: float) -> int:
        """How many leases beyond the seats are worth sending: none unless jobs end quickly."""
        if not self.level:
            return 0
        rate = self.level * exp((self.level_at - now) / _RATE_WINDOW_S) / _RATE_WINDOW_S
        return min(AHEAD_MAX, int(rate * AHEAD_S))


class Host:
    __slots__ = ("capacity", "flows", "free", "name", "only", "seats", "usable")

    def __init__(self, name: str, capacity: Capacity, only: Need | None) -> None:
        self.name = name
        self.capacity = capacity
        self.only = only  #: an allocation made for jobs of one need
        self.free = amounts(capacity)
        self.usable = False
        self.flows: dict[Size, Flow] = {}
        self.seats: dict[int, Seat] = {}

    def resize(self, capacity: Capacity) -> None:
        before, after = amounts(self.capacity), amounts(capacity)
        self.capacity = capacity
        self.free = [free - b + a for free, b, a in zip(self.free, before, after, strict=True)]

    def flow(self, size: Size) -> Flow:
        found = self.flows.get(size)
        if found is None:
            self.flows = {each: flow for each, flow in self.flows.items() if flow.seats or flow.leases}
            found = self.flows[size] = Flow()
        return found


def amounts(capacity: Capacity) -> list[int]:
    return [capacity.cpus, capacity.mem, capacity.disk, capacity.gpus, capacity.zero_cpu_jobs]


def parts(size: Size) -> tuple[int, int, int, int, int]:
    return size.cpus, size.mem, size.disk, size.gpus, 0 if size.cpus else 1


def fits(size: Size, free: list[int]) -> bool:
    cpus, mem, disk, gpus, without = free
    return (
        (size.cpus <= cpus if size.cpus else without > 0)
        and (size.mem <= mem or not size.mem)
        and (size.disk <= disk or not size.disk)
        and (size.gpus <= gpus or not size.gpus)
    )


class Hosts:
    """All hosts, and the seats that are open on them."""

    def __init__(self, first_seat: int) -> None:
        self.shared: dict[str, Host] = {}  #: those that run anything that fits
        self.made_for: dict[Need, dict[str, Host]] = {}  #: those that were made for one need
        self.all: dict[str, Host] = {}
        self._seats: dict[int, Seat] = {}
        self._ids = count(first_seat)

    def known(self, host: str, capacity: Capacity, only: Need | None) -> None:
        found = self.all.get(host)
        if found is not None:
            found.resize(capacity)
            return
        new = self.all[host] = Host(host, capacity, only)
        if only is None:
            self.shared[host] = new
        else:
            self.made_for.setdefault(only, {})[host] = new

    def gone(self, host: str) -> None:
        found = self.all.pop(host)
        if found.only is None:
            del self.shared[host]
            return
        siblings = self.made_for[found.only]
        del siblings[host]
        if not siblings:
            del self.made_for[found.only]

    def for_need(self, need: Need) -> Collection[Host]:
        """Those that may run jobs of this need."""
        own = self.made_for.get(need) if self.made_for else None
        return self.shared.values() if own is None else [*own.values(), *self.shared.values()]

    def refusal(self, size: Size) -> str | None:
        """Why no host could ever run this; None if one could, or if none is known."""
        caps = [host.capacity for host in self.shared.values()]
        if not caps or any(fits(size, amounts(cap)) for cap in caps):
            return None
        most = Size(
            cpus=max(cap.cpus for cap in caps),
            mem=max(cap.mem for cap in caps),
            disk=max(cap.disk for cap in caps),
            gpus=max(cap.gpus for cap in caps),
        )
        return never_fits(size, most)

    # -- seats

    def open(self, host: Host, size: Size, now: float) -> Opened:
        """A new seat of this size, for which there is room."""
        seat = next(self._ids)
        self._take(seat, host, size, now)
        return Opened(seat, host.name, size)

    def _take(self, seat: int, host: Host, size: Size, now: float) -> None:
        host.free = [f - n for f, n in zip(host.free, parts(size), strict=True)]
        host.seats[seat] = self._seats[seat] = Seat(host, size, now)
        host.flow(size).seats += 1

    def started(self, seat: int, now: float) -> None:
        found = self._seats.get(seat)
        if found is not None:
            found.since = now

    def adopt(self, seat: int, host: str, size: Size) -> None:
        if seat and seat not in self._seats:
            self._take(seat, self.all[host], size, 0.0)

    def close(self, seat: int) -> bool:
        """The seat is gone and its room is free. False if there was none."""
        found = self._seats.pop(seat, None)
        if found is None:
            return False
        host = found.host
        del host.seats[seat]
        host.free = [f + n for f, n in zip(host.free, parts(found.size), strict=True)]
        host.flow(found.size).seats -= 1
        return True
