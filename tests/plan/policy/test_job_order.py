"""Who goes first: fair share, multifactor, and those who have waited too long."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.plan.ask import Ask
from rota.plan.policy.decay import Usage
from rota.plan.policy.fair_share import Targets, karma, multifactor, share_targets
from rota.plan.policy.job_order import order_key, rank, starves
from rota.plan.policy.policy import FairShare, Queue
from rota.plan.policy.usage_history import DAY_S, HOUR_S, History

DAY = DAY_S
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
    assert usage.active([("carol", ""), ("alice", "")]) == {("carol", ""), ("alice", "")}
    assert usage.active([]) == {("alice", "")}
    usage.add("eve", "", 1e9, 1e9, 0.0)
    assert usage.active() == {("eve", "")}, "a millionth of all use is a trace"


def test_karma_is_use_and_asking_above_the_target() -> None:
    usage = Usage(7 * DAY)
    usage.add("alice", "p", 30.0, 60.0, 0.0)
    usage.add("bob", "q", 70.0, 40.0, 0.0)
    fair = FairShare(project=2.0, used=3.0, asked=5.0)
    targets = Targets(Queue(order="fairshare", shares={"alice": 0.2, "project:p": 0.1}), usage.active())
    found = karma(ask("alice", project="p"), usage=usage, targets=targets, fair_share=fair)
    assert found == pytest.approx(2 * (0.3 - 0.1) + 3 * (0.3 - 0.2) + 5 * (0.6 - 0.2))
    found = karma(ask("bob", project="q"), usage=usage, targets=targets, fair_share=fair)
    assert found == pytest.approx(2 * (0.7 - 0.9) + 3 * (0.7 - 0.9) + 5 * (0.4 - 0.9)), "the rest is for q"


def test_without_shares_of_projects_everybody_should_have_the_same() -> None:
    usage = Usage(7 * DAY)
    usage.add("alice", "p", 30.0, 60.0, 0.0)
    usage.add("bob", "q", 70.0, 40.0, 0.0)
    targets = Targets(Queue(order="fairshare", shares={"alice": 0.2}), usage.active([("carol", ""), ("eve", "")]))
    assert karma(ask("alice", project="p"), usage=usage, targets=targets, fair_share=FAIR) == pytest.approx(
        0.3 - 0.2 + 0.6 - 0.2
    )
    assert karma(ask("bob", project="q"), usage=usage, targets=targets, fair_share=FAIR) == pytest.approx(
        0.7 - 0.25 + 0.4 - 0.25
    )


def test_a_project_counts_by_itself_only_where_projects_have_shares() -> None:
    def weight(fair: FairShare, **shares: float) -> float:
        targets = Targets(Queue(shares={name.replace("_", ":"): share for name, share in shares.items()}), ())
        return share_targets(("ann", "x"), usage=Usage(1.0), targets=targets, fair_share=fair)[0].weight

    assert weight(FAIR) == weight(FAIR, ann=0.5) == 0.0
    assert weight(FAIR, project_x=0.5) == 1.0
    assert weight(FairShare(project=0.0), project_x=0.5) == 0.0
    assert weight(FairShare(project=3.0)) == 3.0


@given(
    st.dictionaries(st.sampled_from("pqrs"), st.integers(1, 100), min_size=1),
    st.sets(st.tuples(st.sampled_from("abcdef"), st.sampled_from("pqrst")), min_size=1),
)
def test_the_targets_of_the_users_of_projects_with_shares_add_up(
    weights: dict[str, int], crowd: set[tuple[str, str]]
) -> None:
    whole = sum(weights.values())
    shares = {f"project:{name}": weight / whole for name, weight in weights.items()}
    targets = Targets(Queue(shares=shares), crowd)
    active = {project for _user, project in crowd}
    expected = sum(targets.project(name) for name in active)
    assert sum(targets.user(user, "") for user in {user for user, _ in crowd}) == pytest.approx(expected)
    assert expected <= 1 + 1e-9


def test_shares_of_projects_that_are_more_than_all_are_parts_of_their_sum() -> None:
    targets = Targets(Queue(shares={"project:p": 1.0, "project:q": 0.5}), [("a", "p"), ("b", "q"), ("c", "r")])
    assert targets.project("p") == pytest.approx(2 / 3)
    assert targets.project("q") == pytest.approx(1 / 3)
    assert targets.project("r") == 0.0


def test_what_is_older_than_the_window_does_not_count() -> None:
    usage = Usage(7 * DAY, window_s=DAY)
    usage.add("alice", "", 80.0, 80.0, 0.0)
    usage.add("bob", "", 80.0, 80.0, DAY)
    usage.look(1.1 * DAY)
    assert usage.share_used("bob") == 1.0
    assert usage.used("alice", 1.1 * DAY) == 0.0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(1.0, 1e6), st.floats(0.0, 60 * DAY)), max_size=20))
def test_a_history_comes_to_what_was_added_whatever_is_set_later(added: list[tuple[str, float, float]]) -> None:
    now, half_life_s = 60 * DAY, 30 * DAY
    history = History()
    for user, seconds, at in added:
        history.add((user, "p"), seconds, 2 * seconds, at)
    usage = Usage.of(history, now, half_life_s=half_life_s, window_s=None)
    for user in "abc":
        left = math.fsum(
            seconds * 0.5 ** ((now - at) / half_life_s) for name, seconds, at in added if name == user
        )
        assert usage.used(user, now) == pytest.approx(left, rel=0.1), "what is old is known to a week"
    whole = Usage.of(history, now, half_life_s=1e15, window_s=None)
    assert whole.used_by_project("p", now) == pytest.approx(math.fsum(seconds for _, seconds, _ in added))


def test_a_history_of_long_ago_is_forgotten_and_takes_little_room() -> None:
    history = History()
    for hour in range(3 * 365 * 24):
        history.add(("a", "p"), 1.0, 1.0, hour * HOUR_S)
        if hour % 5000 == 0:
            list(history.all(hour * HOUR_S))
    kept = list(history.all(3 * 365 * DAY))
    assert len(kept) < 24 * 4 + 36 + 60
    assert sum(each.used for each in kept) == pytest.approx(400 * 24, rel=0.02)


def test_holding_resources_for_long_fades_as_it_is_held() -> None:
    at_once, by_and_by = Usage(100.0), Usage(100.0)
    at_once.charge(("a", ""), 4, 0.0, 500.0)
    for second in range(500):
        by_and_by.charge(("a", ""), 4, second, second + 1.0)
    assert at_once.used("a", 500.0) == pytest.approx(by_and_by.used("a", 500.0))
    assert at_once.used("a", 500.0) < 4 * 500.0


def test_nothing_used_of_nothing_is_nothing() -> None:
    two = Targets(FAIRSHARE, [("alice", ""), ("bob", "")])
    assert karma(ask(), usage=Usage(1.0), targets=two, fair_share=FAIR) == -1.0
    assert karma(ask(), usage=Usage(1.0), targets=Targets(FAIRSHARE, []), fair_share=FAIR) == -2.0


def test_five_users_go_in_order_of_their_use() -> None:
    usage = usage_of(a=500.0, b=100.0, c=400.0, d=0.0, e=200.0)
    targets = Targets(FAIRSHARE, usage.active((user, "") for user in "abcde"))

    def key(user: str) -> float:
        asked = ask(user)
        return order_key(FAIRSHARE, asked, submitted=0.0, now=1.0, usage=usage, targets=targets, fair_share=FAIR)

    assert sorted("abcde", key=key) == ["d", "b", "e", "c", "a"]


def test_multifactor_adds_waiting_share_and_priority() -> None:
    usage = usage_of(alice=75.0, bob=25.0)
    targets = Targets(MULTIFACTOR, usage.active())
    found = multifactor(ask(priority=51), waited_s=3.5 * DAY, usage=usage, targets=targets, fair_share=FAIR)
    assert found == pytest.approx(500 + 1000 * 2**-1.5 + 20)
    assert multifactor(ask("new"), waited_s=70 * DAY, usage=usage, targets=targets, fair_share=FAIR) == 2000


def test_multifactor_weighs_the_share_of_a_project_where_projects_have_some() -> None:
    usage = Usage(7 * DAY)
    usage.add("ann", "p", 50.0, 50.0, 0.0)
    usage.add("bob", "q", 50.0, 50.0, 0.0)
    targets = Targets(Queue(order="multifactor", shares={"project:p": 0.75, "project:q": 0.25}), usage.active())

    def factor(user: str, project: str) -> float:
        asked = ask(user, project=project)
        return multifactor(asked, waited_s=0.0, usage=usage, targets=targets, fair_share=FAIR)

    assert factor("ann", "p") > factor("bob", "q")


def test_a_target_of_nothing_is_exceeded_by_nothing() -> None:
    queue = Queue(order="multifactor", shares={"alice": 0.0})
    targets = Targets(queue, [("alice", "")])
    assert multifactor(ask(), waited_s=0.0, usage=Usage(1.0), targets=targets, fair_share=FAIR) == 0.0


def test_higher_multifactor_goes_first_and_fifo_does_not_care() -> None:
    usage = usage_of(alice=75.0, bob=25.0)

    def key(queue: Queue, user: str) -> float:
        targets = None if queue.order == "fifo" else Targets(queue, usage.active())
        return order_key(queue, ask(user), submitted=0.0, now=1.0, usage=usage, targets=targets, fair_share=FAIR)

    assert key(MULTIFACTOR, "bob") < key(MULTIFACTOR, "alice")
    assert key(Queue(), "bob") == key(Queue(), "alice") == 0.0


def test_who_waited_too_long_goes_before_all_of_the_queue() -> None:
    queue = Queue(order="fairshare", max_wait_s=100.0)
    usage = usage_of(alice=75.0, bob=25.0)

    def ranked(user: str, submitted: float, priority: int = 0, of: Queue = queue) -> tuple[float, ...]:
        asked = ask(user, priority=priority)
        targets = None if of.order == "fifo" else Targets(of, usage.active())
        return rank(of, asked, submitted=submitted, now=200.0, usage=usage, targets=targets, fair_share=FAIR)

    assert not starves(queue, submitted=100.0, now=200.0)
    assert starves(queue, submitted=99.0, now=200.0)
    assert ranked("alice", 50.0) < ranked("bob", 99.0) < ranked("bob", 150.0, priority=9) < ranked("bob", 120.0)
    assert ranked("bob", 150.0) < ranked("alice", 120.0)
    assert ranked("alice", 190.0, of=Queue(priority=3)) < ranked("alice", 50.0)
