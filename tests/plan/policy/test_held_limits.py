"""Units that are kept between two attempts, and limits that are shut by exclusive interest."""

from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from rota.plan.need import LimitUse, Need
from rota.plan.packing.packing import Packing
from rota.plan.packing.packing_reasons import limit_reasons
from rota.plan.placement.decisions import Placed
from rota.plan.placement.queue import rank_of
from rota.plan.policy.limits import Limit, Limits
from rota.plan.size import Capacity, Size

SHARED, ALONE = LimitUse("a"), LimitUse("a", exclusive=True)
CORE = Size(cpus=100)


def test_units_of_hosts_are_not_kept_because_the_next_attempt_may_begin_elsewhere() -> None:
    limits = Limits()
    limits.declare(Limit("a", 2))
    limits.declare(Limit("disk", hosts=(("h1", 1),)))
    uses = (SHARED, LimitUse("disk"))
    assert limits.hold(7, uses) == (LimitUse("disk"),)
    assert limits.held(7) == (SHARED,)
    assert (limits.use("a"), limits.use("disk", "h1")) == ((1, False), (0, False))
    limits.hold(7, uses)
    assert limits.use("a") == (1, False), "once is enough"
    assert limits.let_go(7) == (SHARED,)
    assert limits.let_go(7) == ()
    assert limits.use("a") == (0, False)


def test_a_limit_is_shut_until_the_last_who_wants_it_alone_has_gone() -> None:
    limits = Limits()
    limits.declare(Limit("a", 5))
    limits.shut("a", 1)
    limits.shut("a", 2)
    assert limits.missing((SHARED,), "h1") == ["a"]
    assert limits.missing((ALONE,), "h1") == []
    assert limits.fitting((SHARED,)) == 0
    (waits,) = limit_reasons(limits, (SHARED,), ["h1"])
    assert waits.message == "limit 'a' is kept free for a job that wants it alone"
    assert not limits.reopen("a", 1)
    assert limits.is_shut("a")
    assert limits.reopen("a", 2)
    assert not limits.reopen("a", 2)
    assert limits.missing((SHARED,), "h1") == []


class Users:
    """Jobs that share a limit of three units on a host with room for six, are tried again, or want it alone."""

    def __init__(self) -> None:
        self.made = Packing()
        self.made.host_known("h1", Capacity(cpus=600, mem=0, disk=0))
        self.made.host_usable("h1", True)
        self.made.limits.declare(Limit("a", 3))
        self.made.limit_changed("a")
        self.uses: dict[int, LimitUse] = {}
        self.needs: dict[int, Need] = {}
        self.running: dict[int, Placed] = {}
        self.between: set[int] = set()  #: jobs between two attempts
        self.interested: set[int] = set()
        self.now = 0.0

    def offer(self, job: int, use: LimitUse, limits: tuple[LimitUse, ...]) -> None:
        self.uses[job], self.needs[job] = use, Need(CORE, limits)
        self.made.offer(self.needs[job], rank_of(0), [job])

    def end(self, job: int, *, again: bool) -> None:
        placed = self.running.pop(job)
        self.made.released("h1", self.needs[job], ended_at=None)
        assert placed.seat is not None
        self.made.close(placed.seat.seat)
        if again:
            assert self.made.hold(job, (self.uses[job],)) == ()
            self.between.add(job)
            return
        self.made.let_go(job)
        if job in self.interested:
            self.interested.discard(job)
            self.made.reopen("a", job)

    def retry(self, job: int) -> None:
        self.between.discard(job)
        self.offer(job, self.uses[job], ())

    def place(self) -> None:
        self.now += 1.0
        holders = {*self.running, *self.between, *(job for job, need in self.needs.items() if not need.limits)}
        for (placed,) in self.made.place(self.now):
            first = bool(self.needs[placed.job].limits)
            assert not (first and self.interested and not self.uses[placed.job].exclusive), "the gate is shut"
            if first and self.uses[placed.job].exclusive:
                assert not holders & self.alive() - {placed.job}, "it is not alone"
            self.running[placed.job] = placed
        using = {*self.running, *self.between, *self.made.limits._held}
        assert self.made.limits.use("a")[0] == len(using) <= 3

    def alive(self) -> set[int]:
        return {*self.running, *self.between, *self.made.limits._held}


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["share", "share", "alone", "end", "again", "retry"]), st.integers(0, 99)),
        max_size=40,
    )
)
def test_units_are_never_exceeded_the_gate_holds_and_everyone_has_a_turn(steps: list[tuple[str, int]]) -> None:
    users, ids = Users(), count(1)
    for step, pick in steps:
        running, between = sorted(users.running), sorted(users.between)
        if step == "share":
            users.offer(next(ids), SHARED, (SHARED,))
        elif step == "alone":
            job = next(ids)
            users.interested.add(job)
            users.made.shut("a", job)
            users.offer(job, ALONE, (ALONE,))
        elif step in ("end", "again") and running:
            users.end(running[pick % len(running)], again=step == "again")
        elif step == "retry" and between:
            users.retry(between[pick % len(between)])
        users.place()
    for _round in range(len(users.uses) * 2 + 2):
        for job in sorted(users.between):
            users.retry(job)
        for job in sorted(users.running):
            users.end(job, again=False)
        users.place()
    assert not users.made.waiting()
    assert users.made.limits.use("a") == (0, False)
