"""The packing placement: never over what a host has, in order of rank, and at a price that does not grow."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.plan.need import LimitUse, Need
from rota.plan.packing.hosts import AHEAD_MAX, AHEAD_S
from rota.plan.packing.packing import Packing
from rota.plan.placement.decisions import Opened, Placed
from rota.plan.placement.queue import rank_of
from rota.plan.policy.limits import Limit
from rota.plan.size import Capacity, Size

GIB = 1 << 30
FOUR = Capacity(cpus=400, mem=8 * GIB, disk=10 * GIB)


def packing(*capacities: Capacity) -> Packing:
    made = Packing()
    for n, capacity in enumerate(capacities or (FOUR,), 1):
        made.host_known(f"h{n}", capacity)
        made.host_usable(f"h{n}", True)
    return made


def begun(made: Packing, now: float = 0.0) -> list[Placed]:
    return [placed for decision in made.place(now) for placed in decision]


def place(made: Packing, now: float = 0.0) -> list[int]:
    return [placed.job for placed in begun(made, now)]


def seats(made: Packing, now: float = 0.0) -> list[int]:
    """Place, and return the seats that were opened."""
    return [placed.seat.seat for placed in begun(made, now) if placed.seat is not None]


# ------------------------------------------------------------------ order


def test_the_highest_priority_comes_first_then_the_oldest() -> None:
    made = packing()
    made.offer(Need(Size(cpus=100)), rank=rank_of(0), jobs=[1, 4, 5])
    made.offer(Need(Size(cpus=100, mem=GIB)), rank=rank_of(0), jobs=[2, 3])
    made.offer(Need(Size(cpus=100)), rank=rank_of(9), jobs=[6])
    assert place(made) == [6, 1, 2, 3]


def test_a_job_offered_late_takes_its_place_by_age() -> None:
    made = packing()
    made.offer(Need(Size(cpus=400)), rank=rank_of(0), jobs=[5, 6])
    made.offer(Need(Size(cpus=400)), rank=rank_of(0), jobs=[2])
    assert place(made) == [2]


def test_a_withdrawn_job_is_passed_over_and_may_come_back() -> None:
    made = packing()
    size = Size(cpus=400)
    made.offer(Need(size), rank=rank_of(0), jobs=[1, 2, 3])
    made.withdraw(Need(size), rank=rank_of(0), job=1)
    made.withdraw(Need(size), rank=rank_of(0), job=3)
    made.offer(Need(size), rank=rank_of(0), jobs=[3])
    (placed,) = begun(made)
    assert placed.job == 2
    assert placed.seat is not None
    made.close(placed.seat.seat)
    assert place(made) == [3]


def test_backfill_keeps_the_order_of_rank_too() -> None:
    made = packing()
    made.offer(Need(Size(cpus=300, time_s=100.0)), rank=rank_of(0), jobs=[1, 2])
    made.offer(Need(Size(cpus=30, time_s=10.0)), rank=rank_of(0), jobs=[3, 6])
    made.offer(Need(Size(cpus=30, mem=1, time_s=10.0)), rank=rank_of(0), jobs=[4, 5])
    assert place(made) == [1, 3, 4, 5]


# ------------------------------------------------------------------ sizes


def test_fractions_of_a_core_add_up_exactly() -> None:
    made = packing(Capacity(cpus=100, mem=0, disk=0))
    made.offer(Need(Size(cpus=10)), rank=rank_of(0), jobs=list(range(1, 20)))
    assert len(place(made)) == 10


def test_jobs_without_a_processor_run_beside_a_full_host_but_not_without_end() -> None:
    made = packing(Capacity(cpus=200, mem=0, disk=0))
    made.offer(Need(Size(cpus=200)), rank=rank_of(9), jobs=[1])
    made.offer(Need(Size(cpus=0)), rank=rank_of(0), jobs=list(range(2, 50)))
    assert len(place(made)) == 1 + 8


def test_memory_disk_and_gpus_are_counted_like_processors() -> None:
    made = packing(Capacity(cpus=10_000, mem=3, disk=3, gpus=3))
    for n, size in enumerate((Size(mem=2), Size(disk=2), Size(gpus=2))):
        made.offer(Need(size), rank=rank_of(0), jobs=[n * 10 + 1, n * 10 + 2])
    assert place(made) == [1, 11, 21]


def test_nothing_is_placed_on_a_host_that_cannot_be_used() -> None:
    made = packing(FOUR, FOUR)
    made.host_usable("h1", False)
    made.offer(Need(Size(cpus=400)), rank=rank_of(0), jobs=[1, 2])
    assert begun(made) == [Placed(1, "h2", Opened(1, "h2", Size(cpus=400)))]


def test_a_host_that_shrinks_gets_nothing_until_it_has_room() -> None:
    made = packing()
    made.offer(Need(Size(cpus=200)), rank=rank_of(0), jobs=[1, 2, 3])
    first, second = seats(made)
    made.host_known("h1", Capacity(cpus=200, mem=0, disk=0))
    made.close(first)
    assert place(made) == []
    made.close(second)
    assert place(made) == [3]


# ------------------------------------------------------------------ refusals and explanations


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (Size(cpus=6400), "never fits: asked 64 cpus, largest host has 4"),
        (Size(cpus=450), "never fits: asked 4.5 cpus, largest host has 4"),
        (Size(mem=16 * GIB), "never fits: asked 16G mem, largest host has 8G"),
        (Size(disk=20 * GIB), "never fits: asked 20G disk, largest host has 10G"),
        (Size(gpus=1), "never fits: asked 1 gpus, largest host has 0"),
        (Size(cpus=400), None),
        (Size(cpus=0), None),
    ],
)
def test_impossible_sizes_are_refused_in_a_sentence(size: Size, said: str | None) -> None:
    assert packing().refusal(size) == said


def test_two_hosts_that_could_only_do_it_together_refuse() -> None:
    made = packing(Capacity(cpus=800, mem=1, disk=0), Capacity(cpus=100, mem=GIB, disk=0))
    assert made.refusal(Size(cpus=800, mem=GIB)) == "never fits: no single host has all of what was asked"


def test_nothing_is_refused_while_no_host_is_known() -> None:
    assert Packing().refusal(Size(cpus=10**9)) is None


def test_a_waiting_job_can_say_why() -> None:
    made = packing()
    made.offer(Need(Size(cpus=400)), rank=rank_of(0), jobs=[1, 2, 3])
    made.offer(Need(Size(cpus=500)), rank=rank_of(0), jobs=[4])
    place(made)
    (waits,) = made.why(Need(Size(cpus=400)), rank=rank_of(0), job=2)
    assert waits[:2] == ("resources", "waiting for room: needs 4 cpus, 0 free; it is the next in rank")
    (waits,) = made.why(Need(Size(cpus=400)), rank=rank_of(0), job=3)
    assert waits.message == "waiting for room: needs 4 cpus, 0 free; 1 job is before it"
    assert made.why(Need(Size(cpus=500)), rank=rank_of(0), job=4)[0].code == "unsatisfiable"
    made.host_usable("h1", False)
    assert made.why(Need(Size(cpus=400)), rank=rank_of(0), job=2)[0].code == "no_resources"


# ------------------------------------------------------------------ backfill


def test_a_job_that_ends_in_time_passes_and_one_that_does_not_waits() -> None:
    made = packing()
    made.offer(Need(Size(cpus=300, time_s=100.0)), rank=rank_of(0), jobs=[1])
    assert place(made, 0.0) == [1]
    made.offer(Need(Size(cpus=400)), rank=rank_of(5), jobs=[2])
    made.offer(Need(Size(cpus=100, time_s=101.0)), rank=rank_of(0), jobs=[3])
    assert place(made, 0.0) == []
    made.offer(Need(Size(cpus=100, time_s=100.0)), rank=rank_of(0), jobs=[4])
    assert place(made, 0.0) == [4]


def test_a_long_job_passes_if_the_first_leaves_room_for_it() -> None:
    made = packing()
    made.offer(Need(Size(cpus=200, time_s=100.0)), rank=rank_of(0), jobs=[1])
    place(made)
    made.offer(Need(Size(cpus=300)), rank=rank_of(5), jobs=[2])
    made.offer(Need(Size(cpus=100, time_s=10**6)), rank=rank_of(0), jobs=[3, 4])
    assert place(made) == [3]


def test_one_that_fits_nowhere_protects_nothing_and_the_next_is_protected_instead() -> None:
    made = packing()
    made.offer(Need(Size(cpus=300, time_s=100.0)), rank=rank_of(0), jobs=[1])
    place(made)
    made.offer(Need(Size(cpus=100, gpus=1)), rank=rank_of(9), jobs=[2])
    made.offer(Need(Size(cpus=400)), rank=rank_of(5), jobs=[3])
    made.offer(Need(Size(cpus=100, time_s=10**6)), rank=rank_of(0), jobs=[4])
    assert place(made) == []


@dataclass
class Simulation:
    """Jobs that take exactly the time they say, on one host."""

    made: Packing
    now: float = 0.0
    open: dict[int, tuple[float, Opened]] = field(default_factory=dict)
    started: dict[int, float] = field(default_factory=dict)

    def step(self) -> None:
        for placed in begun(self.made, self.now):
            seat = placed.seat
            assert seat is not None
            self.open[placed.job] = (self.now + seat.size.time_s, seat)
            self.started[placed.job] = self.now
            self.made.started(seat.seat, self.now)

    def run(self) -> dict[int, float]:
        self.step()
        while self.open:
            job, (self.now, seat) = min(self.open.items(), key=lambda item: (item[1][0], item[0]))
            del self.open[job]
            # Without a rate nothing is sent ahead: every job gets a seat of its own.
            self.made.released("h1", Need(seat.size), ended_at=None)
            self.made.close(seat.seat)
            self.step()
        return self.started


durations = st.integers(1, 50).map(float)
some_sizes = st.builds(Size, cpus=st.integers(0, 8).map(lambda n: n * 50), mem=st.integers(0, 8), time_s=durations)


@given(st.lists(some_sizes, max_size=8), some_sizes, st.lists(some_sizes, max_size=12))
def test_backfill_never_delays_the_first_in_rank(running: list[Size], first: Size, later: list[Size]) -> None:
    starts = []
    for others in ([], later):
        made = packing(Capacity(cpus=400, mem=8, disk=0))
        simulation = Simulation(made)
        for n, size in enumerate(running):
            made.offer(Need(size), rank=rank_of(9), jobs=[n + 1])
        simulation.step()
        if len(simulation.started) < len(running):
            return  # somebody else is first
        made.offer(Need(first), rank=rank_of(5), jobs=[100])
        for n, size in enumerate(others):
            made.offer(Need(size), rank=rank_of(0), jobs=[200 + n])
        starts.append(simulation.run()[100])
        assert len(simulation.started) == len(running) + 1 + len(others)
    assert starts[1] <= starts[0]


# ------------------------------------------------------------------ never over, against brute force

hosts = st.lists(
    st.builds(Capacity, cpus=st.integers(1, 8).map(lambda n: n * 100), mem=st.integers(0, 8), disk=st.just(9)),
    min_size=1,
    max_size=3,
)
moves = st.lists(
    st.one_of(
        st.tuples(st.just("offer"), some_sizes, st.integers(0, 2)),
        st.tuples(st.just("close"), st.integers(0, 99), st.just(0)),
        st.tuples(st.just("withdraw"), st.integers(0, 99), st.just(0)),
        st.tuples(st.just("usable"), st.integers(0, 99), st.integers(0, 1)),
    ),
    max_size=40,
)


@given(hosts, moves)
def test_it_never_exceeds_a_host_and_never_leaves_the_first_waiting_beside_room(
    capacities: list[Capacity], steps: list[tuple[str, Size | int, int]]
) -> None:
    made = packing(*capacities)
    usable = {f"h{n}": True for n in range(1, len(capacities) + 1)}
    total = dict(zip(usable, capacities, strict=True))
    waiting: dict[int, tuple[Size, int]] = {}
    seats: dict[int, tuple[str, Size]] = {}

    def free(host: str) -> tuple[int, int, int]:
        taken = [size for where, size in seats.values() if where == host]
        has = total[host]
        return (
            has.cpus - sum(size.cpus for size in taken),
            has.mem - sum(size.mem for size in taken),
            has.zero_cpu_jobs - sum(1 for size in taken if not size.cpus),
        )

    for number, (what, value, extra) in enumerate(steps, 1):
        if what == "offer":
            assert isinstance(value, Size)
            waiting[number] = (value, extra)
            made.offer(Need(value), rank=rank_of(extra), jobs=[number])
        elif what == "close" and seats:
            seat = sorted(seats)[value % len(seats)]
            host, size = seats.pop(seat)
            made.released(host, Need(size), ended_at=None)
            made.close(seat)
        elif what == "withdraw" and waiting:
            job = sorted(waiting)[value % len(waiting)]
            size, priority = waiting.pop(job)
            made.withdraw(Need(size), rank=rank_of(priority), job=job)
        elif what == "usable":
            host = sorted(usable)[value % len(usable)]
            usable[host] = bool(extra)
            made.host_usable(host, usable[host])
        for placed in begun(made, float(number)):
            if placed.seat is not None:
                seats[placed.seat.seat] = (placed.seat.host, placed.seat.size)
            assert usable[placed.host]
            del waiting[placed.job]
        for host in total:
            assert min(free(host)) >= 0
        able = {
            job: priority
            for job, (size, priority) in waiting.items()
            if any(usable[host] and size.cpus <= has.cpus and size.mem <= has.mem for host, has in total.items())
        }
        if able:
            first = min(able, key=lambda job: (-able[job], job))
            size = waiting[first][0]
            for host in total:
                cpus, mem, zero = free(host)
                fits = size.cpus <= cpus and size.mem <= mem and (size.cpus > 0 or zero > 0)
                assert not (usable[host] and fits)


# ------------------------------------------------------------------ leases ahead


def short_jobs(made: Packing, *, every_s: float, count: int = 200) -> int:
    """Jobs on one core that end after `every_s`; the most leases that were out at once."""
    size = Size(cpus=400, time_s=1.0)
    made.offer(Need(size), rank=rank_of(0), jobs=list(range(1, 2000)))
    now, most = 0.0, 0
    first = begun(made, now)
    opened = [placed.seat for placed in first if placed.seat is not None]
    leases = len(first)
    assert leases == 1
    for _each in range(count):
        now += every_s
        made.released("h1", Need(size), ended_at=now)
        leases -= 1
        if not leases:
            made.close(opened.pop().seat)
        more = begun(made, now)
        opened += [placed.seat for placed in more if placed.seat is not None]
        leases += len(more)
        most = max(most, leases)
    return most


def test_leases_are_sent_ahead_only_when_jobs_end_in_quick_succession() -> None:
    assert short_jobs(packing(), every_s=1.0) == 1
    assert 2 <= short_jobs(packing(), every_s=0.01) <= 2 + AHEAD_S / 0.01
    assert short_jobs(packing(), every_s=0.00001, count=1000) <= AHEAD_MAX + 1


def test_leases_ahead_stop_when_somebody_of_another_size_comes_first() -> None:
    made = packing()
    short_jobs(made, every_s=0.001)
    made.offer(Need(Size(cpus=200)), rank=rank_of(9), jobs=[9999])
    made.released("h1", Need(Size(cpus=400, time_s=1.0)), ended_at=0.2005)
    assert place(made, 0.2005) == []


def test_a_seat_for_a_lease_that_has_none_needs_room() -> None:
    made = packing()
    assert made.seat("h1", Size(cpus=300), 0.0) == Opened(1, "h1", Size(cpus=300))
    assert made.seat("h1", Size(cpus=300), 0.0) is None
    made.host_usable("h1", False)
    assert made.seat("h1", Size(cpus=100), 0.0) is None


# ------------------------------------------------------------------ after a restart


def test_adopted_seats_take_room_once() -> None:
    made = packing()
    made.adopt(77, "h1", Size(cpus=300))
    made.adopt(77, "h1", Size(cpus=300))
    made.adopt_lease("h1", Need(Size(cpus=300)))
    made.offer(Need(Size(cpus=200)), rank=rank_of(0), jobs=[1])
    assert place(made) == []
    made.close(77)
    made.close(77)
    assert place(made) == [1]


# ------------------------------------------------------------------ cost


def calls(work: Callable[[], object]) -> int:
    """How many calls, of Python and of C, this takes."""
    counted = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    # Whoever listens to the collector (Hypothesis does) is called at moments that depend on all that ran before.
    gc.disable()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return counted


def costs(queue: int) -> list[int]:
    """Of an end and what follows, of one more job, and of one that is withdrawn."""
    made = packing()
    size, big = Size(cpus=100), Size(cpus=400, time_s=10.0)
    made.offer(Need(big), rank=rank_of(9), jobs=[1])
    made.offer(Need(size), rank=rank_of(0), jobs=list(range(2, queue)))
    made.offer(Need(Size(cpus=50, mem=1)), rank=rank_of(0), jobs=list(range(queue, 2 * queue)))
    opened = seats(made)

    def end() -> None:
        made.released("h1", Need(big), ended_at=None)
        made.close(opened[0])
        made.place(5.0)

    return [
        calls(end),
        calls(lambda: made.offer(Need(size), rank=rank_of(0), jobs=[2 * queue])),
        calls(lambda: made.withdraw(Need(size), rank=rank_of(0), job=queue // 2)),
        calls(lambda: made.place(6.0)),
    ]


def test_the_cost_of_an_event_does_not_grow_with_the_queue() -> None:
    assert costs(100) == costs(20_000)


def test_sizes_that_are_not_used_any_more_are_forgotten() -> None:
    made = packing()
    for n in range(1, 100):
        size = Size(cpus=100, mem=n)
        made.offer(Need(size), rank=rank_of(0), jobs=[n])
        (seat,) = seats(made, float(n))
        made.released("h1", Need(size), ended_at=float(n))
        made.close(seat)
    assert place(made, 100.0) == []
    assert len(made._hosts.all["h1"].flows) <= 2
    assert not made._job_classes


def cost_of_an_end(needs: list[Need]) -> int:
    """Of a job's end and of what begins instead, with a hundred jobs of each of these needs before it."""
    made = packing()
    made.limits.declare(Limit("shared", 2))
    for number, need in enumerate(needs):
        made.offer(need, rank=rank_of(0), jobs=[number + 1 + each * len(needs) for each in range(100)])
    opened = seats(made)
    made.place(1.0)

    def end() -> None:
        made.released("h1", needs[0], ended_at=None)
        made.close(opened[0])
        made.place(5.0)

    return calls(end)


def test_the_cost_of_an_event_does_not_grow_with_the_number_of_sizes() -> None:
    def sizes(number: int) -> list[Need]:
        return [Need(Size(cpus=100, mem=each)) for each in range(1, number + 1)]

    assert cost_of_an_end(sizes(1000)) < 2 * cost_of_an_end(sizes(10))


def test_the_cost_of_an_event_does_not_grow_with_the_number_of_those_who_wait_for_a_limit() -> None:
    def groups(number: int) -> list[Need]:
        return [Need(Size(cpus=100), (LimitUse("shared"), LimitUse(f"own{each}"))) for each in range(number)]

    assert cost_of_an_end(groups(1000)) < 2 * cost_of_an_end(groups(10))
