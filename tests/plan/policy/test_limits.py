"""Limits in the packing placement, compared with a naive model: never exceeded, and nobody waits without need.

The model has no job classes. It looks at every waiting job, best rank first, and asks what keeps it: no room, its
limits, or a job of better rank that waits for nothing but one of its limits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from rota.plan.need import LimitUse, Need
from rota.plan.packing.packing import Packing
from rota.plan.placement.queue import rank_of
from rota.plan.policy.limits import Limit, Window
from rota.plan.size import Capacity, Size
from tests.dose import dose, half

#: Those of no duration may always pass one that waits for room; the others may be held back for it.
SIZES = [
    Size(cpus=100, time_s=0.0),
    Size(cpus=200, time_s=0.0),
    Size(cpus=400, time_s=0.0),
    Size(cpus=100),
    Size(cpus=300),
]
NAMES = ["a", "b", "c"]
HOSTS = ["h1", "h2"]
FOUR = Capacity(cpus=400, mem=0, disk=0)


@dataclass
class Running:
    need: Need
    host: str
    seat: int


@dataclass
class Naive:
    """What waits, what runs and what the limits are, and a `Packing` that is told the same."""

    made: Packing = field(default_factory=Packing)
    hosts: tuple[str, ...] = ("h1",)
    usable: set[str] = field(default_factory=set)
    limits: dict[str, Limit] = field(default_factory=dict)
    minute: int = 0
    now: float = 0.0
    waiting: dict[int, tuple[int, Need]] = field(default_factory=dict)
    running: dict[int, Running] = field(default_factory=dict)
    next_job: int = 1

    def __post_init__(self) -> None:
        for host in self.hosts:
            self.made.host_known(host, FOUR)
            self.set_usable(host, True)

    # -- what happens

    def set_usable(self, host: str, usable: bool) -> None:
        self.made.host_usable(host, usable)
        (self.usable.add if usable else self.usable.discard)(host)

    def offer(self, need: Need, *, priority: int = 0, count: int = 1) -> list[int]:
        jobs = list(range(self.next_job, self.next_job + count))
        self.next_job += count
        self.made.offer(need, rank=rank_of(priority), jobs=jobs)
        self.waiting.update(dict.fromkeys(jobs, (priority, need)))
        return jobs

    def withdraw(self, job: int) -> None:
        priority, need = self.waiting.pop(job)
        self.made.withdraw(need, rank=rank_of(priority), job=job)

    def end(self, job: int) -> None:
        over = self.running.pop(job)
        self.made.released(over.host, over.need, ended_at=None)
        self.made.close(over.seat)

    def hand_back(self, job: int) -> None:
        """A lease that was never executed: the job waits again, with its old rank."""
        over = self.running[job]
        self.end(job)
        self.made.offer(over.need, rank=rank_of(0), jobs=[job])
        self.waiting[job] = (0, over.need)

    def declare(self, limit: Limit) -> None:
        self.limits[limit.name] = limit
        self.made.limits.declare(limit)
        self.made.limit_changed(limit.name)

    def remove_limit(self, name: str) -> None:
        if self.limits.pop(name, None) is not None:
            self.made.limits.withdraw(name)
            self.made.limit_changed(name)

    def clock(self, minute: int) -> None:
        before, self.minute = self.minute, minute
        self.made.limits.minute = minute
        for limit in self.limits.values():
            if limit.window is not None and limit.window.open_at(before) != limit.window.open_at(minute):
                self.made.limit_changed(limit.name)

    def place(self) -> list[int]:
        self.now += 1.0
        started = []
        for (placed,) in self.made.place(self.now):
            job, host = placed.job, placed.host
            _priority, need = self.waiting.pop(job)
            assert placed.seat is not None
            assert (placed.seat.host, placed.seat.size) == (host, need.size)
            assert not self.stopped(need), f"job {job} started although a limit stops it"
            assert not self.lacking(need, host), f"job {job} exceeds {self.lacking(need, host)}"
            self.running[job] = Running(need, host, placed.seat.seat)
            assert self.free(host) >= 0, f"{host} has more than it can"
            started.append(job)
        self.nobody_waits_without_need()
        return started

    # -- what is true

    def free(self, host: str) -> int:
        return FOUR.cpus - sum(each.need.size.cpus for each in self.running.values() if each.host == host)

    def stopped(self, need: Need) -> bool:
        """Does a limit stop it that no end of a job could open?"""
        for use in need.limits:
            limit = self.limits.get(use.name)
            if limit is None:
                continue
            if limit.window is not None and not limit.window.open_at(self.minute):
                return True
            if limit.hosts:
                if all(units < use.units for _host, units in limit.hosts):
                    return True
            elif limit.capacity is not None and limit.capacity < use.units:
                return True
        return False

    def lacking(self, need: Need, host: str) -> set[str]:
        """The limits of which it could not have its units on this host now."""
        found = set()
        for use in need.limits:
            limit = self.limits.get(use.name)
            if limit is None:
                continue
            users = [
                other
                for each in self.running.values()
                for other in each.need.limits
                if other.name == use.name and (not limit.hosts or each.host == host)
            ]
            capacity = dict(limit.hosts).get(host, 0) if limit.hosts else limit.capacity
            taken = sum(other.units for other in users)
            if (
                (capacity is not None and taken + use.units > capacity)
                or (use.exclusive and users)
                or any(other.exclusive for other in users)
            ):
                found.add(use.name)
        return found

    def nobody_waits_without_need(self) -> None:
        interested: set[str] = set()  #: limits that somebody of better rank waits for, and for nothing else
        held_back = False  #: somebody of better rank waits for room
        for job, (_priority, need) in sorted(self.waiting.items(), key=lambda item: (-item[1][0], item[0])):
            if self.stopped(need):
                continue
            if not any(need.size.cpus <= FOUR.cpus for _host in self.usable):
                continue
            rooms = [host for host in sorted(self.usable) if need.size.cpus <= self.free(host)]
            if not rooms:
                held_back = True
                continue
            behind = {use.name for use in need.limits} & interested
            lacks = [self.lacking(need, host) for host in rooms]
            # A long one may have to wait lest it delays the one that waits for room.
            passes = not (held_back and need.size.time_s)
            assert behind or all(lacks) or not passes, f"job {job} waits although nothing keeps it: {self}"
            for missing in lacks:
                if len(missing | behind) == 1:
                    interested |= missing

    def drain(self) -> None:
        """All limits are opened, everything ends: nothing is left and nothing is in use."""
        for host in self.hosts:
            self.set_usable(host, True)
        for name in list(self.limits):
            self.remove_limit(name)
        for _round in range(1000):
            self.place()
            if not self.running:
                break
            for job in list(self.running):
                self.end(job)
        assert not self.waiting
        for name in NAMES:
            for host in ("", *HOSTS):
                assert self.made.limits.use(name, host) == (0, False)


# ------------------------------------------------------------------ histories

uses = st.builds(
    LimitUse, st.sampled_from(NAMES), st.sampled_from([1, 1, 1, 2, 3]), st.sampled_from([False, False, True])
)
use_lists = st.lists(uses, max_size=3, unique_by=lambda use: use.name).map(tuple)
needs = st.builds(Need, st.sampled_from(SIZES), use_lists)
windows = st.sampled_from([None, None, Window(60, 120), Window(100, 30)])
capacities = st.sampled_from([0, 1, 1, 2, 3, 5])
limits = st.one_of(
    st.builds(Limit, st.sampled_from(NAMES), capacities | st.none(), windows),
    st.builds(
        Limit,
        st.sampled_from(NAMES),
        st.none(),
        windows,
        st.lists(st.tuples(st.sampled_from(HOSTS), capacities), min_size=1, unique_by=lambda host: host[0]).map(
            tuple
        ),
    ),
)
picks = st.integers(0, 30)
steps = st.one_of(
    st.tuples(st.just("offer"), needs, st.sampled_from([0, 0, 9]), st.integers(1, 3)),
    st.tuples(st.just("offer"), needs, st.sampled_from([0, 0, 9]), st.integers(1, 3)),
    st.tuples(st.just("offer"), needs, st.just(0), st.just(1)),
    st.tuples(st.just("end"), picks),
    st.tuples(st.just("end"), picks),
    st.tuples(st.just("hand back"), picks),
    st.tuples(st.just("withdraw"), picks),
    st.tuples(st.just("declare"), limits),
    st.tuples(st.just("remove limit"), st.sampled_from(NAMES)),
    st.tuples(st.just("clock"), st.sampled_from([0, 60, 110, 120])),
    st.tuples(st.just("usable"), st.sampled_from(HOSTS), st.booleans()),
    st.tuples(st.just("place")),
    st.tuples(st.just("place")),
)


def replay(hosts: int, declared: list[Limit], history: list[tuple]) -> None:  # type: ignore[type-arg]
    naive = Naive(hosts=tuple(HOSTS[:hosts]))
    for limit in declared:
        naive.declare(limit)
    for step in history:
        match step:
            case ("offer", need, priority, count):
                naive.offer(need, priority=priority, count=count)
            case ("end", pick) if naive.running:
                naive.end(sorted(naive.running)[pick % len(naive.running)])
            case ("hand back", pick) if naive.running:
                naive.hand_back(sorted(naive.running)[pick % len(naive.running)])
            case ("withdraw", pick) if naive.waiting:
                naive.withdraw(sorted(naive.waiting)[pick % len(naive.waiting)])
            case ("declare", limit):
                naive.declare(limit)
            case ("remove limit", name):
                naive.remove_limit(name)
            case ("clock", minute):
                naive.clock(minute)
            case ("usable", host, usable) if host in naive.hosts:
                naive.set_usable(host, usable)
            case ("place",):
                naive.place()
    naive.place()
    naive.drain()


@dose(half(400))
@given(st.sampled_from([1, 2]), st.lists(limits, max_size=3), st.lists(steps, min_size=1, max_size=40))
def test_nobody_exceeds_a_limit_and_nobody_waits_without_need(
    hosts: int,
    declared: list[Limit],
    history: list[tuple],  # type: ignore[type-arg]
) -> None:
    replay(hosts, declared, history)
