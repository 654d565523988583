"""Removing jobs: of a selection those that have ended, and more only where that is said; what is named goes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.answers import Acted
from rota.core.events import JobsRemoved
from rota.core.jobs.job import Condition
from rota.core.jobs.outcome import Outcome
from rota.core.jobs.removal import would_remove
from rota.core.states import LEASED, TERMINAL, State
from rota.core.world import NO_JOB
from rota.errors import BadInput
from rota.plan.size import Size
from tests.core.machine import Machine
from tests.dose import dose

OK = Condition.OK


@pytest.fixture
def m() -> Machine:
    machine = Machine(cpus=400)
    machine.with_runner()
    return machine


def some(m: Machine) -> tuple[list[int], list[int], int]:
    """Jobs that have ended, jobs that wait, and one that runs."""
    complete, failed = m.add("complete", "failed").added
    m.end(complete)
    m.end(failed, exit_code=1)
    (running,) = m.add("running", size=Size(cpus=400)).added
    ready, held = m.add("ready", "held", size=Size(cpus=400)).added
    m.do("hold", held)
    (dependent,) = m.add("dependent", after=((ready, OK, False),)).added
    assert m.states(running, ready, held, dependent) == [State.RUNNING, State.READY, State.HELD, State.DEPENDENT]
    return [complete, failed], [ready, held, dependent], running


def select(m: Machine, *jobs: int, **how: Any) -> Acted:
    """Remove a selection, in which nobody is named."""
    return m.do("remove", *jobs, named=frozenset(), **how)


def test_of_a_selection_those_that_have_ended_are_removed_and_the_others_counted(m: Machine) -> None:
    ended, waiting, running = some(m)
    acted = select(m, *ended, running, *waiting)
    assert (acted.changed, acted.unchanged, acted.kept) == (ended, [running, *waiting], 4)
    assert m.states(running, *waiting) == [State.RUNNING, State.READY, State.HELD, State.DEPENDENT]
    assert m.store.jobs(ended) == []


def test_those_that_wait_are_removed_only_where_that_is_said(m: Machine) -> None:
    ended, waiting, running = some(m)
    acted = select(m, *ended, running, *waiting, waiting=True)
    assert (sorted(acted.changed), acted.unchanged, acted.kept) == (sorted(ended + waiting), [running], 1)
    m.end(running)
    assert m.state(running) is State.COMPLETE


def test_a_waiting_job_that_is_named_is_refused_with_the_way_to_do_it(m: Machine) -> None:
    ended, (ready, _held, dependent), running = some(m)
    for job in (ready, dependent):
        with pytest.raises(BadInput, match=f"job {job} is .*: it has not ended; .*rota remove --waiting {job}"):
            m.do("remove", *ended, job)
    with pytest.raises(BadInput, match=f"job {running} is running; kill it first: rota kill {running}"):
        m.do("remove", *ended, running, waiting=True)
    assert len(m.store.jobs(ended)) == len(ended), "nothing was removed"
    with pytest.raises(BadInput, match=f"job {dependent} waits for job {ready}; .*--cascade {ready}"):
        m.do("remove", ready, waiting=True)
    assert m.do("remove", ready, dependent, waiting=True).changed == [ready, dependent]


def test_an_ended_job_that_others_wait_for_is_kept_with_them(m: Machine) -> None:
    (parent,) = m.add("parent").added
    (child,) = m.add("child", after=((parent, OK, False),)).added
    (other,) = m.add("other").added
    m.end(parent, exit_code=1)
    m.end(other, exit_code=1)
    assert m.state(child) is State.BLOCKED
    acted = select(m, parent, child, other)
    assert (acted.changed, acted.unchanged, acted.kept) == ([other], [parent, child], 2)
    with pytest.raises(BadInput, match=f"job {child} waits for job {parent}"):
        m.do("remove", parent)
    assert select(m, parent, cascade=True).changed == [parent, child]


def test_members_of_a_group_that_is_waited_for_are_kept(m: Machine) -> None:
    good, bad = m.add("good", "bad", dep_groups=("all",)).added
    (report,) = m.add("report", after=(("all", OK, False),), dep_groups=("reports",)).added
    (last,) = m.add("last", after=(("reports", OK, False),)).added
    m.end(good)
    m.end(bad, Outcome(exit_code=1))
    assert m.states(report, last) == [State.BLOCKED, State.BLOCKED]
    m.do("hold", last)
    assert select(m, good, bad, report, waiting=True).changed == [good], "the last one stays, and all it waits for"
    assert sorted(select(m, bad, report, last, waiting=True).changed) == [bad, report, last]


def test_a_job_that_is_gone_already_is_neither_removed_nor_kept(m: Machine) -> None:
    (job,) = m.add("job").added
    m.end(job)
    m.do("remove", job)
    acted = m.do("remove", job)
    assert (acted.changed, acted.unchanged, acted.kept) == ([], [job], 0)


# ------------------------------------------------------------------ the whole class


@dose(30)
@given(data=st.data())
def test_whatever_is_removed_nothing_goes_that_was_not_meant(data: st.DataObject) -> None:
    m = Machine(cpus=200)
    m.with_runner()
    jobs: list[int] = []
    for n in range(data.draw(st.integers(1, 8), label="jobs")):
        parents = data.draw(st.lists(st.sampled_from(jobs), max_size=2, unique=True)) if jobs else []
        jobs += m.add(f"job {n}", after=tuple((each, OK, False) for each in parents)).added
        for job in data.draw(st.lists(st.sampled_from(sorted(m.running())), unique=True)) if m.running() else []:
            m.end(job, exit_code=data.draw(st.integers(0, 1)))
    for job in data.draw(st.lists(st.sampled_from(jobs), unique=True), label="held"):
        m.do("hold", job)
    chosen = data.draw(st.lists(st.sampled_from(jobs), unique=True), label="chosen")
    named = frozenset(data.draw(st.lists(st.sampled_from(chosen), unique=True)) if chosen else ())
    waiting, cascade = data.draw(st.booleans(), label="waiting"), data.draw(st.booleans(), label="cascade")
    before = {job: m.state(job) for job in jobs}
    how = {"named": named, "waiting": waiting, "cascade": cascade}
    event = JobsRemoved(by=m.asker(), jobs=sorted(chosen), loaded=m.load(chosen), **how)
    try:
        foretold = would_remove(m.world, event)
    except BadInput as error:
        with pytest.raises(BadInput, match=str(error).partition(";")[0]):
            m.do("remove", *sorted(chosen), **how)
        assert {job: m.state(job) for job in jobs} == before, "a refusal changes nothing"
        assert named or cascade, "a selection is never refused"
        return
    acted = m.do("remove", *sorted(chosen), **how)
    assert acted == foretold
    gone = {job for job in jobs if m.world.outcome(job) == NO_JOB}
    assert gone == set(acted.changed)
    assert named <= gone, "what is named goes"
    for job in gone:
        assert before[job] not in LEASED
        assert before[job] in TERMINAL or waiting or (cascade and (job not in chosen or len(chosen) > 1))
    assert acted.kept == len([job for job in chosen if job not in gone])
    for job in jobs:
        if job not in gone:
            assert m.state(job) is before[job] or before[job] not in TERMINAL
