"""What jobs take besides resources, over time: memory, disk, GPUs and limits of hosts, and limits of the site.

Sparse: only hosts with a known amount, and only amounts that a job takes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from math import inf
from typing import Final

from rota.plan.ask import Ask
from rota.plan.site.clock import SECOND, moment
from rota.plan.site.resources import HostFigures, Site
from rota.plan.snapshot import state
from rota.plan.timeline.step_function import StepFunction

#: The place of limits that belong to no host.
EVERYWHERE = ""

#: What a job takes of each of its hosts: name → amount.
Taking = Mapping[str, int]
NOTHING: Final[Taking] = {}
#: An amount that a job holds: host, name, amount, from when to when.
_Holding = tuple[str, str, int, int, int]


@state
class Ledger:
    """Capacities of hosts and of the site's limits, and how much of them is in use when."""

    _site: Site
    _limits: Mapping[str, int]  #: limits of the whole site
    _capacity: Mapping[str, Mapping[str, int]]  #: host → name → amount
    _named: frozenset[str]  #: the names of all amounts of hosts
    _fair: Mapping[str, int]  #: name → the amount that every core of every host could have
    _most: dict[str, int]  #: name → the largest amount that a job has asked for
    _used: dict[tuple[str, str], StepFunction]
    _guests: dict[tuple[str, str], StepFunction]  #: the same including besteffort jobs, which other jobs ignore
    _held: dict[int, tuple[_Holding, ...]]
    _low: set[int]  #: besteffort jobs that hold something
    _ends: list[int]  #: moments at which a job gives something back, ascending, one for each job

    def __init__(self, site: Site, limits: Mapping[str, int] | None = None) -> None:
        self._site = site
        self._limits = dict(limits or {})
        self._capacity = {host: _capacities(site.figures.get(host, HostFigures())) for host in site.hosts}
        self._named = frozenset(name for capacity in self._capacity.values() for name in capacity)
        fair: dict[str, int] = {}
        for host, capacities in self._capacity.items():
            cores = site.hosts[host].bit_count()
            for name, capacity in capacities.items():
                fair[name] = min(fair.get(name, capacity), capacity // cores)
        self._fair = fair
        self._most = {}
        self._used, self._guests = {}, {}
        self._held, self._low, self._ends = {}, set(), []

    def emptied(self) -> Ledger:
        """The same capacities, of which nothing is held or asked for."""
        new = copy(self)
        new._most, new._used, new._guests = {}, {}, {}
        new._held, new._low, new._ends = {}, set(), []
        return new

    def taking(self, ask: Ask) -> Taking | None:
        """What a job takes of each host where amounts are known; None: nothing."""
        if not self._named and not ask.gpus:
            return None
        asked = {"mem": ask.mem, "disk": ask.disk, "gpus": ask.gpus}
        for use in ask.limits:
            asked[f"limit {use.name}"] = use.units
        found = {name: amount for name, amount in asked.items() if amount and name in self._named}
        if ask.gpus and "gpus" not in self._named:
            found["gpus"] = ask.gpus  # a host without a known number has none
        for name, amount in found.items():
            if amount > self._most.get(name, 0):
                self._most[name] = amount
        return found or None

    def may_lack(self, taking: Taking) -> bool:
        """Might an amount be too small? Not if every core could have the largest amount that any job takes."""
        return any(name == "gpus" or self._most.get(name, 0) > self._fair.get(name, 0) for name in taking)

    def everywhere(self, ask: Ask) -> Taking:
        """What it takes of the site's limits; an exclusive user takes all units."""
        if not ask.limits:
            return NOTHING
        return {
            use.name: max(use.units, self._limits[use.name]) if use.exclusive else use.units
            for use in ask.limits
            if use.name in self._limits
        }

    def short(self, taking: Taking, mask: int, start: float, end: float, *, low: bool = False) -> int:
        """The subset of these resources whose hosts have too little left at some time from start to end.

        `low`: for a besteffort job. It counts what all jobs take; other jobs ignore besteffort jobs.
        """
        used = self._guests if low else self._used
        first, last = (moment(start), moment(end)) if start != inf else (0, 0)
        lacking = 0
        while mask:
            host = self._host(mask)
            if host is None:
                mask &= mask - 1
                continue
            of_host = self._site.hosts[host]
            mask &= ~of_host
            if any(not self._enough(used, host, name, amount, (first, last)) for name, amount in taking.items()):
                lacking |= of_host
        return lacking

    def never(self, taking: Taking, mask: int) -> int:
        """The subset of these resources whose hosts have too little even when they are empty."""
        return self.short(taking, mask, inf, inf)

    def _host(self, mask: int) -> str | None:
        value = self._site.resources[(mask & -mask).bit_length() - 1].values.get("host")
        return None if value is None else str(value)

    def _enough(
        self, used: dict[tuple[str, str], StepFunction], host: str, name: str, amount: int, span: tuple[int, int]
    ) -> bool:
        capacity = self._capacity[host].get(name, 0 if name == "gpus" else None)
        if capacity is None:
            return True
        if amount > capacity:
            return False
        first, last = span
        steps = used.get((host, name)) if first < last else None
        return steps is None or steps.over(first, last, capacity - amount, length=last - first) is None

    def again(
        self, everywhere: Taking, start: float, end: float, *, low: bool = False
    ) -> tuple[str, float] | None:
        """A limit of the site that has too few units, and when to try again; None if all have enough."""
        for name, amount in everywhere.items():
            capacity = self._limits[name]
            if amount > capacity:
                return name, inf
            steps = (self._guests if low else self._used).get((EVERYWHERE, name))
            first, last = moment(start), moment(end)
            over = steps.over(first, last, capacity - amount, length=last - first) if steps is not None else None
            if over is not None:
                return name, over.until / SECOND
        return None

    def excess(self, host: str, name: str, now: float) -> int:
        """By how much jobs, besteffort included, exceed an amount of a host now."""
        capacity = self._capacity[host].get(name)
        steps = self._guests.get((host, name))
        if capacity is None or steps is None:
            return 0
        over = steps.over(moment(now), moment(now) + 1, capacity, length=1)
        return 0 if over is None else over.amount - capacity

    def take(
        self,
        job: int,
        taking: Taking | None,
        everywhere: Taking,
        mask: int,
        span: tuple[float, float],
        *,
        low: bool = False,
    ) -> None:
        """A job takes these amounts on the hosts of these resources, for a span of time."""
        first, last = moment(span[0]), moment(span[1])
        held = [(EVERYWHERE, name, amount, first, last) for name, amount in everywhere.items()]
        if taking:
            held += [
                (host, name, amount, first, last)
                for host in self._site.hosts_of(mask)
                for name, amount in taking.items()
            ]
        if held:
            self._held[job] = tuple(held)
            insort(self._ends, last)
            if low:
                self._low.add(job)
            self._count(held, 1, low=low)

    def give(self, job: int) -> None:
        """The job gives back all it holds."""
        held = self._held.pop(job, None)
        if held:
            del self._ends[bisect_left(self._ends, held[0][-1])]
            self._count(held, -1, low=job in self._low)
            self._low.discard(job)

    def _count(self, held: Iterable[_Holding], times: int, *, low: bool) -> None:
        for used in (self._guests,) if low else (self._guests, self._used):
            for host, name, amount, first, last in held:
                steps = used.get((host, name))
                if steps is None:
                    steps = used[host, name] = StepFunction()
                steps.add(first, last, times * amount)

    def ends(self) -> list[float]:
        """Moments at which jobs give something back, ascending."""
        return [last / SECOND for last in self._ends]

    def starts(self) -> list[float]:
        """Moments at which jobs take something."""
        return [held[0][-2] / SECOND for held in self._held.values()]

    def holders(self, name: str) -> Iterator[int]:
        """Jobs that hold a limit of the site."""
        found = (job for job, held in self._held.items() if any(each[:2] == (EVERYWHERE, name) for each in held))
        return (
            job if job >= -1 else ~job for job in found
        )  # suspended jobs hold theirs under the complement of their id


def _capacities(figures: HostFigures) -> dict[str, int]:
    found = {f"limit {name}": units for name, units in figures.limits.items()}
    if figures.mem is not None:
        found["mem"] = figures.mem
    if figures.disk is not None:
        found["disk"] = figures.disk
    if figures.gpus:
        found["gpus"] = figures.gpus
    return found
