"""Suspended jobs in the plan: who may have their cores, what they keep, and how they come back."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.plan.explain.why_waiting import why
from rota.plan.planner import backfill
from rota.plan.planner.planner import Planner
from rota.plan.policy.policy import Policy, Queue
from rota.plan.policy.quotas import Quotas
from rota.plan.schedule.plan_entry import RUNNING, SUSPENDED, WAITING, PlanEntry
from tests.plan.planner.test_planner_cases import ask, site, starts


def begun(planner: Planner, now: float) -> list[int]:
    return [begin.entry.id for begin in planner.begin(now)]


def resume(planner: Planner, id: int, now: float, left_s: float) -> None:
    planner.resume(id, now, left_s=left_s, submitted=0.0, serial=id)


def test_others_run_on_the_cores_of_a_suspended_job_at_once() -> None:
    planner = Planner(site(4), Policy())
    planner.submit(1, ask(4, 100), 0)
    assert begun(planner, 0) == [1]
    planner.submit(2, ask(4, 50), 10)
    assert starts(planner)[2] == 100
    planner.suspend(1, 20, left_s=80)
    assert begun(planner, 20) == [2]
    assert planner.plan.entries[1].state == SUSPENDED


def test_who_resumes_waits_for_exactly_its_cores_and_has_the_time_that_it_had_left() -> None:
    planner = Planner(site(4), Policy())
    planner.submit(1, ask(2, 100), 0)
    planner.submit(2, ask(2, 100), 0)
    begun(planner, 0)
    had = planner.plan.entries[2].resources
    planner.suspend(2, 30, left_s=70)
    planner.submit(3, ask(1, 60), 30)
    assert begun(planner, 30) == [3]
    assert planner.plan.entries[3].resources & had
    planner.ended(1, 40)
    resume(planner, 2, 40, left_s=70)
    assert starts(planner)[2] == 90, "two other cores are free: those are not its own"
    planner.ended(3, 50)
    assert begun(planner, 50) == [2]
    entry = planner.plan.entries[2]
    assert (entry.state, entry.resources, entry.start, entry.end) == (RUNNING, had, 50, 120)


def test_a_resuming_job_stands_in_line_by_its_rank() -> None:
    planner = Planner(site(2), Policy())
    planner.submit(1, ask(2, 100), 0)
    begun(planner, 0)
    planner.suspend(1, 10, left_s=90)
    planner.submit(2, ask(2, 50), 10)
    begun(planner, 10)
    planner.submit(3, ask(2, 50), 20)
    planner.submit(4, ask(2, 50, priority=9), 20)
    resume(planner, 1, 30, left_s=90)
    assert starts(planner) == {2: 10, 4: 60, 1: 110, 3: 200}


def test_a_suspended_job_keeps_its_memory() -> None:
    planner = Planner(site(4, mem=100), Policy())
    planner.submit(1, ask(1, 100, mem=80), 0)
    begun(planner, 0)
    planner.suspend(1, 10, left_s=90)
    planner.submit(2, ask(1, 50, mem=30), 10)
    planner.submit(3, ask(1, 50, mem=20), 10)
    assert begun(planner, 10) == [3]
    assert starts(planner)[2] == 100, "as long as it is expected to be there"
    planner.tick(100)
    assert (starts(planner)[2] or 0) > 100, "it was not: the plan moves"
    planner.ended(1, 110)
    assert begun(planner, 110) == [2]


def test_memory_is_kept_until_the_end_of_who_resumes_later() -> None:
    planner = Planner(site(2, mem=100), Policy())
    planner.submit(1, ask(1, 100, mem=80), 0)
    begun(planner, 0)
    planner.suspend(1, 10, left_s=90)
    planner.submit(2, ask(2, 500), 10)
    begun(planner, 10)
    resume(planner, 1, 20, left_s=90)
    assert starts(planner)[1] == 510
    planner.submit(3, ask(1, 10, mem=50), 20)
    assert starts(planner)[3] == 600


def test_limits_of_the_site_stay_taken() -> None:
    from rota.plan.need import LimitUse

    planner = Planner(site(4), Policy(), limits={"disks": 1})
    planner.submit(1, ask(1, 100, limits=(LimitUse("disks"),)), 0)
    begun(planner, 0)
    planner.suspend(1, 10, left_s=90)
    planner.submit(2, ask(1, 50, limits=(LimitUse("disks"),)), 10)
    assert begun(planner, 10) == []
    resume(planner, 1, 20, left_s=90)
    assert begun(planner, 20) == [1]
    assert starts(planner)[2] == 110


def test_a_suspended_job_gives_its_quota_back_and_takes_it_again() -> None:
    rules = {"*,*,*,/": (2, -1, -1)}
    planner = Planner(site(4), Policy(), quotas=Quotas(rules, total=4))
    planner.submit(1, ask(2, 100, user="ann"), 0)
    begun(planner, 0)
    planner.submit(2, ask(2, 50, user="ann"), 10)
    assert begun(planner, 10) == []
    planner.suspend(1, 20, left_s=80)
    assert begun(planner, 20) == [2]
    resume(planner, 1, 30, left_s=80)
    assert starts(planner)[1] == 70


def test_besteffort_jobs_on_its_cores_end_for_who_resumes() -> None:
    planner = Planner(site(2), Policy(queues={"besteffort": Queue(priority=0)}))
    planner.submit(1, ask(2, 100), 0)
    begun(planner, 0)
    planner.suspend(1, 10, left_s=90)
    planner.submit(2, ask(1, 500, besteffort=True, queue="besteffort"), 10)
    assert begun(planner, 10) == [2]
    resume(planner, 1, 20, left_s=90)
    (begin,) = planner.begin(20)
    assert (begin.entry.id, begin.victims) == (1, [2])


def test_a_resume_can_be_taken_back() -> None:
    planner = Planner(site(1), Policy())
    planner.submit(1, ask(1, 100), 0)
    begun(planner, 0)
    planner.suspend(1, 10, left_s=90)
    planner.submit(2, ask(1, 50), 10)
    begun(planner, 10)
    resume(planner, 1, 20, left_s=90)
    planner.submit(3, ask(1, 50), 20)
    assert starts(planner) == {1: 60, 2: 10, 3: 150}
    planner.suspend(1, 30, left_s=90)
    assert starts(planner) == {1: None, 2: 10, 3: 60}
    assert planner.plan.entries[1].state == SUSPENDED


def test_cores_that_went_and_come_again_are_waited_for() -> None:
    planner = Planner(site(4), Policy())
    planner.submit(1, ask(4, 100), 0)
    begun(planner, 0)
    planner.suspend(1, 10, left_s=90)
    planner.change_site(site(2), 20)
    resume(planner, 1, 30, left_s=90)
    entry = planner.plan.entries[1]
    assert entry.start is None
    assert [waits.code for waits in why(planner.plan, entry)] == ["resuming"]
    planner.change_site(site(4), 40)
    assert begun(planner, 40) == [1]


def test_a_drained_host_lets_its_own_jobs_resume() -> None:
    planner = Planner(site(2), Policy())
    planner.submit(1, ask(2, 100), 0)
    begun(planner, 0)
    planner.suspend(1, 10, left_s=90)
    planner.change_site(site(2, usable=set()), 20)
    resume(planner, 1, 30, left_s=90)
    assert begun(planner, 30) == [1]


def test_what_lies_suspended_in_a_container_ends_with_it() -> None:
    planner = Planner(site(4), Policy())
    planner.submit(1, ask(4, 100, container=True), 0)
    begun(planner, 0)
    planner.submit(2, ask(2, 50, inner="1"), 0)
    begun(planner, 0)
    planner.suspend(2, 10, left_s=40)
    planner.submit(3, ask(4, 20, inner="1"), 10)
    assert begun(planner, 10) == [3]
    planner.ended(1, 30)
    assert (2, 1) in planner.plan.orphans


# ------------------------------------------------------------------ walltimes


def test_a_longer_walltime_is_granted_up_to_the_next_promise() -> None:
    planner = Planner(site(2), Policy())
    planner.submit(1, ask(1, 100), 0)
    begun(planner, 0)
    planner.submit(2, ask(2, 50), 10)
    planner.submit(3, ask(1, 50, at=400.0), 10)
    assert starts(planner) == {1: 0, 2: 100, 3: 400}
    assert planner.move_end(1, 200, 20) == 100
    planner.ended(2, 30)
    assert planner.move_end(1, 200, 30) == 200
    planner.move_end(1, 600, 40)
    entry, other = planner.plan.entries[1], planner.plan.entries[3]
    assert entry.end == (600 if not entry.resources & other.resources else 400)


def test_a_forced_walltime_moves_plans_but_nothing_leaves_its_container() -> None:
    planner = Planner(site(2), Policy())
    planner.submit(1, ask(2, 100), 0)
    begun(planner, 0)
    planner.submit(2, ask(2, 50), 10)
    assert planner.move_end(1, 300, 20, force=True) == 300
    assert starts(planner)[2] == 300
    inside = Planner(site(2), Policy())
    inside.submit(1, ask(2, 100, container=True), 0)
    begun(inside, 0)
    inside.submit(2, ask(1, 50, inner="1"), 0)
    begun(inside, 0)
    assert inside.move_end(2, 500, 10, force=True) == 100
    assert inside.move_end(2, 90, 10) == 90


def test_a_longer_walltime_takes_no_memory_that_was_promised() -> None:
    planner = Planner(site(2, mem=100), Policy())
    planner.submit(1, ask(1, 100, mem=60), 0)
    begun(planner, 0)
    planner.submit(2, ask(1, 50, mem=60), 10)
    assert starts(planner)[2] == 100
    assert planner.move_end(1, 200, 20) == 100


def test_a_shorter_walltime_lets_others_begin_earlier() -> None:
    planner = Planner(site(1), Policy())
    planner.submit(1, ask(1, 100), 0)
    begun(planner, 0)
    planner.submit(2, ask(1, 50), 10)
    assert planner.move_end(1, 60, 20) == 60
    assert starts(planner)[2] == 60
    assert planner.next_event() == 60


# ------------------------------------------------------------------ any history


class World:
    """A planner with its history: what happens to it, and what must hold of it after that."""

    def __init__(self, *, mem: int, backfill: str) -> None:
        queues = {"default": Queue(backfill=backfill), "high": Queue(priority=9, backfill=backfill)}
        self.planner = Planner(site(6, hosts=2, mem=mem), Policy(queues=queues))
        self.mem = mem
        self.now = 0.0
        self.ids = 0
        self.left: dict[int, float] = {}
        self.cores: dict[int, int] = {}  #: what each suspended job had

    def running(self) -> list[int]:
        return sorted(self.planner.plan.running)

    def suspended(self) -> list[int]:
        return sorted(id for id, each in self.planner.plan.suspended.items() if each.entry.state == SUSPENDED)

    def do(self, what: str, number: int, cores: int, length: float, mem: int) -> None:
        planner = self.planner
        if what == "submit":
            self.ids += 1
            queue = "high" if number % 5 == 0 else "default"
            planner.submit(self.ids, ask(cores, length, mem=mem, queue=queue), self.now)
        elif what == "suspend" and self.running():
            id = self.running()[number % len(self.running())]
            entry = planner.plan.running[id]
            assert entry.end is not None
            self.cores[id], self.left[id] = entry.resources, max(1.0, entry.end - self.now)
            planner.suspend(id, self.now, left_s=self.left[id])
        elif what == "resume" and self.suspended():
            id = self.suspended()[number % len(self.suspended())]
            resume(planner, id, self.now, left_s=self.left[id])
        elif what == "end" and planner.plan.entries:
            there = sorted(planner.plan.entries)
            planner.ended(there[number % len(there)], self.now)
        elif what == "walltime" and self.running():
            id = self.running()[number % len(self.running())]
            end = planner.plan.running[id].end
            assert end is not None
            before = {each.id: each.start for each in planner.plan.entries.values() if each.state == WAITING}
            got = planner.move_end(id, end + length, self.now)
            assert end <= got <= end + length
            for other, start in before.items():
                later = planner.plan.entries[other].start
                assert start is None or later is None or later <= start, "a promise was broken"
        elif what == "wait":
            self.now += length / 4  # quarters are exact: memory is counted in microseconds
            planner.tick(self.now)
        self.begin()
        self.check()

    def begin(self) -> None:
        for begin in self.planner.begin(self.now):
            entry = begin.entry
            had = self.cores.pop(entry.id, None)
            if had is not None:
                assert entry.resources == had, "it goes on where it was"
                assert entry.end == self.now + self.left[entry.id], "and for as long as it had left"

    def check(self) -> None:
        planner = self.planner
        holding = [
            each for each in planner.plan.entries.values() if each.start is not None and each.state != SUSPENDED
        ]
        moments = {self.now, *(max(self.now, each.start or 0.0) for each in holding)}
        for moment in moments:
            there = [each for each in holding if (each.start or 0.0) <= moment < (each.end or inf)]
            taken = 0
            for each in there:
                assert not taken & each.resources, f"two hold the same at {moment}"
                taken |= each.resources
            assert planner.plan.slots.common(moment, moment + 1e-6) == planner.plan.site.everything & ~taken
            self.check_memory(there, moment)
        assert not planner.plan.suspended.keys() & planner.plan.running.keys()
        for id, pinned in planner.plan.suspended.items():
            assert pinned.mask == self.cores[id]
            assert pinned.entry.start is None or pinned.entry.resources == self.cores[id]
        planner.snapshot()

    def check_memory(self, there: list[PlanEntry], moment: float) -> None:
        planner = self.planner
        used = dict.fromkeys(planner.plan.site.hosts, 0)
        for each in there:
            for host in planner.plan.site.hosts_of(each.resources):
                used[host] += each.ask.mem
        for pinned in planner.plan.suspended.values():
            start = pinned.entry.start
            if moment < (pinned.until if start is None else start):
                for host in planner.plan.site.hosts_of(pinned.mask):
                    used[host] += pinned.entry.ask.mem
        assert all(amount <= self.mem for amount in used.values()), (
            f"more memory than there is at {moment}: {used}"
        )


def test_what_a_suspended_job_keeps_is_promised_to_nobody_while_its_cores_are_busy() -> None:
    world = World(mem=100, backfill="conservative")
    for what, number, cores, length, mem in (
        ("submit", 0, 1, 10.0, 0), ("submit", 0, 1, 10.0, 0), ("submit", 0, 2, 10.0, 0),
        ("submit", 0, 4, 10.0, 20), ("end", 0, 0, 0.0, 0), ("submit", 0, 2, 10.0, 50), ("submit", 0, 2, 10.0, 0),
        ("suspend", 8, 0, 0.0, 0), ("end", 0, 0, 0.0, 0), ("submit", 0, 1, 10.0, 0), ("submit", 0, 1, 30.0, 50),
        ("submit", 0, 1, 10.0, 0), ("resume", 0, 0, 0.0, 0),
    ):  # fmt: skip
        world.do(what, number, cores, length, mem)
    resuming = world.planner.plan.entries[5]
    assert resuming.start is None
    assert resuming.reason is not None
    assert resuming.reason.code == "resuming"
    for _ in range(60):  # it goes on, whoever comes first
        world.do("wait", 0, 0, 40.0, 0)
        others = [id for id in world.running() if id != 5]
        if 5 in world.running():
            break
        if others:
            world.planner.ended(others[0], world.now)
        world.begin()
        world.check()
    assert 5 in world.running()


steps = st.lists(
    st.tuples(
        st.sampled_from(["submit", "submit", "suspend", "resume", "end", "wait", "walltime"]),
        st.integers(0, 11),
        st.integers(1, 4),
        st.sampled_from([10.0, 30.0, 90.0]),
        st.sampled_from([0, 20, 50]),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=200, deadline=None)
@given(steps, st.sampled_from(["conservative", "easy", "none"]))
def test_nobody_holds_the_same_and_who_resumes_gets_its_own_whatever_happens(
    history: list[tuple[str, int, int, float, int]], backfill: str
) -> None:
    world = World(mem=100, backfill=backfill)
    for step in history:
        world.do(*step)


@settings(max_examples=100, deadline=None)
@given(steps)
def test_a_pass_in_pieces_or_without_shortcuts_comes_to_the_same(
    history: list[tuple[str, int, int, float, int]],
) -> None:
    def everybody(planner: Any, _entry: PlanEntry, _holes: Any) -> float:
        now: float = planner.now
        return now

    quick, full = World(mem=100, backfill="conservative"), World(mem=100, backfill="conservative")
    for step in history:
        quick.do(*step)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(backfill, "_may_improve", everybody)
            full.do(*step)
        places = [
            {
                each.id: (each.state, each.start, each.end, each.resources)
                for each in world.planner.plan.entries.values()
            }
            for world in (quick, full)
        ]
        assert places[0] == places[1]
