"""Live dependency groups, example by example."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core.jobs import explain
from rota.core.jobs.job import Condition
from rota.core.jobs.outcome import Behaved, Outcome
from rota.core.states import State
from rota.errors import BadInput, NotFound
from rota.plan.size import Size
from tests.core.machine import Entry, Machine, spec

OK, ANY, NOT_OK = Condition.OK, Condition.ANY, Condition.NOT_OK


@pytest.fixture
def m() -> Machine:
    machine = Machine(cpus=800)
    machine.with_runner()
    return machine


def member(m: Machine, *cmds: str, group: str = "final", **fields: Any) -> list[int]:
    return m.add(*cmds, dep_groups=(group,), **fields).added


def after(m: Machine, cmd: str, parent: int | str, condition: Condition = OK, **fields: Any) -> int:
    return m.add(cmd, after=((parent, condition, False),), **fields).added[0]


def runs(m: Machine, job: int) -> bool:
    return job in m.running()


def test_a_report_and_its_dependents_run_again_when_its_group_grows(m: Machine) -> None:
    [one] = member(m, "one")
    report = after(m, "report", "final")
    mail = after(m, "mail", report)
    for job in (one, report, mail):
        m.end(job)
    [two] = member(m, "two")
    assert m.states(report, mail) == [State.DEPENDENT, State.DEPENDENT]
    m.crash()
    m.join(m.runners["r1"])
    m.pump()
    for job in (two, report, mail):
        m.end(job)
    assert m.states(report, mail) == [State.COMPLETE, State.COMPLETE]
    assert m.witness.attempts[report] == m.witness.attempts[mail] == [1, 2]


@pytest.mark.parametrize("crash", [False, True])
def test_who_ran_when_somebody_joined_runs_again_even_if_that_one_ended_first(m: Machine, crash: bool) -> None:
    [one] = member(m, "one")
    report = after(m, "report", "final")
    m.end(one)
    [two] = member(m, "two")
    m.end(two)
    if crash:
        m.crash()
        m.join(m.runners["r1"])
        m.pump()
    m.end(report)
    assert runs(m, report), "what it made knows nothing of the second"
    m.end(report)
    assert m.state(report) is State.COMPLETE


def test_that_it_must_run_again_survives_silence_and_a_crash(m: Machine) -> None:
    [one] = member(m, "one")
    report = after(m, "report", "final")
    m.end(one)
    [two] = member(m, "two")
    m.end(two)
    m.advance(61.0)
    assert m.state(report) is State.LOST
    m.pump()
    m.crash()
    m.join(m.runners["r1"])
    m.pump()
    m.end(report)
    assert runs(m, report)


def test_a_crash_alone_makes_nobody_run_again(m: Machine) -> None:
    [one] = member(m, "one")
    report = after(m, "report", "final")
    m.end(one)
    m.crash()
    m.advance(61.0)
    m.pump()
    m.crash()
    m.join(m.runners["r1"])
    m.pump()
    m.end(report)
    assert m.state(report) is State.COMPLETE


def test_who_waits_behind_a_re_opened_job_waits_again_and_who_runs_there_runs_again(m: Machine) -> None:
    [one] = member(m, "one")
    report = after(m, "report", "final")
    held, running = after(m, "held", report), after(m, "mail", report, ANY)
    m.do("hold", held)
    m.end(one)
    m.end(report)
    [two] = member(m, "two")
    m.do("release", held)
    assert m.state(held) is State.DEPENDENT
    m.end(running)
    assert m.state(running) is State.DEPENDENT
    m.end(two)
    m.end(report)
    assert runs(m, held)
    assert runs(m, running)


def test_a_retried_member_makes_nobody_run_again(m: Machine) -> None:
    [one] = member(m, "one")
    report = after(m, "report", "final", ANY)
    m.end(one, exit_code=1)
    m.do("retry", one)
    m.end(report)
    assert m.state(report) is State.COMPLETE


def test_a_killed_job_does_not_run_again(m: Machine) -> None:
    [one] = member(m, "one")
    report = after(m, "report", "final")
    m.end(one)
    member(m, "two")
    m.act("kill", report)
    runner, seat = m.running()[report]
    runner.end(seat, Outcome(exit_code=0, ended_at=m.wall), m.wall)
    m.pump()
    assert m.state(report) is State.CANCELLED


def test_failed_and_cancelled_jobs_stay_as_they_are_when_their_group_grows(m: Machine) -> None:
    [one] = member(m, "one")
    failed, cancelled = after(m, "failed", "final"), after(m, "cancelled", "final")
    m.end(one)
    m.end(failed, exit_code=1)
    m.do("kill", cancelled)
    member(m, "two")
    assert m.states(failed, cancelled) == [State.FAILED, State.CANCELLED]


def test_a_complete_job_is_blocked_when_a_blocked_one_joins_its_group(m: Machine) -> None:
    [one] = member(m, "one")
    report = after(m, "report", "final")
    m.end(one)
    m.end(report)
    broken = m.add("broken").added[0]
    m.end(broken, exit_code=1)
    two = after(m, "two", broken, dep_groups=("final",))
    assert m.states(two, report) == [State.BLOCKED, State.BLOCKED]
    m.do("retry", broken)
    assert m.states(two, report) == [State.DEPENDENT, State.DEPENDENT]


# ------------------------------------------------------------------ not live


def test_who_does_not_care_for_later_ones_waits_for_those_that_are_there(m: Machine) -> None:
    [one] = member(m, "one")
    report = after(m, "report", "final", live=False)
    [two] = member(m, "two")
    m.end(one)
    assert runs(m, report)
    m.end(report)
    [_three] = member(m, "three")
    assert m.state(report) is State.COMPLETE
    m.end(two)


def test_afternotok_of_a_group_with_a_complete_member_never_holds_live_or_not(m: Machine) -> None:
    one, two = member(m, "one", "two")
    m.end(one)
    m.end(two, exit_code=1)
    live, fixed = after(m, "live", "final", NOT_OK), after(m, "fixed", "final", NOT_OK, live=False)
    assert m.states(live, fixed) == [State.BLOCKED, State.BLOCKED]


def test_an_empty_group_that_is_allowed_is_waited_for_live_or_not(m: Machine) -> None:
    with pytest.raises(NotFound, match="group 'final' has never had a member"):
        after(m, "report", "final")
    live = after(m, "live", "final", allow_empty_group=True)
    fixed = after(m, "fixed", "final", live=False, allow_empty_group=True)
    assert m.states(live, fixed) == [State.DEPENDENT, State.DEPENDENT]
    [one] = member(m, "one")
    m.end(one)
    assert runs(m, live)
    assert runs(m, fixed)


# ------------------------------------------------------------------ removing


def test_a_member_is_not_removed_while_somebody_waits_for_it(m: Machine) -> None:
    one, two = member(m, "one", "two")
    report = after(m, "report", "final")
    m.end(one)
    m.end(two, exit_code=1)
    with pytest.raises(BadInput, match=f"job {report} waits for job {two}"):
        m.do("remove", two)
    m.do("remove", one)
    m.do("remove", two, cascade=True)
    assert m.world.jobs == {}


def test_a_group_whose_members_were_all_removed_is_waited_for_no_more(m: Machine) -> None:
    [one] = member(m, "one")
    m.end(one)
    big = m.add("big", size=Size(cpus=800)).added[0]
    report = after(m, "report", "final")
    assert m.state(report) is State.READY
    m.do("remove", one)
    assert m.state(report) is State.READY
    m.crash()
    m.join(m.runners["r1"])
    m.end(big)
    assert runs(m, report)


def test_a_member_that_removes_itself_leaves_its_dependents_content(m: Machine) -> None:
    [one] = member(m, "one", on_success=("remove",))
    report = after(m, "report", "final")
    m.end(one, Outcome(exit_code=0, ended_at=m.wall, behaviours=(Behaved("remove", True),)))
    assert runs(m, report)
    m.end(report)
    assert m.state(report) is State.COMPLETE


# ------------------------------------------------------------------ cycles


def refused(m: Machine, *entries: Entry) -> str:
    with pytest.raises(BadInput) as found:
        m.answer(m.send_chunk(list(entries)))
    return str(found.value)


def test_a_job_may_not_wait_for_its_own_group_live_or_not(m: Machine) -> None:
    member(m, "one")
    for live, why in ((True, "its own group 'final'"), (False, "a cycle: line 1 → line 1")):
        its = spec(dep_groups=("final",), live=live)
        assert why in refused(m, Entry("two", its, (("final", OK, False),)))


@pytest.mark.parametrize("crash", [False, True])
def test_who_has_an_ancestor_that_waits_for_the_group_may_not_join_it(m: Machine, crash: bool) -> None:
    [one] = member(m, "one")
    report = after(m, "report", "final")
    mail = after(m, "mail", report)
    for job in (one, report, mail):
        m.end(job)
    if crash:
        m.crash()
    assert mail not in m.world.jobs, "it has left memory"
    said = refused(m, Entry("two", spec(dep_groups=("final",)), ((mail, OK, False),)))
    assert said.startswith("dependencies form a cycle: ")
    assert "@final" in said
    assert "line 1" in said


def test_two_groups_may_not_wait_for_each_other_across_submissions(m: Machine) -> None:
    member(m, "one", group="a")
    m.add("two", dep_groups=("b",), after=(("a", OK, False),))
    said = refused(m, Entry("three", spec(dep_groups=("a",)), (("b", OK, False),)))
    assert "@a" in said
    assert "@b" in said


@pytest.mark.parametrize("crash", [False, True])
def test_a_removed_member_makes_no_cycle(m: Machine, crash: bool) -> None:
    [one] = member(m, "one", group="a")
    [two] = m.add("two", dep_groups=("b",), after=(("a", OK, False),)).added
    m.end(one)
    m.end(two)
    m.do("remove", two)
    if crash:
        m.crash()
    three = m.add("three", dep_groups=("a",), after=(("b", OK, False),)).added[0]
    assert m.world.outcome(three) == 0


# ------------------------------------------------------------------ why


def told(m: Machine, job: int) -> tuple[str, str]:
    (reason,) = explain.why(m.world, m.world.jobs[job], wall=m.wall)
    return reason.message, reason.hint


def test_who_is_blocked_by_a_group_is_told_how_to_retry_all_that_failed(m: Machine) -> None:
    jobs = member(m, *(f"c{n}" for n in range(8)))
    report = after(m, "report", "final")
    for job in jobs:
        m.end(job, exit_code=1 if job != jobs[3] else 0)
    assert told(m, report) == (
        "waits for group 'final': 7 failed or were cancelled (jobs 1, 2, 3, 5, 6 and 2 more)",
        f"rota retry {jobs[0]}-{jobs[2]} {jobs[4]}-{jobs[7]}",
    )
    [more] = member(m, "more")
    said = "waits for group 'final': 1 of its jobs has not ended, 7 failed or were cancelled"
    assert told(m, report)[0] == f"{said} (jobs 1, 2, 3, 5, 6 and 2 more)"
    m.end(more)
    m.do("retry", *jobs)
    assert told(m, report) == ("waits for group 'final': 7 of its jobs have not ended", "")


def test_very_many_that_failed_are_named_by_what_they_have_in_common(m: Machine) -> None:
    jobs = member(m, *(f"c{n}" for n in range(60)))
    report = after(m, "report", "final")
    m.do("kill", *jobs[9::2])
    for job in (*jobs[:8], *jobs[8::2]):
        m.end(job, exit_code=1 if job == jobs[0] else 0)
    words = told(m, report)[1].removeprefix("rota retry ").split()
    assert {word.split(",")[1] for word in words} == {"state=failed", "state=cancelled"}
    assert {word.split(",")[0] for word in words} == {f"{jobs[0]}-{jobs[-1]}"}


def test_who_waits_for_a_group_to_fail_is_told_that_some_completed(m: Machine) -> None:
    good, bad = member(m, "good", "bad")
    cleanup = after(m, "cleanup", "final", NOT_OK)
    m.end(good)
    m.end(bad, exit_code=1)
    assert told(m, cleanup) == (f"waits for group 'final' to fail: 1 completed (job {good})", "")
    (reason,) = explain.why(m.world, m.world.jobs[cleanup], wall=m.wall)
    assert reason.blockers == [good]
    assert m.store.jobs([cleanup])[0].reason_message == (
        f"group 'final', which it waits for to fail, has job {good}, which completed"
    )


def test_a_group_with_a_blocked_member_names_it(m: Machine) -> None:
    [root] = m.add("root").added
    stuck = m.add("stuck", after=((root, OK, False),), dep_groups=("final",)).added[0]
    reports = [after(m, f"report {condition}", "final", condition) for condition in (OK, ANY, NOT_OK)]
    m.end(root, exit_code=1)
    for report in reports:
        assert m.states(report) == [State.BLOCKED]
        assert f"1 is blocked (job {stuck})" in told(m, report)[0]
        assert told(m, report)[1] == f"rota why {stuck}"
        assert f"has job {stuck}, which is blocked itself" in (m.store.jobs([report])[0].reason_message or "")
