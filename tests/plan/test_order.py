"""Who goes first: fair share, multifactor, and those who have waited too long."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.plan.ask import Ask
from rota.plan.order import Usage, karma, multifactor, order_key, rank, starves
from rota.plan.policy import FairShare, Queue

DAY = 86400.0
FAIR = FairShare()
FAIRSHARE = Queue(order="fairshare")
MULTIFACTOR = Queue(order="multifactor")


def ask(user: str = "alice", *, project: str = "", priority: int = 0) -> Ask:
    return Ask(alternatives=(), user=user, project=project, priority=priority)


def usage_of(half_life_s: float = 7 * DAY, **used: float) -> Usage:
    usage = Usage(half_life_s)
    for user, seconds in used.items():
        usage.add(user, "", seconds, seconds, 0.0)
    return usage


def test_use_counts_half_after_a_half_life() -> None:
    usage = usage_of(half_life_s=100.0, alice=80.0)
    assert usage.used("alice", 0.0) == 80.0
    assert usage.used("alice", 100.0) == 40.0
    assert usage.used("alice", 300.0) == 10.0
    assert usage.asked("alice", 100.0) == 40.0
    assert usage.used("nobody", 100.0) == 0.0


def test_old_use_weighs_less_than_the_same_use_later() -> None:
    usage = Usage(100.0)
    usage.add("alice", "p", 80.0, 80.0, 0.0)
    usage.add("bob", "q", 80.0, 80.0, 100.0)
    assert usage.used("bob", 100.0) == 80.0
    assert usage.share_used("alice") == pytest.approx(1 / 3)
    assert usage.share_of_project("q") == pytest.approx(2 / 3)


def test_a_thousand_half_lives_are_no_overflow() -> None:
    usage = usage_of(half_life_s=1.0, alice=80.0)
    usage.add("bob", "", 10.0, 10.0, 5000.0)
    assert usage.share_used("bob") == 1.0
    assert usage.used("bob", 5000.0) == 10.0
    usage.add("alice", "", 10.0, 10.0, 5000.0)
    assert usage.share_used("alice") == 0.5


def test_use_can_be_asked_for_at_a_time_long_past() -> None:
    usage = Usage(1.0)
    usage.add("alice", "", 10.0, 10.0, 1.7e9)
    assert usage.used("alice", 0.0) >= 10.0


def test_a_clock_that_begins_late_loses_nothing() -> None:
    usage = Usage(1.0)
    usage.add("alice", "", 10.0, 10.0, 1.7e9)
    usage.add("bob", "", 10.0, 10.0, 1.7e9)
    assert usage.share_used("alice") == 0.5


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.0, 1e6), st.floats(0.0, 500.0)), max_size=20))
def test_use_is_the_sum_of_what_is_left_of_each(added: list[tuple[str, float, float]]) -> None:
    usage = Usage(10.0)
    for user, seconds, at in sorted(added, key=lambda one: one[2]):
        usage.add(user, user, seconds, 2 * seconds, at)
    for user in "abc":
        left = math.fsum(seconds * 0.5 ** ((500.0 - at) / 10.0) for name, seconds, at in added if name == user)
        assert usage.used(user, 500.0) == pytest.approx(left, rel=1e-9, abs=1e-9)
        assert usage.asked(user, 500.0) == pytest.approx(2 * left, rel=1e-9, abs=1e-9)
        assert usage.used_by_project(user, 500.0) == pytest.approx(left, rel=1e-9, abs=1e-9)


def test_active_users_have_jobs_or_use() -> None:
    usage = usage_of(alice=10.0, bob=0.0)
    assert usage.active(["carol", "alice"]) == 2
    assert usage.active([]) == 1


def test_karma_is_use_and_asking_above_the_target() -> None:
    usage = Usage(7 * DAY)
    usage.add("alice", "p", 30.0, 60.0, 0.0)
    usage.add("bob", "q", 70.0, 40.0, 0.0)
    fair = FairShare(project=2.0, used=3.0, asked=5.0)
    queue = Queue(order="fairshare", shares={"alice": 0.2, "project:p": 0.1})
    found = karma(queue, ask("alice", project="p"), usage=usage, active_users=2, fair_share=fair)
    assert found == pytest.approx(2 * (0.3 - 0.1) + 3 * (0.3 - 0.2) + 5 * (0.6 - 0.2))
    found = karma(queue, ask("bob", project="q"), usage=usage, active_users=4, fair_share=fair)
    assert found == pytest.approx(2 * (0.7 - 0.25) + 3 * (0.7 - 0.25) + 5 * (0.4 - 0.25))


def test_nothing_used_of_nothing_is_nothing() -> None:
    assert karma(FAIRSHARE, ask(), usage=Usage(1.0), active_users=2, fair_share=FAIR) == -1.0
    assert karma(FAIRSHARE, ask(), usage=Usage(1.0), active_users=0, fair_share=FAIR) == -2.0


def test_five_users_go_in_order_of_their_use() -> None:
    usage = usage_of(a=500.0, b=100.0, c=400.0, d=0.0, e=200.0)
    active = usage.active("abcde")

    def key(user: str) -> float:
        asked = ask(user)
        return order_key(
            FAIRSHARE, asked, submitted=0.0, now=1.0, usage=usage, active_users=active, fair_share=FAIR
        )

    assert sorted("abcde", key=key) == ["d", "b", "e", "c", "a"]


def test_multifactor_adds_waiting_share_and_priority() -> None:
    usage = usage_of(alice=75.0, bob=25.0)
    found = multifactor(MULTIFACTOR, ask(priority=51), waited_s=3.5 * DAY, usage=usage, active_users=2)
    assert found == pytest.approx(500 + 1000 * 2**-1.5 + 20)
    assert multifactor(MULTIFACTOR, ask("new"), waited_s=70 * DAY, usage=usage, active_users=2) == 2000


def test_a_target_of_nothing_is_exceeded_by_nothing() -> None:
    queue = Queue(order="multifactor", shares={"alice": 0.0})
    assert multifactor(queue, ask(), waited_s=0.0, usage=Usage(1.0), active_users=2) == 0.0


def test_higher_multifactor_goes_first_and_fifo_does_not_care() -> None:
    usage = usage_of(alice=75.0, bob=25.0)

    def key(queue: Queue, user: str) -> float:
        return order_key(queue, ask(user), submitted=0.0, now=1.0, usage=usage, active_users=2, fair_share=FAIR)

    assert key(MULTIFACTOR, "bob") < key(MULTIFACTOR, "alice")
    assert key(Queue(), "bob") == key(Queue(), "alice") == 0.0


def test_who_waited_too_long_goes_before_all_of_the_queue() -> None:
    queue = Queue(order="fairshare", max_wait_s=100.0)
    usage = usage_of(alice=75.0, bob=25.0)

    def ranked(user: str, submitted: float, priority: int = 0, of: Queue = queue) -> tuple[float, ...]:
        asked = ask(user, priority=priority)
        return rank(of, asked, submitted=submitted, now=200.0, usage=usage, active_users=2, fair_share=FAIR)

    assert not starves(queue, submitted=100.0, now=200.0)
    assert starves(queue, submitted=99.0, now=200.0)
    assert ranked("alice", 50.0) < ranked("bob", 99.0) < ranked("bob", 150.0, priority=9) < ranked("bob", 120.0)
    assert ranked("bob", 150.0) < ranked("alice", 120.0)
    assert ranked("alice", 190.0, of=Queue(priority=3)) < ranked("alice", 50.0)
