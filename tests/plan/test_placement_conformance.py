"""What every placement must do, part by part; the planner's own and the simplest one pass the same cases."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.attempts.vacate_times import VacateTimes
from rota.plan.ask import ask_of
from rota.plan.dispatch.planning import Planning
from rota.plan.need import LimitUse
from rota.plan.placement.decisions import Decision, Placed
from rota.plan.placement.facts import Lacks, Rules
from rota.plan.placement.hosts import AWAY, Condition
from rota.plan.placement.leases import Held
from rota.plan.placement.placement import Placement
from rota.plan.placement.queue import GangOffer, rank_of
from rota.plan.policy.decay import Usage
from rota.plan.policy.limits import Limit
from rota.plan.policy.policy import Policy
from rota.plan.site.resources import Resource, Site
from rota.plan.size import CORE, Capacity, Size
from tests.plan.entrants import Asked, Job, offer_of
from tests.plan.first_come import FirstCome

TWO = Capacity(cpus=2 * CORE, mem=1 << 30, disk=1 << 30)
PLAIN = Asked(size=Size(cpus=CORE))
GANG_MEMBER = Asked(size=Size(cpus=CORE), request=("host=1/core=1",))
SITE = Site([Resource(id, {"host": f"h{(id + 1) // 2}"}) for id in range(1, 5)])


class Driver:
    """A placement with two hosts of two cores, told what it lacks before every decision."""

    def __init__(self, make: Callable[[], Placement]) -> None:
        self.placement = make()
        self.jobs: dict[int, Job] = {}
        self.placement.entrants = self.jobs
        self.now = 0.0
        self.running: dict[int, Placed] = {}
        self.decided: list[Decision] = []  #: by the last `place`
        for host in ("h1", "h2"):
            self.placement.host_known(host, TWO)
            self.placement.host_condition(host, Condition())

    def offer(self, *jobs: int, asked: Asked = PLAIN) -> None:
        self.jobs.update(dict.fromkeys(jobs, Job(asked)))
        self.placement.offer(offer_of(asked, *jobs))

    def offer_gang(self, *jobs: int) -> None:
        """Members that ask for one core each, of different hosts."""
        for job in jobs:
            self.jobs[job] = Job(GANG_MEMBER, spec_id=job)
        members = tuple(offer_of(GANG_MEMBER, job, spec_id=job) for job in jobs)
        self.placement.offer_gang(GangOffer(min(jobs), members))

    def withdraw_gang(self, *jobs: int) -> None:
        for job in jobs:
            del self.jobs[job]
        self.placement.withdraw_gang(min(jobs))

    def withdraw(self, job: int) -> None:
        gone = self.jobs.pop(job)
        self.placement.withdraw(gone.need, rank_of(gone.spec.priority), job)

    def tell(self, *, anew: bool = False) -> None:
        while lacks := self.placement.lacks(self.now, anew=anew):
            if lacks & Lacks.VERDICT:
                self.placement.tell_verdict(False)
            if lacks & Lacks.RULES:
                self.placement.tell_rules(Rules(SITE, Policy(), Usage(1.0), None, 300.0, {}, VacateTimes()))
            if lacks & Lacks.LEASES:
                self.placement.tell_leases(self.leases())

    def leases(self) -> list[Held]:
        return [
            Held(job, its.host, 0.0, ask_of(self.jobs[job].spec, self.jobs[job].need.size), 0.0, "")
            for job, its in self.running.items()
        ]

    def place(self) -> list[int]:
        self.now += 1.0
        self.tell()
        self.decided = self.placement.place(self.now, self.now)
        begun = [placed for decision in self.decided for placed in decision]
        for placed in begun:
            assert placed.job not in self.running, "it begins twice"
            self.running[placed.job] = placed
        return [placed.job for placed in begun]

    def end(self, job: int) -> None:
        placed, its = self.running.pop(job), self.jobs.pop(job)
        self.placement.released(placed.host, its.need, job=job, ended_at=None)
        assert placed.seat is not None
        self.placement.close(placed.seat.seat)

    def waiting(self) -> set[int]:
        return {job for each in self.placement.waiting() for job in each.jobs if job not in each.gone}


@pytest.fixture(params=[Planning, FirstCome])
def driver(request: pytest.FixtureRequest) -> Driver:
    return Driver(request.param)


# ------------------------------------------------------------------ queue


def test_jobs_begin_by_rank_then_age(driver: Driver) -> None:
    driver.offer(4, 5)
    driver.offer(2, 3)
    driver.offer(6, asked=Asked(size=Size(cpus=CORE), priority=9))
    assert driver.place() == [6, 2, 3, 4]


def test_a_withdrawn_job_never_begins_unless_it_is_offered_again(driver: Driver) -> None:
    driver.offer(1, 2)
    driver.withdraw(1)
    assert driver.place() == [2]
    driver.offer(1)
    assert driver.place() == [1]


def test_waiting_jobs_and_the_limits_they_use_are_counted(driver: Driver) -> None:
    asked = Asked(size=Size(cpus=CORE), limits=(LimitUse("a"),))
    driver.offer(1, 2, asked=asked)
    driver.offer(3)
    assert driver.placement.wanting() == {"a": 2}
    assert sum(driver.placement.demand().values()) == 3


def test_a_limit_is_never_exceeded_and_opens_when_a_job_ends(driver: Driver) -> None:
    driver.placement.limits.declare(Limit("a", 1))
    driver.placement.limit_changed("a")
    driver.offer(1, 2, asked=Asked(size=Size(cpus=CORE), limits=(LimitUse("a"),)))
    assert driver.place() == [1]
    assert driver.place() == []
    driver.end(1)
    assert driver.place() == [2]


def test_units_are_kept_between_two_attempts_until_they_are_let_go(driver: Driver) -> None:
    driver.placement.limits.declare(Limit("a", 1))
    driver.placement.limit_changed("a")
    asked = Asked(size=Size(cpus=CORE), limits=(LimitUse("a"),))
    driver.offer(1, 2, asked=asked)
    assert driver.place() == [1]
    driver.end(1)
    assert driver.placement.hold(1, asked.limits) == ()
    assert driver.place() == [], "the units are still those of job 1"
    driver.offer(1, asked=PLAIN)
    assert driver.place() == [1], "it has its units, and needs no others"
    driver.end(1)
    driver.placement.let_go(1)
    assert driver.place() == [2]


def test_units_can_be_kept_again_after_a_restart_before_the_job_is_offered(driver: Driver) -> None:
    uses = (LimitUse("a"),)
    assert driver.placement.hold(1, uses) == (), "not even the limit is declared yet"
    driver.placement.limits.declare(Limit("a", 1))
    driver.placement.limit_changed("a")
    driver.offer(2, asked=Asked(size=Size(cpus=CORE), limits=uses))
    assert driver.place() == []
    driver.offer(1, asked=PLAIN)
    assert driver.place() == [1]
    driver.end(1)
    driver.placement.let_go(1)
    assert driver.place() == [2]


def test_exclusive_interest_lets_nobody_else_begin_and_waits_for_those_who_run(driver: Driver) -> None:
    driver.placement.limits.declare(Limit("a", None))
    driver.placement.limit_changed("a")
    shared = Asked(size=Size(cpus=CORE), limits=(LimitUse("a"),), priority=9)
    driver.offer(1, 2, asked=shared)
    assert driver.place() == [1, 2]
    driver.placement.shut("a", 3)
    driver.offer(4, asked=shared)
    driver.offer(3, asked=Asked(size=Size(cpus=CORE), limits=(LimitUse("a", exclusive=True),)))
    assert driver.place() == [], "not even one of better rank"
    driver.end(1)
    assert driver.place() == []
    driver.end(2)
    assert driver.place() == [3]
    assert driver.place() == []
    driver.end(3)
    driver.placement.reopen("a", 3)
    assert driver.place() == [4]


# ------------------------------------------------------------------ gangs


def test_the_members_of_a_gang_begin_in_one_decision_on_different_hosts(driver: Driver) -> None:
    driver.offer_gang(5, 4)
    assert driver.place() == [5, 4]
    assert [[placed.job for placed in decision] for decision in driver.decided] == [[5, 4]]
    assert len({placed.host for placed in driver.running.values()}) == 2


def test_a_gang_holds_nothing_until_it_has_all(driver: Driver) -> None:
    driver.offer(1, 2)
    assert driver.place() == [1, 2]
    assert {placed.host for placed in driver.running.values()} == {"h1"}
    driver.offer_gang(3, 4)
    assert driver.place() == []
    assert driver.waiting() == {3, 4}
    driver.end(1)
    assert driver.place() == [3, 4]
    driver.end(3)
    driver.end(4)
    assert driver.place() == []


def test_a_gang_that_was_withdrawn_never_begins_unless_it_is_offered_again(driver: Driver) -> None:
    driver.offer(1, 2)
    driver.place()
    driver.offer_gang(3, 4)
    assert driver.place() == []
    driver.withdraw_gang(3, 4)
    driver.end(1)
    assert driver.place() == []
    assert driver.waiting() == set()
    driver.offer_gang(3, 4)
    assert driver.place() == [3, 4]


# ------------------------------------------------------------------ hosts


@pytest.mark.parametrize("condition", [AWAY, Condition(automated=False), Condition(draining=True)])
def test_nothing_begins_on_a_machine_in_another_condition(driver: Driver, condition: Condition) -> None:
    driver.placement.host_condition("h1", condition)
    driver.offer(1, 2, 3)
    assert driver.place() == [1, 2]
    assert {placed.host for placed in driver.running.values()} == {"h2"}
    assert driver.placement.capacities() == [TWO]
    driver.placement.host_condition("h1", Condition())
    assert driver.place() == [3]


def test_a_closed_seat_is_room_for_the_next(driver: Driver) -> None:
    driver.offer(1, 2, 3, 4, 5)
    assert driver.place() == [1, 2, 3, 4]
    assert driver.place() == []
    driver.end(2)
    assert driver.place() == [5]


def test_seats_and_leases_from_before_a_restart_take_room(driver: Driver) -> None:
    need = Job(PLAIN).need
    for seat, host in ((901, "h1"), (902, "h1"), (903, "h2")):
        driver.placement.adopt_lease(host, need)
        driver.placement.adopt(seat, host, need.size)
    driver.offer(1, 2)
    assert driver.place() == [1]
    assert driver.placement.seat("h1", need.size, driver.now) is None


def test_what_no_host_could_ever_run_is_refused(driver: Driver) -> None:
    assert driver.placement.refusal(Size(cpus=2 * CORE)) is None
    assert "never fits" in (driver.placement.refusal(Size(cpus=99 * CORE)) or "")


def test_a_host_that_is_gone_gets_nothing(driver: Driver) -> None:
    driver.placement.host_gone("h2")
    driver.offer(1, 2, 3)
    assert driver.place() == [1, 2]


# ------------------------------------------------------------------ decisions


def test_a_decision_names_its_host_and_a_seat_of_the_job_there(driver: Driver) -> None:
    driver.offer(1, 2, 3)
    driver.place()
    seats = [placed.seat for placed in driver.running.values()]
    assert all(seat is not None and seat.size == PLAIN.size for seat in seats)
    assert len({seat.seat for seat in seats if seat is not None}) == 3
    for placed in driver.running.values():
        assert placed.seat is not None
        assert placed.hosts == (placed.host,) == (placed.seat.host,)


def test_it_says_what_it_lacks_until_it_is_told(driver: Driver) -> None:
    driver.placement.site_changed()
    driver.tell()
    assert driver.placement.lacks(driver.now) == Lacks.NOTHING
    driver.tell(anew=True)
    assert driver.placement.lacks(driver.now, anew=True) == Lacks.NOTHING
    driver.offer(1)
    assert driver.place() == [1]


def test_news_is_told_once(driver: Driver) -> None:
    driver.placement.take_news()
    assert not driver.placement.has_news
    assert not any(driver.placement.take_news())


# ------------------------------------------------------------------ explanation


def test_every_waiting_job_has_a_reason_and_is_listed(driver: Driver) -> None:
    driver.offer(1, 2, 3, 4, 5, 6)
    driver.place()
    assert driver.waiting() == {5, 6}
    for job in (5, 6):
        assert driver.placement.why(driver.jobs[job].need, rank_of(0), job)
        assert driver.placement.planned(job) is None
    assert driver.placement.broken([]) == []
    assert driver.placement.next_starts(["h1"]) == {}


def test_a_plan_to_ask_is_made_without_changing_anything(driver: Driver) -> None:
    driver.offer(1, 2, 3, 4, 5)
    driver.place()
    driver.tell(anew=True)
    assert driver.placement.outlook(driver.now).behind >= 0
    driver.end(1)
    assert driver.place() == [5]


# ------------------------------------------------------------------ all together

steps = st.lists(
    st.one_of(
        st.tuples(st.just("offer"), st.integers(1, 4), st.sampled_from([0, 0, 5])),
        st.tuples(st.just("withdraw"), st.integers(0, 50)),
        st.tuples(st.just("end"), st.integers(0, 50)),
        st.tuples(st.just("condition"), st.sampled_from(["h1", "h2"]), st.booleans()),
    ),
    max_size=40,
)


@pytest.mark.parametrize("make", [Planning, FirstCome])
@given(history=steps)
def test_no_core_is_given_twice_and_none_is_idle_while_a_job_waits(
    make: Callable[[], Placement], history: list[tuple[object, ...]]
) -> None:
    driver, ids = Driver(make), count(1)
    usable = {"h1": True, "h2": True}
    for step in history:
        waiting = sorted(driver.waiting())
        match step:
            case ("offer", int(number), int(priority)):
                jobs = [next(ids) for _ in range(number)]
                driver.offer(*jobs, asked=Asked(size=Size(cpus=CORE), priority=priority))
            case ("withdraw", int(pick)) if waiting:
                driver.withdraw(waiting[pick % len(waiting)])
            case ("end", int(pick)) if driver.running:
                driver.end(sorted(driver.running)[pick % len(driver.running)])
            case ("condition", str(host), bool(good)):
                usable[host] = good
                driver.placement.host_condition(host, Condition() if good else AWAY)
            case _:
                continue
        for job in driver.place():
            assert usable[driver.running[job].host]
        taken = [placed.host for placed in driver.running.values()]
        assert all(taken.count(host) <= 2 for host in usable)
        assert driver.waiting() == driver.jobs.keys() - driver.running.keys()
        if driver.waiting():
            assert all(taken.count(host) == 2 for host, good in usable.items() if good)
