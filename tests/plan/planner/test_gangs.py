"""Gangs in the planner: whole or not at all, in their turn, and within a bound."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.plan.ask import Ask, Member, gang_ask
from rota.plan.explain.whatif import ask_snapshot
from rota.plan.explain.why_waiting import why
from rota.plan.language.request_parser import parse_request
from rota.plan.planner.planner import Planner
from rota.plan.policy.policy import Policy, Queue
from rota.plan.site.resources import Resource, Site

HOSTS = ("A", "B", "C")
BACKFILLS = ("conservative", "easy", "easy-sjbf", "none")
PATIENCE_S = 30.0


def planner(backfill: str = "conservative") -> Planner:
    site = Site([Resource(at, {"host": host}) for at, host in enumerate(HOSTS, 1)])
    made = Planner(site, Policy(queues={"default": Queue(backfill=backfill)}))
    made.plan.gang_patience_s = PATIENCE_S
    return made


def ask(hosts: str, seconds: float = 10, priority: int = 0) -> Ask:
    where = " or ".join(f"host='{host}'" for host in hosts)
    return Ask(alternatives=(parse_request(f"{{{where}}}/host=1,walltime={seconds:g}s"),), priority=priority)


def member(job: int, hosts: str, seconds: float = 10, priority: int = 0) -> Member:
    return Member(job, ask(hosts, seconds, priority))


def begun(made: Planner, now: float) -> list[int]:
    made.tick(now)
    return [entry.id for begin in made.begin(now) for entry in begin.entries]


@pytest.mark.parametrize("backfill", BACKFILLS)
def test_two_gangs_that_want_the_same_machines_never_hold_one_each(backfill: str) -> None:
    made = planner(backfill)
    made.submit(1, ask("A"), 0.0)
    assert begun(made, 0.0) == [1]
    made.submit_gang([member(2, "A"), member(3, "B")], 1.0)
    made.submit_gang([member(4, "B", priority=5), member(5, "A", priority=5)], 2.0)
    assert begun(made, 2.0) == []
    made.ended(1, 10.0)
    assert begun(made, 10.0) == [4, 5]
    made.ended(4, 15.0)
    assert begun(made, 15.0) == []
    made.ended(5, 20.0)
    assert begun(made, 20.0) == [2, 3]


def test_the_reason_of_a_gang_names_the_missing_member_and_who_holds_its_machine() -> None:
    made = planner()
    made.submit(1, ask("A"), 0.0)
    begun(made, 0.0)
    entry = made.submit_gang([member(2, "B"), Member(3, ask("A"), "db")], 1.0)
    reason = why(made.plan, entry)[0]
    assert (reason.code, reason.blockers) == ("gang", (1,))
    assert "member db, held by job 1" in reason.message


def test_a_question_about_a_gang_is_answered_as_its_submission_would_be() -> None:
    made = planner()
    made.submit(1, ask("A"), 0.0)
    begun(made, 0.0)
    asked = gang_ask([member(0, "B"), member(0, "A")])
    answer = ask_snapshot(made.snapshot(), asked, 1.0)
    assert (answer.start, made.plan.site.spans(answer.resources)) == (10.0, "1-2")
    assert answer.reasons[0].code == "gang"


def test_a_freed_machine_goes_to_the_first_in_line_that_may_have_it() -> None:
    made = planner()
    made.submit(9, ask("A"), 0.0)
    assert begun(made, 0.0) == [9]
    made.submit(1, ask("A"), 1.0)
    made.submit(2, ask("AB"), 1.0)
    made.submit(3, ask("AB"), 1.0)
    assert begun(made, 1.0) == [2]
    made.ended(9, 5.0)
    assert begun(made, 5.0) == [1]


@pytest.mark.parametrize("backfill", ["conservative", "easy", "easy-sjbf"])
@settings(max_examples=15)
@given(lengths=st.lists(st.integers(5, 25), min_size=40, max_size=40))
def test_a_gang_begins_within_the_bound_though_small_jobs_keep_arriving(backfill: str, lengths: list[int]) -> None:
    """The bound: when its patience is over, the latest planned end on its machines; with conservative backfilling,
    which later jobs of equal rank cannot delay, its first planned start."""
    made = planner(backfill)
    left = iter(range(10, 10_000))
    ends: dict[int, float] = {}
    bound: float | None = None
    now, gang_at = 0.0, 3.0
    small = iter(lengths * 4)

    def arrive(host: str) -> None:
        made.submit(next(left), ask(host, next(small), priority=int(backfill != "conservative")), now)

    for host in ("A", "B", "A", "B"):
        arrive(host)
    submitted = False
    while now < 200.0:
        for job in [job for job, end in ends.items() if end <= now]:
            del ends[job]
            made.ended(job, now)
        if now >= gang_at and not submitted:
            entry = made.submit_gang([member(1, "A"), member(2, "B")], now)
            submitted = True
            bound = entry.start
        if now % 5 == 0:
            arrive("A")
            arrive("B")
        if backfill != "conservative" and now == gang_at + PATIENCE_S:
            bound = max(ends.values(), default=now)
        for job in begun(made, now):
            if job in (1, 2):
                assert bound is not None
                assert now <= bound
                assert not set(ends) - {1}, "both machines are its own"
                if job == 2:
                    return
            entry = made.plan.entries[job]
            assert entry.end is not None
            ends[job] = entry.end
        now += 1.0
    pytest.fail("it waits for ever")


def test_with_strict_fcfs_nobody_passes_a_gang_that_has_a_reservation() -> None:
    made = planner("none")
    made.submit(1, ask("A", 1000), 0.0)
    assert begun(made, 0.0) == [1]
    made.submit_gang([member(2, "A"), member(3, "B")], 1.0)
    made.submit(4, ask("C"), 2.0)
    for now in (2.0, 1.0 + PATIENCE_S, 100.0):
        assert begun(made, now) == []
    made.ended(1, 200.0)
    assert sorted(begun(made, 200.0)) == [2, 3, 4]
