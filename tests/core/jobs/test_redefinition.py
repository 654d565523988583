"""Jobs that never started become others: their keys follow, and what waits for them still does."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core import events
from rota.core.answers import Acted
from rota.core.jobs.element import Element
from rota.core.jobs.job import After, Condition, Job
from rota.core.states import State
from rota.core.submit.identity import redefined_keys, spec_keys
from rota.errors import BadInput, NotFound
from rota.plan.size import Size
from tests.core.machine import Entry, Machine, spec


@pytest.fixture
def m() -> Machine:
    """Its one runner is busy, so that whatever is added waits."""
    machine = Machine()
    machine.with_runner()
    machine.add("busy", size=Size(cpus=400), priority=255)
    return machine


def modify(m: Machine, *ids: int, **changes: Any) -> Acted:
    acted: Acted = m.answer(m.modify(*ids, **changes))
    return acted


def put(m: Machine, *cmds: str, **fields: Any) -> list[int]:
    return m.add(*cmds, **fields).added


def restarted(m: Machine) -> Machine:
    m.crash()
    for runner in m.runners.values():
        m.join(runner)
    m.pump()
    return m


def test_a_job_with_another_command_is_known_by_it_also_after_a_crash(m: Machine) -> None:
    (id,) = put(m, "old")
    assert modify(m, id, cmd="new").changed == [id]
    for _crash in range(2):
        assert m.world.jobs[id].cmd == "new"
        assert m.add("new").existing == [id]
        restarted(m)
    (again,) = m.add("old").added
    assert again != id, "the old command is nobody's any more"
    assert modify(m, id, cmd="new").unchanged == [id]


def test_an_argument_list_and_an_element_of_an_array_stay_apart(m: Machine) -> None:
    m.answer(m.send_chunk([Entry("a", spec(), element=(0, n)) for n in (1, 2)]))
    first, second = sorted(m.world.jobs)[-2:]
    assert modify(m, first, second, cmd=["b", "c"]).changed == [first, second]
    assert m.world.jobs[first].key != m.world.jobs[second].key
    assert modify(m, first, cmd="b c").changed == [first], "text is another command than the same words in a list"


def test_equal_entries_that_move_together_stay_the_same_entries(m: Machine) -> None:
    m.answer(m.send_chunk([Entry("a", spec()) for _ in range(3)]))
    ids = sorted(m.world.jobs)[-3:]
    assert modify(m, *ids, cwd="/moved").changed == ids
    again = m.answer(m.send_chunk([Entry("a", spec(cwd="/moved")) for _ in range(3)]))
    assert (again.existing, again.added) == (ids, [])


def test_a_key_in_use_is_refused_and_nothing_changes(m: Machine) -> None:
    one, two, three = put(m, "one", "two", "three")
    keys = dict(m.world.keys)
    with pytest.raises(BadInput, match=f"job {one} would be the same as job {two}"):
        modify(m, one, cmd="two", priority=9)
    with pytest.raises(BadInput, match=f"jobs {one} and {three} would be the same"):
        modify(m, one, three, cmd="four")
    assert m.world.keys == keys
    assert m.world.jobs[one].spec.priority == 0


def test_a_key_of_a_job_that_ended_is_in_use_until_it_is_removed(m: Machine) -> None:
    (done,) = m.running()
    (id,) = put(m, "waits")
    m.do("hold", id)
    m.end(done)
    restarted(m)
    assert done not in m.world.jobs, "only the store knows of it"
    with pytest.raises(BadInput, match=f"the same as job {done}"):
        modify(m, id, cmd="busy")
    m.do("remove", done)
    assert modify(m, id, cmd="busy").changed == [id]


def test_a_key_that_nobody_looked_up_is_not_taken(m: Machine) -> None:
    (id,) = put(m, "a")
    job, by = m.world.jobs[id], m.asker()
    asked = events.Redefinition(cmd="b", owners={"another key": 0})
    specs = {job.spec_id: (job.spec_id, job.spec)}
    m.happened(
        events.JobsModified(by=by, jobs=[id], loaded={}, specs=specs, fields=["cmd"], redefinition=asked),
    )
    with pytest.raises(BadInput, match="changed meanwhile"):
        m.answer(by.n)
    assert (job.cmd, m.world.keys[job.key]) == ("a", id)


def test_what_has_run_stays_what_it_is(m: Machine) -> None:
    (busy,) = m.running()
    m.end(busy, exit_code=1)
    answer = modify(m, busy, cmd="other")
    assert (answer.changed, answer.unchanged) == ([], [busy])
    assert "has been started before" in answer.warnings[0]
    (runs,) = put(m, "runs")
    assert modify(m, runs, cmd="other").unchanged == [runs]


def test_a_lease_that_was_handed_back_is_no_start() -> None:
    m = Machine()
    runner = m.with_runner()
    m.add_quietly("a")
    m.commit()
    job = m.world.jobs[1]
    assert (job.state, job.attempt) == (State.SCHEDULED, 1)
    lease = events.LeaseRef(1, 1, job.lease.token)
    m.happened(
        events.RunnerReported(runner=runner.id, seq=1, started=[], ended=[], returned=[lease], closed=[]),
        events.JobsHeld(by=m.asker(), jobs=[1]),
    )
    assert (job.state, job.attempt) == (State.HELD, 1)
    assert modify(m, 1, cmd="b").unchanged == [1], "that it was handed back is not on disk yet"
    while m.commit():
        pass
    assert modify(m, 1, cmd="b").changed == [1]


# ------------------------------------------------------------------ dependencies


def after(m: Machine, id: int) -> list[Any]:
    return [each.parent for each in m.world.jobs[id].after]


def test_other_parents_hold_or_release_a_job_at_once(m: Machine) -> None:
    one, two = put(m, "one", "two")
    (child,) = put(m, "child")
    assert modify(m, child, after=((one, Condition.OK), (two, Condition.ANY))).changed == [child]
    for _crash in range(2):
        assert m.state(child) is State.DEPENDENT
        assert after(m, child) == [one, two]
        restarted(m)
    m.do("kill", one)
    assert m.state(child) is State.BLOCKED
    assert modify(m, child, after=((two, Condition.ANY),)).changed == [child]
    assert m.state(child) is State.DEPENDENT
    assert modify(m, child, after=()).changed == [child]
    assert m.state(child) is State.READY
    assert restarted(m).state(child) is State.READY


def test_a_held_job_waits_for_its_new_parents_once_it_is_released(m: Machine) -> None:
    one, child = put(m, "one", "child")
    m.do("hold", child)
    modify(m, child, after=((one, Condition.OK),))
    assert m.state(child) is State.HELD
    m.do("release", child)
    assert m.state(child) is State.DEPENDENT


def test_a_cycle_is_refused_and_named(m: Machine) -> None:
    (first,) = put(m, "first")
    (second,) = put(m, "second", after=((first, Condition.OK, False),))
    (third,) = put(m, "third", after=((second, Condition.OK, False),))
    with pytest.raises(BadInput, match="dependencies form a cycle: job"):
        modify(m, first, after=((third, Condition.OK),))
    with pytest.raises(BadInput, match="cycle"):
        modify(m, first, after=((first, Condition.OK),))
    assert after(m, first) == []


def test_a_cycle_through_a_group_is_refused(m: Machine) -> None:
    (member,) = put(m, "member", dep_groups=("g",))
    (waits,) = put(m, "waits", after=(("g", Condition.OK, False),))
    with pytest.raises(BadInput, match="own group 'g'"):
        modify(m, member, after=(("g", Condition.OK),))
    with pytest.raises(BadInput, match="cycle"):
        modify(m, member, after=((waits, Condition.OK),))
    assert m.state(member) is State.READY


def test_a_cycle_through_jobs_that_have_ended_is_refused(m: Machine) -> None:
    (first,) = put(m, "first")
    (second,) = put(m, "second", after=((first, Condition.OK, False),))
    (third,) = put(m, "third", after=((second, Condition.OK, False),))
    m.do("kill", second, third)
    restarted(m)
    assert second not in m.world.jobs, "a retry would make it wait for the first again"
    for parent in (second, third):
        with pytest.raises(BadInput, match="cycle"):
            modify(m, first, after=((parent, Condition.ANY),))
    (member,) = put(m, "member", dep_groups=("g",))
    assert modify(m, first, after=(("g", Condition.OK),)).changed == [first]
    with pytest.raises(BadInput, match="cycle"):
        modify(m, member, after=((third, Condition.ANY),))


def test_a_parent_that_is_not_there_is_refused(m: Machine) -> None:
    (id,) = put(m, "a")
    with pytest.raises(NotFound, match="there is no job 99"):
        modify(m, id, after=((99, Condition.OK),))
    with pytest.raises(NotFound, match="group 'nobody' has never had a member"):
        modify(m, id, after=(("nobody", Condition.OK),))


def test_a_live_group_opens_again_what_was_redefined_to_wait_for_it(m: Machine) -> None:
    (member,) = put(m, "member", dep_groups=("g",))
    (child,) = put(m, "child")
    modify(m, child, after=(("g", Condition.OK),), cmd="better child")
    m.do("kill", *m.running())
    for _ in range(2):
        m.end(next(iter(m.running())))
    assert m.states(member, child) == [State.COMPLETE, State.COMPLETE]
    (late,) = put(m, "late", dep_groups=("g",))
    assert m.state(child) is State.DEPENDENT
    m.end(late)
    m.end(child)
    assert m.world.outcome(child) == State.COMPLETE


# ------------------------------------------------------------------ beside submissions


def test_a_job_of_a_submission_under_way_is_left_alone(m: Machine) -> None:
    (id,) = put(m, "a")
    m.send_chunk([Entry("a", spec())], submission="u", last=False)
    with pytest.raises(BadInput, match="part of a submission that is under way"):
        modify(m, id, cmd="b")
    m.send_chunk([Entry("c", spec())], submission="v", last=False)
    (other,) = put(m, "other")
    with pytest.raises(BadInput, match="under way"):
        modify(m, other, cmd="c")
    m.answer(m.send_chunk([Entry("d", spec())], submission="u"))
    assert modify(m, id, cmd="b").changed == [id]


def test_the_place_among_equals_is_found_by_the_key() -> None:
    make = spec_keys(spec())
    moved = spec(cwd="/moved")
    for n in (0, 1, 7):
        job = Job(1, make("x", n, 3), spec(), 1, "x", State.READY, "s", 0.0, element=Element(1, 3))
        assert redefined_keys([(job, moved)], None) == {1: spec_keys(moved)("x", n, 3)}
        assert redefined_keys([(job, moved)], "y") == {1: spec_keys(moved)("y", 0, 3)}
        assert redefined_keys([(job, spec())], None) == {1: job.key}
    assert After(1) == After(1, Condition.OK)
