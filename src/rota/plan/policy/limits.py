"""Limits: named capacities, global or per host, of which jobs take units, shared or exclusively, within hours.

Only bookkeeping: the placement asks what a job lacks, takes units and gives them back. Units may be held for a job
between two attempts. Interest in having a limit alone shuts it for all who would share it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import inf
from typing import Final

from msgspec import Struct

from rota.plan.need import LimitUse

#: Names of the limits that cap how many elements of an array run at once.
ARRAY_LIMIT: Final = re.compile(r"array-[0-9a-f]{12}")


class Window(Struct, frozen=True, array_like=True, gc=False):
    """Hours of the day in which jobs may start, in minutes after midnight with seconds as fractions. They may
    cross midnight."""

    start: int | float
    end: int | float

    def open_at(self, minute: float) -> bool:
        if self.start <= self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end

    def __str__(self) -> str:
        return f"{_clock(self.start)}-{_clock(self.end)}"


def minute_at(hour: int, minute: int, second: int) -> int | float:
    """The minute of the day. Moments and ends of windows use this same arithmetic, so that they compare equal."""
    return hour * 60 + minute + second / 60 if second else hour * 60 + minute


def clock_at(minute: float) -> tuple[int, int, int]:
    """Hour, minute and second of a minute of the day."""
    seconds = round(minute * 60)
    return seconds // 3600, seconds // 60 % 60, seconds % 60


def _clock(at: float) -> str:
    hour, minute, second = clock_at(at)
    return f"{hour:02}:{minute:02}" + (f":{second:02}" if second else "")


class Limit(Struct, frozen=True, array_like=True, gc=False):
    """A limit as it was declared. `capacity` None: any number of units."""

    name: str
    capacity: int | None = None
    window: Window | None = None
    hosts: tuple[tuple[str, int], ...] = ()  #: units on each host: the limit is per host
    by_jobs: bool = False  #: declared by jobs that named it with a number, not by a person
    owner: str = ""  #: then the user who did; empty: unknown, from an earlier version


class _Meter:
    """How much of one capacity is in use."""

    __slots__ = ("alone", "capacity", "holders", "used")

    def __init__(self, capacity: int | None) -> None:
        self.capacity = capacity
        self.used = 0
        self.holders = 0
        self.alone = 0  #: holders that have it exclusively: one, unless the limit changed meanwhile

    def could(self, use: LimitUse) -> bool:
        """Would the capacity be enough if nothing were in use?"""
        return self.capacity is None or self.capacity >= use.units

    def has(self, use: LimitUse) -> bool:
        if self.alone or (use.exclusive and self.holders):
            return False
        return self.capacity is None or self.used + use.units <= self.capacity

    def count(self, use: LimitUse, more: int) -> None:
        self.used += more * use.units
        self.holders += more
        if use.exclusive:
            self.alone += more


class Limits:
    """All limits of a deployment."""

    def __init__(self) -> None:
        self._declared: dict[str, Limit] = {}
        #: limit → host, or "" for all hosts: both are counted, because the scope may change
        self._meters: dict[str, dict[str, _Meter]] = {}
        self._held: dict[int, tuple[LimitUse, ...]] = {}  #: job between two attempts → units that it keeps
        self._interest: dict[str, set[int]] = {}  #: limit → who wants it alone
        self.minute: float = 0  #: of the day, local time

    # -- declarations

    def declare(self, limit: Limit) -> None:
        """Declare or change a limit. Jobs keep the units they have."""
        self._declared[limit.name] = limit
        self._set_capacities(limit.name)

    def withdraw(self, name: str) -> None:
        """Remove a limit: it holds back no job any more."""
        self._declared.pop(name, None)
        self._set_capacities(name)

    def _set_capacities(self, name: str) -> None:
        for host, meter in self._meters.get(name, {}).items():
            meter.capacity = self._capacity(name, host)

    def _capacity(self, name: str, host: str) -> int | None:
        """The capacity on this host, or, if it is empty, on all together."""
        limit = self._declared.get(name)
        if limit is None:
            return None
        if limit.hosts:
            return dict(limit.hosts).get(host, 0) if host else None
        return None if host else limit.capacity

    def get(self, name: str) -> Limit | None:
        return self._declared.get(name)

    def __iter__(self) -> Iterator[Limit]:
        return iter(self._declared.values())

    def _meter(self, name: str, host: str) -> _Meter:
        of_hosts = self._meters.get(name)
        if of_hosts is None:
            of_hosts = self._meters[name] = {}
        found = of_hosts.get(host)
        if found is None:
            found = of_hosts[host] = _Meter(self._capacity(name, host))
        return found

    def per_host(self, name: str) -> bool:
        """Does each host have units of its own?"""
        limit = self._declared.get(name)
        return limit is not None and bool(limit.hosts)

    # -- questions

    def stopped(self, uses: tuple[LimitUse, ...]) -> str | None:
        """The first of these limits that no end of a job can open: too small, or outside its hours."""
        for use in uses:
            limit = self._declared.get(use.name)
            if limit is None:
                continue
            if limit.window is not None and not limit.window.open_at(self.minute):
                return use.name
            if limit.hosts:
                if not any(capacity >= use.units for _host, capacity in limit.hosts):
                    return use.name
            elif not self._meter(use.name, "").could(use):
                return use.name
        return None

    def missing(self, uses: tuple[LimitUse, ...], host: str) -> list[str]:
        """The limits that lack units for this use on this host now."""
        found = []
        for use in uses:
            limit = self._declared.get(use.name)
            if limit is None:
                continue
            shut = use.name in self._interest and not use.exclusive
            if shut or not self._meter(use.name, host if limit.hosts else "").has(use):
                found.append(use.name)
        return found

    def fitting(self, uses: tuple[LimitUse, ...]) -> int | None:
        """How many such jobs global limits allow to start now; None: any number."""
        most: int | None = None
        for use in uses:
            limit = self._declared.get(use.name)
            if limit is None or limit.hosts:
                continue
            meter = self._meter(use.name, "")
            if use.exclusive:
                room = 0 if meter.holders else 1
            elif use.name in self._interest:
                room = 0
            elif meter.capacity is None:
                room = 0 if meter.alone else -1
            else:
                room = 0 if meter.alone else max(0, meter.capacity - meter.used) // use.units
            if room >= 0:
                most = room if most is None else min(most, room)
        return most

    def left(self, name: str) -> float:
        """How many units are free now, on all hosts together."""
        limit = self._declared.get(name)
        if limit is None:
            return inf
        left = 0.0
        for host in [host for host, _units in limit.hosts] or [""]:
            meter = self._meter(name, host)
            if not meter.alone:
                left += inf if meter.capacity is None else max(0, meter.capacity - meter.used)
        return left

    def use(self, name: str, host: str = "") -> tuple[int, bool]:
        """Units of a limit in use, and whether by one job alone."""
        meter = self._meters.get(name, {}).get(host)
        return (meter.used, meter.alone > 0) if meter is not None else (0, False)

    def over(self, name: str) -> list[tuple[str, int]]:
        """(host, used) where more units are in use than a lowered capacity allows."""
        return [
            (host, meter.used)
            for host, meter in self._meters.get(name, {}).items()
            if meter.capacity is not None and meter.used > meter.capacity
        ]

    # -- use

    def take(self, uses: tuple[LimitUse, ...], host: str, times: int = 1) -> None:
        for use in uses:
            self._meter(use.name, "").count(use, times)
            if host:
                self._meter(use.name, host).count(use, times)

    def give(self, uses: tuple[LimitUse, ...], host: str, times: int = 1) -> None:
        self.take(uses, host, -times)

    # -- across attempts

    def hold(self, job: int, uses: tuple[LimitUse, ...]) -> tuple[LimitUse, ...]:
        """Keep units for a job between two attempts, after those of its lease were given back.

        Units of hosts are not kept: the next attempt may begin on another. Returns what it still needs for that.
        """
        self.let_go(job)
        kept = tuple(use for use in uses if not self.per_host(use.name))
        if kept:
            self._held[job] = kept
            self.take(kept, "")
        return tuple(use for use in uses if use not in kept)

    def held(self, job: int) -> tuple[LimitUse, ...]:
        """The units that are kept for this job."""
        return self._held.get(job, ())

    def let_go(self, job: int) -> tuple[LimitUse, ...]:
        """Give back the units that were kept for this job; returns them."""
        kept = self._held.pop(job, ())
        self.give(kept, "")
        return kept

    # -- exclusive interest

    def shut(self, name: str, job: int) -> None:
        """This job wants the limit alone: no other begins to share it, and those who do are waited for."""
        self._interest.setdefault(name, set()).add(job)

    def reopen(self, name: str, job: int) -> bool:
        """This job does not want the limit alone any more. True if nobody does."""
        interested = self._interest.get(name)
        if interested is None:
            return False
        interested.discard(job)
        if not interested:
            del self._interest[name]
        return not interested

    def is_shut(self, name: str) -> bool:
        """Does somebody want this limit alone?"""
        return name in self._interest
