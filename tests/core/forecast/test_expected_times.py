"""One answer to when jobs begin and end: it follows from what runs, waits and is planned."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.core import events
from rota.core.forecast import expected_times as core_expected
from rota.core.forecast.expectation import RESTING, Expected, snapshot
from rota.core.forecast.expected_times import Expectations
from rota.core.jobs.explain import why
from rota.core.jobs.job import Condition
from rota.core.states import LIVE
from rota.plan.need import LimitUse
from rota.plan.policy.limits import Limit, Window
from rota.plan.size import Size
from tests.core.machine import GIB, Machine

_DAY = 86_400.0


def machine(**fields: Any) -> Machine:
    made = Machine(**{"cpus": 200, **fields})
    made.wall += _DAY - made.wall % _DAY  # midnight
    made.with_runner()
    return made


def expectations(m: Machine) -> Expectations:
    return Expectations(snapshot(m.world, None, now=m.mono, wall=m.wall))


def expected(m: Machine, job: int) -> Expected:
    return expectations(m).of(m.world.jobs[job])


def code(m: Machine, job: int) -> str | None:
    unknown = expected(m, job).unknown
    return None if unknown is None else unknown.code


def add(m: Machine, *cmds: str, time_s: float | None = None, **fields: Any) -> list[int]:
    size = fields.pop("size", Size(cpus=100, time_s=time_s or 3600.0))
    given = () if time_s is None else ("time",)
    return m.add(*cmds, size=size, given=given, **fields).added


def taught(m: Machine, cmd: str, seconds: float, **fields: Any) -> None:
    """Three such jobs took so long."""
    for _ in range(3):
        (job,) = add(m, cmd, fresh=True, **fields)
        m.advance(seconds)
        m.end(job)


# ------------------------------------------------------------------ lengths


def test_a_job_that_runs_ends_at_its_walltime_where_nothing_else_is_known() -> None:
    m = machine()
    (job,) = add(m, "work", walltime_s=300.0)
    m.advance(20)
    assert expected(m, job) == Expected(None, m.wall + 280)


def test_a_job_ends_when_jobs_like_it_did_not_when_its_walltime_would_end_it() -> None:
    m = machine()
    taught(m, "work", 60.0, walltime_s=300.0)
    (job,) = add(m, "work", fresh=True, walltime_s=300.0)
    assert expected(m, job).end == pytest.approx(m.wall + 60)
    m.wall += 100
    assert expected(m, job).end == pytest.approx(m.wall + 200)  # longer than any: until its walltime


def test_jobs_that_asked_for_another_time_are_not_like_it() -> None:
    m = machine()
    taught(m, "work", 60.0, walltime_s=300.0)
    (job,) = add(m, "work", fresh=True, walltime_s=7200.0)
    assert expected(m, job).end == m.wall + 7200


def test_of_a_job_of_which_nobody_knows_how_long_it_takes_it_is_said_that_nobody_knows() -> None:
    m = machine()
    jobs = add(m, "a", "b", "c")
    assert [code(m, job) for job in jobs] == ["no_estimate"] * 3
    assert expected(m, jobs[0]).end is None


def test_a_job_that_has_run_for_longer_than_it_was_said_to_is_overdue() -> None:
    m = machine()
    (job,) = add(m, "a", time_s=60.0)
    assert expected(m, job).end == m.wall + 60
    m.wall += 61
    assert code(m, job) == "overdue"


# ------------------------------------------------------------------ waiting


def test_jobs_that_wait_begin_one_after_the_other_as_places_become_free() -> None:
    m = machine()
    jobs = add(m, *"abcdef", time_s=60.0)
    starts = [expected(m, job).start for job in jobs[2:]]
    assert starts == [m.wall + 60, m.wall + 60, m.wall + 120, m.wall + 120]


def test_memory_that_lets_fewer_run_at_once_than_there_are_cores_is_seen() -> None:
    m = machine(cpus=400, mem=8 * GIB)
    jobs = add(m, *"abcd", time_s=60.0, size=Size(cpus=100, mem=4 * GIB, time_s=60.0))
    assert [expected(m, job).start for job in jobs[2:]] == [m.wall + 60, m.wall + 60]


def test_a_window_decides_when_a_job_begins_and_when_its_group_ends() -> None:
    m = machine()
    m.happened(events.LimitsDeclared(limits=[Limit("night", None, Window(22 * 60, 6 * 60))]))
    m.wall += 12 * 3600.0
    m.advance(1)
    (quick,) = add(m, "quick", time_s=15.0, group="mix")
    (night,) = add(m, "night", time_s=60.0, group="mix", limits=(LimitUse("night"),))
    opens = m.wall - m.wall % _DAY + 22 * 3600
    assert expected(m, quick).end == m.wall + 15
    assert expected(m, night) == Expected(opens, opens + 60)
    assert expectations(m).group_end == {"mix": opens + 60}


def test_a_full_limit_lets_its_jobs_begin_one_after_the_other() -> None:
    m = machine()
    m.happened(events.LimitsDeclared(limits=[Limit("one", 1)]))
    jobs = add(m, *"abc", time_s=60.0, limits=(LimitUse("one"),))
    (other,) = add(m, "d", time_s=60.0)
    assert [expected(m, job).start for job in jobs[1:]] == [m.wall + 60, m.wall + 120]
    assert expected(m, other).end == m.wall + 60


def test_of_a_job_that_waits_for_a_group_without_members_no_start_is_known() -> None:
    m = machine()
    (job,) = add(m, "a", time_s=60.0, after=(("nobody", Condition.OK, True),), allow_empty_group=True)
    found = expected(m, job)
    assert (found.start, found.end) == (None, None)
    assert found.unknown is not None
    assert found.unknown.message == "group 'nobody' has no expected end: nothing has joined it yet"


def test_a_job_waits_for_room_from_the_end_of_those_it_depends_on() -> None:
    m = machine()
    (first,) = add(m, "a", time_s=60.0)
    (second,) = add(m, "b", time_s=30.0, after=((first, Condition.OK, False),))
    (third,) = add(m, "c", time_s=10.0, after=((second, Condition.OK, False),))
    assert expected(m, second) == Expected(m.wall + 60, m.wall + 90)
    assert expected(m, third) == Expected(m.wall + 90, m.wall + 100)


def test_of_a_job_behind_one_that_is_held_nothing_is_said_but_why() -> None:
    m = machine()
    add(m, "x", "y", time_s=60.0)
    (first,) = add(m, "a", time_s=60.0)
    (second,) = add(m, "b", time_s=30.0, after=((first, Condition.OK, False),))
    m.do("hold", first)
    assert (code(m, first), code(m, second)) == ("held", "dependency")


def test_however_long_a_chain_is_only_the_job_at_fault_is_named() -> None:
    m = machine()
    add(m, "x", "y", time_s=60.0)
    (first,) = add(m, "a", time_s=60.0)
    last = first
    for number in range(5):
        (last,) = add(m, f"b{number}", time_s=30.0, after=((last, Condition.OK, False),))
    m.do("hold", first)
    unknown = expected(m, last).unknown
    assert unknown is not None
    assert unknown.message == f"job {first} has no expected end: held by ann"


def test_jobs_that_wait_for_each_other_follow_in_that_order_whichever_is_looked_at_first() -> None:
    m = machine()
    (first,) = add(m, "first", time_s=60.0)
    (last,) = add(m, "last", time_s=5.0, after=(("both", Condition.OK, True),), allow_empty_group=True)
    (second,) = add(m, "second", time_s=30.0, dep_groups=("both",), after=((first, Condition.OK, False),))
    (third,) = add(m, "third", time_s=10.0, dep_groups=("both",), after=((second, Condition.OK, False),))
    assert expected(m, third) == Expected(m.wall + 90, m.wall + 100)
    assert expected(m, last) == Expected(m.wall + 100, m.wall + 105)


def test_a_delayed_job_begins_when_it_is_due() -> None:
    m = machine()
    (job,) = add(m, "a", time_s=60.0, retries=1, backoff_s=500.0)
    m.advance(1)
    m.end(job, exit_code=1)
    due = m.world.jobs[job].due_at
    assert due is not None
    assert expected(m, job) == Expected(due, due + 60)


def test_while_the_manager_is_paused_only_what_runs_has_an_end() -> None:
    m = machine()
    jobs = add(m, *"abc", time_s=60.0)
    add(m, "d", time_s=60.0, group="other")
    m.happened(events.ManagerPaused())
    m.pump()
    assert expected(m, jobs[0]).end == m.wall + 60
    assert code(m, jobs[2]) == "paused"
    found = expectations(m)
    assert (found.group_end, set(found.group_unknown)) == ({}, {"default", "other"})


def test_a_job_that_no_host_could_run_has_no_start() -> None:
    m = machine()
    (job,) = add(m, "big", size=Size(cpus=800), allow_unsatisfiable=[0])
    assert code(m, job) == "no_resources"


def test_a_plan_is_followed_and_a_reservation_keeps_its_time() -> None:
    m = machine()
    later = m.wall + 5000
    (booked,) = add(m, "r", request=("core=2",), walltime_s=600.0, at=later)
    jobs = add(m, *"abcd", request=("core=1",), walltime_s=100.0)
    assert expected(m, booked) == Expected(later, later + 600)
    assert [expected(m, job).start for job in jobs[2:]] == [m.wall + 100] * 2


def test_jobs_that_a_plan_has_no_place_for_yet_go_before_those_of_worse_rank() -> None:
    m = machine()
    add(m, *"abcdefgh", request=("core=1",), walltime_s=100.0, priority=5)
    (last,) = add(m, "z", request=("core=1",), walltime_s=50.0)
    assert expected(m, last).start == m.wall + 400


def drain(m: Machine, *hosts: str, on: bool = True) -> None:
    m.happened(events.SiteChanged(changes=[("host", host, {"drain": on}) for host in hosts]))


def test_a_reservation_of_which_nothing_may_be_used_has_no_start_until_something_may() -> None:
    m = machine()
    later = m.wall + 500
    (booked,) = add(m, "r", request=("core=2",), walltime_s=600.0, at=later)
    drain(m, "h1")
    assert expected(m, booked).unknown == ("reservation", "h1 is drained")
    m.advance(520)
    assert code(m, booked) == "reservation"  # its time has come, and it does not begin
    drain(m, "h1", on=False)
    assert code(m, booked) is None


def test_a_reservation_of_which_something_is_missing_is_expected_when_it_would_begin_with_the_rest() -> None:
    m = machine(hosts=2)
    m.join(m.start_runner("h2"))
    m.pump()
    later = m.wall + 500
    (booked,) = add(m, "r", request=("host=2",), walltime_s=600.0, at=later)
    drain(m, "h2")
    start = expected(m, booked).start
    assert start is not None
    assert start > later
    m.advance(later - m.wall)
    m.pump()
    assert booked not in m.running()
    m.advance(start - m.wall)
    m.pump()
    assert booked in m.running()


def test_a_reservation_that_is_over_before_it_would_begin_with_the_rest_says_that_it_fails() -> None:
    m = machine(hosts=2)
    m.join(m.start_runner("h2"))
    m.pump()
    (booked,) = add(m, "r", request=("host=2",), walltime_s=120.0, at=m.wall + 500)
    drain(m, "h2")
    assert expected(m, booked).unknown == ("reservation", "h2 is drained")
    m.advance(520)
    m.pump()
    (reason,) = why(m.world, m.world.jobs[booked], wall=m.wall)
    lacks = "2 of its 4 cores are missing: h2 is drained"
    assert reason.message == f"its time has come, but {lacks}; if they do not come back it fails in 1m40s"
    m.advance(120)
    m.pump()
    assert m.store.jobs([booked])[0].reason_message == f"it did not begin in time: {lacks}"


def test_a_besteffort_job_ends_when_a_reservation_takes_its_place() -> None:
    m = machine()
    fields: Any = {"request": ("core=1",), "queue": "besteffort", "walltime_s": 1000.0}
    (low,) = add(m, "low", types=("besteffort",), **fields)
    (again,) = add(m, "again", types=("besteffort", "idempotent"), **fields)
    later = m.wall + 300
    add(m, "r", request=("core=2",), walltime_s=600.0, at=later)
    assert expected(m, low).end == later
    assert expected(m, again).end != later  # it begins anew


# ------------------------------------------------------------------ whatever is asked

_jobs = st.lists(
    st.fixed_dictionaries(
        {
            "group": st.sampled_from(["a", "b"]),
            "priority": st.integers(0, 1),
            "time_s": st.sampled_from([None, 30.0, 600.0]),
            "walltime_s": st.sampled_from([None, 60.0, 900.0]),
            "size": st.sampled_from([Size(cpus=100), Size(cpus=200), Size(cpus=50), Size(cpus=0)]),
            "limits": st.sampled_from([(), (LimitUse("two"),), (LimitUse("night"),)]),
            "parent": st.booleans(),
            "number": st.integers(1, 3),
            "planned": st.booleans(),
        }
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(_jobs, st.integers(0, 1000))
def test_nothing_is_expected_in_the_past_and_a_group_ends_with_its_last_job(
    wanted: list[dict[str, Any]], passed: int
) -> None:
    m = machine()
    limits = [Limit("two", 2), Limit("night", None, Window(22 * 60, 6 * 60))]
    m.happened(events.LimitsDeclared(limits=limits))
    m.wall += 12 * 3600.0
    m.advance(1)
    last: list[int] = []
    for number, each in enumerate(wanted):
        fields = dict(each)
        after = tuple((parent, Condition.OK, False) for parent in last[:1]) if fields.pop("parent") else ()
        time_s, size, planned = fields.pop("time_s"), fields.pop("size"), fields.pop("planned")
        given = () if time_s is None else ("time",)
        size = Size(cpus=size.cpus, time_s=time_s or 3600.0)
        types = ("idempotent",) if planned and size.cpus else ()
        cmds = [f"c{number}.{n}" for n in range(fields.pop("number"))]
        last = m.add(*cmds, size=size, given=given, after=after, types=types, **fields).added
    m.wall += passed
    found = expectations(m)
    ends: dict[str, list[float]] = {}
    unknown = set()
    for job in m.world.jobs.values():
        if job.state not in LIVE - RESTING.keys():
            continue
        one = found.of(job)
        assert one.end is not None or one.unknown is not None
        if one.start is not None:
            assert one.start >= m.wall
            assert one.end is None or one.end >= one.start
        if one.end is not None:
            assert one.end >= m.wall
            ends.setdefault(job.spec.group, []).append(one.end)
        else:
            unknown.add(job.spec.group)
    assert set(found.group_unknown) == unknown
    assert found.group_end == pytest.approx(
        {group: max(some) for group, some in ends.items() if group not in unknown}
    )


def test_of_very_many_jobs_that_wait_for_others_only_the_first_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(core_expected, "MOST_DEPENDENT", 2)
    m = machine()
    (first,) = add(m, "a", time_s=60.0)
    jobs = add(m, "b", "c", "d", "e", time_s=30.0, after=((first, Condition.OK, False),))
    assert [code(m, job) for job in jobs] == [None, None, "many", "many"]
    assert code(m, first) is None
    assert expectations(m).group_unknown.keys() == {m.world.jobs[first].spec.group}
