"""Hosts as packing sees them: what is free, which seats are open, and how fast jobs end there."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import count
from math import exp

from rota.plan.need import Need
from rota.plan.packing.packing_reasons import never_fits
from rota.plan.placement.decisions import Opened
from rota.plan.size import Capacity, Size
from rota.pool_names import is_delegated

#: Leases beyond the seats cover about this many seconds of work …
AHEAD_S = 0.08
#: … and are never more than this.
AHEAD_MAX = 256
_RATE_WINDOW_S = 0.1


class OpenSeat:
    """A seat at a host, and since when its present job runs."""

    __slots__ = ("host", "since", "size")

    def __init__(self, host: Host, size: Size, since: float) -> None:
        self.host = host
        self.size = size
        self.since = since

    def expected_end(self, now: float) -> float:
        """When its job should end. A job over its time gets a quarter of its age more, at least a minute."""
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
        """The number of leases worth sending beyond the seats: 0 unless jobs end quickly."""
        if not self.level:
            return 0
        rate = self.level * exp((self.level_at - now) / _RATE_WINDOW_S) / _RATE_WINDOW_S
        return min(AHEAD_MAX, int(rate * AHEAD_S))


class Host:
    """One host: its capacity, what is free of it, and its open seats."""

    __slots__ = ("capacity", "flows", "forceable", "free", "name", "only", "pool", "seats", "usable", "whole")

    def __init__(self, name: str, capacity: Capacity, only: Need | None) -> None:
        self.name = name
        self.capacity = capacity
        self.only = only  #: set if the host was made for jobs of one reservation group
        self.pool = capacity.pool
        self.free = amounts(capacity)
        self.usable = False
        self.forceable = False  #: for jobs that force it, whatever its condition
        self.whole = False  #: is it kept free of jobs that take no core?
        self.flows: dict[Size, Flow] = {}
        self.seats: dict[int, OpenSeat] = {}

    def resize(self, capacity: Capacity) -> None:
        before, after = amounts(self.capacity), amounts(capacity)
        self.capacity = capacity
        self.free = [free - b + a for free, b, a in zip(self.free, before, after, strict=True)]

    def admits(self, size: Size) -> bool:
        """May a job of this size begin here, if it fits?"""
        return size.cpus > 0 or not self.whole

    def takes(self, need: Need) -> bool:
        """May jobs of this need run here at all, whatever their size?"""
        return (not need.pool or need.pool == self.pool) and (self.only is None or self.only == need.group)

    def flow(self, size: Size) -> Flow:
        found = self.flows.get(size)
        if found is None:
            self.flows = {each: flow for each, flow in self.flows.items() if flow.seats or flow.leases}
            found = self.flows[size] = Flow()
        return found


def amounts(capacity: Capacity) -> list[int]:
    """Processors, memory, disk, GPUs, and jobs without a processor."""
    return [capacity.cpus, capacity.mem, capacity.disk, capacity.gpus, capacity.zero_cpu_jobs]


def parts(size: Size) -> tuple[int, int, int, int, int]:
    """The same of a size."""
    return size.cpus, size.mem, size.disk, size.gpus, 0 if size.cpus else 1


def fits(size: Size, free: list[int]) -> bool:
    """Are these amounts enough? A free amount may be negative: a size that asks for none of it still fits."""
    cpus, mem, disk, gpus, without = free
    return (
        (size.cpus <= cpus if size.cpus else without > 0)
        and (size.mem <= mem or not size.mem)
        and (size.disk <= disk or not size.disk)
        and (size.gpus <= gpus or not size.gpus)
    )


class Hosts:
    """All hosts and their open seats."""

    def __init__(self, first_seat: int) -> None:
        self.shared: dict[str, Host] = {}  #: they run anything that fits
        self.made_for: dict[Need, dict[str, Host]] = {}  #: reservation group → hosts that run nothing else
        self.all: dict[str, Host] = {}
        self.coreless: set[str] = set()  #: hosts with jobs that take no core
        self._whole: set[str] = set()
        self._seats: dict[int, OpenSeat] = {}
        self._ids = count(first_seat)

    def known(self, host: str, capacity: Capacity, only: Need | None) -> None:
        found = self.all.get(host)
        if found is not None:
            found.resize(capacity)
            return
        new = self.all[host] = Host(host, capacity, only)
        new.whole = host in self._whole
        if only is None:
            self.shared[host] = new
        else:
            self.made_for.setdefault(only, {})[host] = new

    def gone(self, host: str) -> None:
        found = self.all.pop(host)
        self.coreless.discard(host)
        if found.only is None:
            del self.shared[host]
            return
        siblings = self.made_for[found.only]
        del siblings[host]
        if not siblings:
            del self.made_for[found.only]

    def keep_whole(self, names: set[str]) -> bool:
        """No job that takes no core begins on these hosts from now on. True if that opens others again."""
        opened = self._whole - names
        for name in self._whole ^ names:
            if (host := self.all.get(name)) is not None:
                host.whole = name in names
        self._whole = names
        return bool(opened)

    def for_need(self, need: Need) -> Collection[Host]:
        """The hosts that may run jobs of this need; those of planned pools first."""
        own = self.made_for.get(need.group) if self.made_for else None
        if not need.pool:
            return self.shared.values() if own is None else [*self.shared.values(), *own.values()]
        if is_delegated(need.pool):
            return [host for host in own.values() if host.pool == need.pool] if own is not None else ()
        return [host for host in self.shared.values() if host.pool == need.pool]

    def could_run(self, size: Size, pool: str, groups: Iterable[Need]) -> bool:
        """Could a host that may be used now run this size if it were empty? `groups`: of the jobs in question."""
        if any(
            host.usable and fits(size, amounts(host.capacity)) and (not pool or host.pool == pool)
            for host in self.shared.values()
        ):
            return True
        made_for = self.made_for
        return bool(made_for) and any(
            not pool or host.pool == pool for group in groups for host in made_for.get(group, {}).values()
        )

    def usable_in(self, pools: Collection[str]) -> bool:
        """May new work be placed on a host of one of these pools?"""
        return any(host.usable and host.pool in pools for host in self.all.values())

    def refusal(self, size: Size, pool: str = "") -> str | None:
        """Why no host of the planned pools, or of the named one, could ever run this size; None if one could, or
        if no host is known."""
        caps = [host.capacity for host in self.shared.values() if not pool or host.pool == pool]
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
        """Open a seat of this size. The caller has checked that there is room."""
        seat = next(self._ids)
        self._take(seat, host, size, now)
        return Opened(seat, host.name, size)

    def _take(self, seat: int, host: Host, size: Size, now: float) -> None:
        host.free = [f - n for f, n in zip(host.free, parts(size), strict=True)]
        host.seats[seat] = self._seats[seat] = OpenSeat(host, size, now)
        if not size.cpus:
            self.coreless.add(host.name)
        host.flow(size).seats += 1

    def started(self, seat: int, now: float) -> None:
        found = self._seats.get(seat)
        if found is not None:
            found.since = now

    def adopt(self, seat: int, host: str, size: Size) -> None:
        if seat and seat not in self._seats:
            self._take(seat, self.all[host], size, 0.0)

    def close(self, seat: int) -> bool:
        """Close a seat and free its room. False if it is not open."""
        found = self._seats.pop(seat, None)
        if found is None:
            return False
        host = found.host
        del host.seats[seat]
        host.free = [f + n for f, n in zip(host.free, parts(found.size), strict=True)]
        host.flow(found.size).seats -= 1
        if not found.size.cpus and host.free[-1] >= host.capacity.zero_cpu_jobs:
            self.coreless.discard(host.name)
        return True
