"""Conditions of machines: who gets jobs, use by hand, and machines that break."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rota.core import events
from rota.core.jobs import explain
from rota.core.jobs.outcome import Outcome
from rota.core.machines.machine_events import MachineReserved, MachineReturned, MachineSet
from rota.core.machines.machine_now import machine_now
from rota.core.machines.machine_use import MachineUse
from rota.core.machines.usage_sums import state_of
from rota.core.site.plan_facts import rules_need_plan, rules_now
from rota.core.site.record_checks import check_record
from rota.core.states import State
from rota.core.turn import Turn
from rota.errors import BadInput, Denied, NotFound, RotaError
from rota.plan.policy.priority_caps import Cap
from tests.core.machine import Entry, Machine, spec
from tests.core.machines.rows import check_history
from tests.dose import dose


def lab(hosts: int = 1, **machine: Any) -> Machine:
    m = Machine(hosts=hosts, cpus=100, **machine)
    for host in m.capacity:
        m.join(m.start_runner(host))
    m.pump()
    return m


def put(m: Machine, host: str = "h1", *, operator: bool = True, **fields: Any) -> None:
    missing = [name for name in fields.get("groups", ()) if name not in m.world.site["machine_group"]]
    if operator and missing:
        m.happened(events.SiteChanged(by=None, changes=[("machine_group", name, {}) for name in missing]))
    m.happened(MachineSet(by=m.asker(), operator=operator, hosts=[host], **fields))
    m.pump()


def reserve(m: Machine, host: str = "h1", seconds: float = 60.0, *, operator: bool = True, **more: Any) -> None:
    m.happened(MachineReserved(by=m.asker(), operator=operator, host=host, seconds=seconds, **more))
    m.pump()


def give_back(m: Machine, host: str = "h1", *, operator: bool = True) -> None:
    m.happened(MachineReturned(by=m.asker(), operator=operator, host=host))
    m.pump()


def refusal(m: Machine) -> RotaError:
    assert m.refused, "nothing was refused"
    return m.refused.pop()


def history(m: Machine, host: str = "h1") -> list[tuple[str, str]]:
    """Condition and usage of a machine so far."""
    while m.commit():
        pass
    rows = m.store.machine_rows(host=host, since=0, until=1 << 62)
    return [pair for pair, _ in groupby((row.condition, row.usage) for row in rows)]


def now(m: Machine, host: str = "h1") -> tuple[str, str]:
    found = machine_now(m.world, host)
    assert state_of(m.world.use(MachineUse).open[host]) == found
    return found.condition, found.usage


def why(m: Machine, job: int) -> list[Any]:
    return explain.why(m.world, m.world.jobs[job], wall=m.wall)


# ------------------------------------------------------------------ events, not polling


def test_a_job_starts_on_an_idle_machine_without_a_tick() -> None:
    m = lab()
    assert now(m) == ("automated", "idle")
    (job,) = m.add("a").added
    m.pump()
    assert m.state(job) is State.RUNNING
    assert now(m) == ("automated", "running")


def test_a_machine_goes_from_one_job_to_the_next_and_nobody_sees_it_idle() -> None:
    m = lab()
    first, second = m.add("a", "b").added
    m.pump()
    m.advance(5.0)
    m.end(first)
    m.pump()
    assert m.state(second) is State.RUNNING
    assert ("automated", "idle") not in history(m)[history(m).index(("automated", "running")) :]


def test_a_machine_that_is_repaired_gets_the_job_that_waits() -> None:
    m = lab()
    put(m, condition="broken", reason="no fan")
    (job,) = m.add("a").added
    m.pump()
    assert m.state(job) is State.READY
    put(m, condition="automated")
    assert m.state(job) is State.RUNNING


def test_a_machine_that_is_added_gets_the_job_that_waits() -> None:
    m = lab(hosts=2)
    put(m, "h1", condition="broken")
    put(m, "h2", condition="removed")
    (job,) = m.add("a").added
    m.pump()
    assert m.state(job) is State.READY
    put(m, "h2", condition="automated")
    assert m.world.jobs[job].lease is not None


@pytest.mark.parametrize("condition", ["manual", "broken", "removed"])
def test_a_machine_that_is_not_automated_is_never_matched(condition: str) -> None:
    m = lab(hosts=2)
    put(m, "h1", condition=condition)
    jobs = m.add("a", "b", "c").added
    m.pump()
    assert [m.state(job) for job in jobs] == [State.RUNNING, State.READY, State.READY]
    assert {m.world.runners[m.world.jobs[jobs[0]].lease.runner].host} == {"h2"}
    assert now(m) == (condition, "idle")


@pytest.mark.parametrize("condition", ["manual", "broken", "removed"])
def test_the_plan_leaves_machines_alone_that_are_not_automated(condition: str) -> None:
    m = lab(hosts=2)
    put(m, "h1", condition=condition)
    one, other = m.add("a", "b", request=("nodes=1",), walltime_s=60.0).added
    m.pump()
    states = {m.state(one), m.state(other)}
    assert states == {State.RUNNING, State.READY}
    put(m, "h1", condition="automated")
    assert {m.state(one), m.state(other)} == {State.RUNNING}


def test_why_names_the_machines_whose_condition_keeps_a_job_waiting() -> None:
    m = lab(hosts=2)
    put(m, "h1", condition="broken", reason="no fan")
    put(m, "h2", condition="manual")
    for fields in ({}, {"request": ("nodes=1",), "walltime_s": 60.0}):
        (job,) = m.add("a", fresh=True, **fields).added
        m.pump()
        (found,) = [each for each in why(m, job) if each.code == "condition"]
        assert "h1 is broken (no fan)" in found.message
        assert "h2 is manual" in found.message
        assert found.hint.endswith("--condition automated")


def test_a_job_whose_only_candidate_is_broken_says_so() -> None:
    m = lab(hosts=2)
    put(m, "h1", condition="broken", reason="no fan")
    (job,) = m.add("a", request=("{host='h1'}/nodes=1",), walltime_s=60.0).added
    m.pump()
    assert [each.code for each in why(m, job)] == ["condition"]
    put(m, "h1", condition="automated")
    assert m.state(job) is State.RUNNING


# ------------------------------------------------------------------ conditions


def test_a_condition_changes_at_once_and_a_running_job_goes_on() -> None:
    m = lab()
    (job,) = m.add("a").added
    m.pump()
    put(m, condition="manual", reason="a visit")
    assert now(m) == ("manual", "running")
    m.advance(5.0)
    m.end(job)
    m.pump()
    assert m.state(job) is State.COMPLETE
    assert now(m) == ("manual", "idle")


def test_a_broken_machine_is_idle_whatever_runs_there() -> None:
    m = lab()
    m.add("a")
    m.pump()
    put(m, condition="broken")
    assert now(m) == ("broken", "idle")


def test_now_aborts_what_runs() -> None:
    m = lab()
    (job,) = m.add("a").added
    m.pump()
    put(m, condition="broken", now=True)
    assert m.state(job) is State.CANCELLED


def test_conditions_survive_a_crash() -> None:
    m = lab(hosts=2)
    put(m, "h1", condition="broken", reason="no fan")
    m.crash()
    for runner in m.runners.values():
        m.join(runner)
    jobs = m.add("a", "b").added
    m.pump()
    assert {m.state(job) for job in jobs} == {State.RUNNING, State.READY}
    assert now(m) == ("broken", "idle")
    assert history(m) == [("automated", "idle"), ("broken", "idle")]


def test_bad_changes_are_refused_and_change_nothing() -> None:
    m = lab()
    for fields in ({"condition": "odd"}, {}, {"condition": "manual", "reason": "x" * 600}):
        put(m, **fields)
        assert isinstance(refusal(m), BadInput)
    put(m, "nowhere", condition="broken")
    assert isinstance(refusal(m), NotFound)
    assert now(m) == ("automated", "idle")


# ------------------------------------------------------------------ who may


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"groups": [""]}, "'' cannot be the name of a machine group"),
        ({"groups": ["two words"]}, "'two words' cannot be the name of a machine group"),
        ({"owner": "two words"}, "'two words' cannot be a user"),
        ({"condition": "broken", "reason": "x" * 501}, "its condition reason has more than 500 characters"),
    ],
)
def test_names_and_texts_that_cannot_be_meant_are_refused(fields: dict[str, Any], message: str) -> None:
    m = lab()
    put(m, **fields)
    assert message in refusal(m).message
    assert now(m) == ("automated", "idle")


@pytest.mark.parametrize("cap", [-1, 256, 10**20])
def test_a_cap_is_a_priority_that_jobs_can_have(cap: int) -> None:
    with pytest.raises(BadInput, match="no job has the priority"):
        check_record("machine_group", "lab1", {"cap": cap})


def test_owners_and_members_of_its_groups_may_change_a_machine_and_others_may_not() -> None:
    m = lab(hosts=3)
    put(m, "h1", owner="ann")
    put(m, "h2", groups=["lab1"])
    m.happened(events.SiteChanged(by=None, changes=[("machine_group", "lab1", {"cap": 10, "users": ["ann"]})]))
    for host in ("h1", "h2"):
        put(m, host, operator=False, condition="manual")
        assert now(m, host) == ("manual", "idle")
        reserve(m, host, operator=False)
        assert now(m, host) == ("manual", "running")
    put(m, "h3", operator=False, condition="manual")
    assert isinstance(refusal(m), Denied)
    reserve(m, "h3", operator=False)
    assert isinstance(refusal(m), Denied)
    put(m, "h1", operator=False, owner="bob")
    assert isinstance(refusal(m), Denied), "only an operator gives a machine to somebody else"


# ------------------------------------------------------------------ use by hand


def test_a_reserved_machine_is_manual_until_it_is_returned_and_then_gets_jobs() -> None:
    m = lab()
    reserve(m)
    (job,) = m.add("a").added
    m.pump()
    assert now(m) == ("manual", "running")
    assert m.state(job) is State.READY
    give_back(m)
    assert m.state(job) is State.RUNNING
    assert history(m)[:3] == [("automated", "idle"), ("manual", "running"), ("automated", "scheduled")]


def test_a_reserved_machine_comes_back_when_its_time_is_over_also_after_a_crash() -> None:
    m = lab()
    reserve(m, seconds=100.0)
    assert m.engine.next_due() == m.wall + 100.0
    m.crash()
    for runner in m.runners.values():
        m.join(runner)
    m.advance(50.0)
    assert now(m) == ("manual", "running")
    m.advance(51.0)
    m.pump()
    assert now(m) == ("automated", "idle")


def test_a_busy_machine_is_refused_or_reserved_for_when_it_is_free() -> None:
    m = lab()
    first, second = m.add("a", "b").added
    m.pump()
    reserve(m)
    assert "is busy" in refusal(m).message
    reserve(m, when_free=True)
    assert now(m) == ("automated", "running")
    m.advance(5.0)
    m.end(first)
    m.pump()
    assert now(m) == ("manual", "running"), "it went to the user, not to the next job"
    assert m.state(second) is State.READY
    give_back(m)
    assert m.state(second) is State.RUNNING


def test_a_wish_for_a_busy_machine_can_be_taken_back() -> None:
    m = lab()
    first, second = m.add("a", "b").added
    m.pump()
    reserve(m, when_free=True)
    give_back(m)
    m.advance(5.0)
    m.end(first)
    m.pump()
    assert m.state(second) is State.RUNNING
    give_back(m)
    assert isinstance(refusal(m), BadInput), "nobody has it"


def test_a_machine_that_was_manual_before_is_manual_again() -> None:
    m = lab()
    put(m, condition="manual")
    reserve(m)
    reserve(m, seconds=500.0)  # the same user may extend it
    give_back(m)
    assert now(m) == ("manual", "idle")
    put(m, condition="broken")
    reserve(m)
    assert isinstance(refusal(m), BadInput)


def test_setting_the_condition_ends_a_reservation() -> None:
    m = lab()
    reserve(m, seconds=100.0)
    put(m, condition="broken")
    m.advance(101.0)
    assert now(m) == ("broken", "idle")


# ------------------------------------------------------------------ pending


def test_while_the_manager_is_paused_a_machine_that_becomes_free_is_pending() -> None:
    m = lab(hosts=2)
    (job,) = m.add("a").added
    m.pump()
    host = m.world.runners[m.world.jobs[job].lease.runner].host
    (other,) = m.capacity.keys() - {host}
    m.happened(events.ManagerPaused())
    m.advance(5.0)
    m.end(job)
    m.pump()
    assert now(m, host) == ("automated", "pending")
    assert now(m, other) == ("automated", "idle")
    m.crash()
    for runner in m.runners.values():
        m.join(runner)
    m.pump()
    assert now(m, other) == ("automated", "pending"), "after a restart nothing is decided about any machine"
    m.happened(events.ManagerResumed())
    assert {now(m, each) for each in m.capacity} == {("automated", "idle")}


# ------------------------------------------------------------------ broken detection


def fail(m: Machine, job: int, reason: str = "walltime") -> None:
    m.advance(1.0)
    m.end(
        job, Outcome(reason=reason, message="it was aborted", signal=9, ended_at=m.wall, started_at=m.wall - 1.0)
    )
    m.pump()


def test_two_aborted_runs_of_different_jobs_make_a_machine_broken_and_its_owner_is_told() -> None:
    m = lab()
    put(m, owner="bob")
    jobs = m.add("a", "b", "c").added
    m.pump()
    fail(m, jobs[0])
    assert now(m) == ("automated", "running")
    m.crash()
    for runner in m.runners.values():
        m.join(runner)
    m.pump()
    fail(m, jobs[1])
    assert now(m) == ("broken", "idle")
    assert m.state(jobs[2]) is State.READY
    found = m.world.site["host"]["h1"]["condition_reason"]
    assert f"job {jobs[0]}" in found
    assert f"job {jobs[1]}" in found
    told = [event.text for event in m.store.events(0) if event.kind == "broken"]
    assert len(told) == 1
    assert "bob" in told[0]
    put(m, condition="automated")
    fail(m, jobs[2])
    assert now(m)[0] == "automated", "an operator reset the count"


def test_a_good_run_and_the_same_job_again_do_not_break_a_machine() -> None:
    m = lab()
    put(m, groups=["lab1"])
    jobs = m.add("a", "b", "c").added
    m.pump()
    fail(m, jobs[0])
    m.advance(1.0)
    m.end(jobs[1])
    m.pump()
    fail(m, jobs[2])
    assert now(m) == ("automated", "idle")
    (again,) = m.add("d", retries=5, backoff_s=0.0, fresh=True).added
    m.pump()
    m.end(again)
    m.pump()
    assert now(m) == ("automated", "idle")


def test_a_machine_that_belongs_to_nobody_does_not_break_by_long_jobs() -> None:
    m = lab()
    jobs = m.add("a", "b").added
    m.pump()
    for job in jobs:
        fail(m, job)
    assert now(m) == ("automated", "idle")


# ------------------------------------------------------------------ requirements and groups


def test_an_unknown_property_is_refused_and_never_a_wider_match() -> None:
    m = lab()
    with pytest.raises(BadInput, match="nothing_like_it"):
        m.add("a", request=("{nothing_like_it='x'}/nodes=1",), walltime_s=60.0)
    assert now(m) == ("automated", "idle")


def test_the_placement_is_told_the_caps_of_machine_groups() -> None:
    m = lab(hosts=3)
    put(m, "h1", groups=["lab1"], owner="bob")
    put(m, "h2", groups=["lab1", "lab2"])
    groups = {"lab1": {"cap": 10, "users": ["ann"]}, "lab2": {"users": ["eve"]}}
    changes = [("machine_group", name, value) for name, value in groups.items()]
    m.happened(events.SiteChanged(by=None, changes=changes))
    assert set(rules_now(m.world, m.wall).caps) == {
        Cap(frozenset({"h1"}), 10, frozenset({"ann", "bob"}), "lab1"),
        Cap(frozenset({"h2"}), 10, frozenset({"ann"}), "lab1"),
    }
    assert rules_need_plan(m.world)


def test_a_cap_puts_outsiders_behind_members_from_the_moment_at_which_it_is_set() -> None:
    m = lab(hosts=2)
    put(m, "h1", groups=["lab1"])
    (busy,) = m.add("busy", where="host = 'h1'", walltime_s=60.0).added
    (outsider,) = m.add("outsider", where="host = 'h1'", priority=100, user="eve", walltime_s=60.0).added
    (member,) = m.add("member", where="host = 'h1'", priority=50, user="ann", walltime_s=60.0).added
    m.happened(events.SiteChanged(by=None, changes=[("machine_group", "lab1", {"cap": 10, "users": ["ann"]})]))
    m.pump()
    m.crash()
    m.heal()
    said = {each.code: each for each in explain.why(m.world, m.world.jobs[outsider], wall=m.wall)}["priority_cap"]
    assert said.message == (
        f"its priority of 100 counts as 10 on h1 (machine group 'lab1'), so job {member} goes first there"
    )
    assert said.blockers == [member]
    assert "priority_cap" not in {each.code for each in explain.why(m.world, m.world.jobs[member], wall=m.wall)}
    m.end(busy)
    assert m.states(member, outsider) == [State.RUNNING, State.READY]
    (elsewhere,) = m.add("elsewhere", priority=20, user="zoe", walltime_s=60.0).added
    assert m.state(elsewhere) is State.RUNNING, "it has its full priority on the machine without a cap"
    m.end(member)
    assert m.state(outsider) is State.RUNNING


def test_a_freed_machine_goes_to_the_first_in_line_that_may_have_it() -> None:
    m = lab(hosts=2)
    (busy,) = m.add("busy", where="host = 'h1'", walltime_s=60.0).added
    waiting = [
        Entry("first", spec(where="host = 'h1'", walltime_s=60.0)),
        Entry("second", spec(where="host in ('h1', 'h2')", walltime_s=60.0)),
        Entry("third", spec(where="host in ('h1', 'h2')", walltime_s=60.0)),
    ]
    first, second, third = m.answer(m.send_chunk(waiting)).added
    assert m.states(first, second, third) == [State.READY, State.RUNNING, State.READY]
    assert m.running()[second][0].host == "h2"
    m.end(busy)
    assert m.states(first, second, third) == [State.RUNNING, State.RUNNING, State.READY]
    assert m.running()[first][0].host == "h1"
    m.end(second)
    assert m.running()[third][0].host == "h2"


# ------------------------------------------------------------------ histories


STEPS = (
    "add", "end", "abort", "crash", "stop", "part", "join", "set", "reserve", "return", "pause", "resume", "clock",
)  # fmt: skip


@dose(25)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(STEPS),
            st.integers(0, 7),
        ),
        max_size=40,
    )
)  # fmt: skip
@example([("stop", 0), ("set", 6), ("clock", 3), ("crash", 0)])
def test_the_time_of_machines_adds_up_over_random_histories_with_restarts_and_clock_steps(steps: Any) -> None:
    m = lab(hosts=2)
    for what, number in steps:
        host = f"h{number % 2 + 1}"
        running = sorted(m.running())
        if what == "add":
            m.add(f"job {number}", fresh=True)
        elif what == "end" and running:
            m.end(running[number % len(running)])
        elif what == "abort" and running:
            fail(m, running[number % len(running)])
        elif what == "crash":
            m.crash()
        elif what == "stop":
            m.engine.stopping(Turn(wall=m.wall, mono=m.mono, random=m.random.random, batch=m.open))
            m.committing = m.committing or m.open
            while m.commit(perform=False):
                pass
            m.crash()
        elif what == "part":
            for runner in [each for each in m.runners.values() if each.connected and each.host == host]:
                m.disconnect(runner)
        elif what == "join":
            for runner in [each for each in m.runners.values() if not each.connected and each.host == host]:
                m.join(runner)
        elif what == "set":
            put(m, host, condition=["automated", "manual", "broken", "removed"][number // 2], owner="ann")
        elif what == "reserve":
            reserve(m, host, 10.0 * (number + 1), when_free=number > 3)
        elif what == "return":
            give_back(m, host)
        elif what == "pause":
            m.happened(events.ManagerPaused())
        elif what == "resume":
            m.happened(events.ManagerResumed())
        elif what == "clock":
            m.wall -= 5.0 * number
        m.advance(1.0 + number)
        m.pump()
        check_history(m)


def test_a_machine_joins_no_group_that_was_never_made() -> None:
    m = lab()
    m.happened(MachineSet(by=m.asker(), operator=True, hosts=["h1"], groups=["robtos"]))
    m.pump()
    assert isinstance(m.refused[-1], NotFound)
    assert m.refused[-1].hint == "make it first: rota machine-group set robtos"
    assert not m.world.site["host"].get("h1", {}).get("groups")


def test_a_machine_keeps_a_group_that_was_removed_from_the_list_of_groups() -> None:
    m = lab(hosts=2)
    put(m, "h1", groups=["old"])
    m.happened(events.SiteChanged(by=None, changes=[("machine_group", "old", None)]))
    m.happened(MachineSet(by=m.asker(), operator=True, hosts=["h2"], groups=["old"]))
    m.pump()
    assert m.world.site["host"]["h2"]["groups"] == ["old"]
