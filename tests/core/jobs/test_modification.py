"""Jobs that do not run are changed: in every state, in memory and on disk, and after a crash."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rota.core import events
from rota.core.answers import Acted
from rota.core.jobs.job import Condition, Job
from rota.core.rows import SpecRow
from rota.core.states import State
from rota.errors import NeverFits
from rota.plan.need import LimitUse
from rota.plan.policy.limits import Limit
from rota.plan.size import Size
from tests.core.machine import GIB, Entry, Machine, spec
from tests.core.test_properties import view


@pytest.fixture
def m() -> Machine:
    machine = Machine()
    machine.with_runner()
    return machine


def job(m: Machine, id: int) -> Job:
    return m.world.jobs.get(id) or m.load([id])[id]


def modify(m: Machine, *ids: int, input_bytes: int | None = None, **fields: Any) -> Acted:
    specs, rows = {}, []
    for id in ids:
        old = job(m, id)
        new = msgspec.structs.replace(old.spec, **fields)
        number = m._spec_ids.setdefault(new, len(m._spec_ids) + 1)
        rows.append(SpecRow(number, msgspec.json.encode(new).decode()))
        specs[old.spec_id] = (number, new)
    by = m.asker()
    m.happened(
        events.LibraryGrew(specs=rows, envs=[]),
        events.JobsModified(
            by=by, jobs=list(ids), loaded=m.load(list(ids)), specs=specs, fields=sorted(fields),
            input_bytes=input_bytes,
        ),
    )  # fmt: skip
    acted: Acted = m.answer(by.n)
    return acted


def counted(m: Machine) -> dict[tuple[str, str], int]:
    """(group, state) → jobs, as the world counts them."""
    return {
        (group, state.label): counts[state]
        for group, counts in m.world.counts.items()
        for state in State
        if counts[state]
    }


def restart(m: Machine) -> None:
    m.crash()
    for runner in m.runners.values():
        m.join(runner)
    m.pump()


def in_state(m: Machine, state: State) -> int:
    if state in (State.DEPENDENT, State.BLOCKED):
        parent = m.add("parent").added[0]
        id = m.add("cmd", after=((parent, Condition.OK, False),)).added[0]
        if state is State.BLOCKED:
            m.end(parent, exit_code=1)
        return id
    if state is State.READY:
        m.add("big", size=Size(cpus=400), priority=9)
        return m.add("cmd").added[0]
    id = m.add("cmd", retries=1 if state is State.DELAYED else 0).added[0]
    match state:
        case State.DELAYED | State.FAILED:
            m.end(id, exit_code=1)
        case State.CANCELLED:
            m.do("kill", id)
        case State.COMPLETE:
            m.end(id)
        case State.HELD:
            m.end(id)
            id = m.add("other", size=Size(cpus=400)).added[0]
            id = m.add("cmd 2").added[0]
            m.do("hold", id)
    assert m.state(id) is state
    return id


@pytest.mark.parametrize(
    "state",
    [State.DEPENDENT, State.BLOCKED, State.HELD, State.READY, State.DELAYED, State.FAILED, State.CANCELLED],
)
def test_what_waits_or_failed_is_changed_and_stays_so_after_a_crash(m: Machine, state: State) -> None:
    id = in_state(m, state)
    was = counted(m)["default", state.label]
    assert modify(m, id, group="moved", size=Size(cpus=200), priority=3).changed == [id]
    for _crash in range(2):
        found = job(m, id)
        assert (found.state, found.spec.group, found.spec.size.cpus) == (state, "moved", 200)
        assert counted(m)["moved", state.label] == 1
        assert counted(m).get(("default", state.label), 0) == was - 1
        restart(m)
    assert modify(m, id, group="moved").unchanged == [id]
    if state in (State.FAILED, State.CANCELLED):
        m.do("retry", id)
        assert counted(m)["moved", "running"] == 1
        m.end(id)
        restart(m)
        assert counted(m)["moved", "complete"] == 1


@pytest.mark.parametrize("state", [State.RUNNING, State.COMPLETE])
def test_what_runs_or_is_complete_stays_as_it_is(m: Machine, state: State) -> None:
    id = in_state(m, state)
    assert modify(m, id, group="moved").unchanged == [id]
    assert job(m, id).spec.group == "default"


def test_a_failed_job_changed_while_an_upload_wants_to_retry_it_is_retried_as_changed(m: Machine) -> None:
    id = in_state(m, State.FAILED)
    m.send_chunk([Entry("cmd", spec())], submission="u", last=False)
    m.pump()
    modify(m, id, group="moved", priority=3)
    m.answer(m.send_chunk([Entry("cmd 2", spec())], submission="u"))
    assert m.state(id) is State.RUNNING
    assert m.world.jobs[id].spec.group == "moved"
    m.end(id)
    recovered, memory = view(m.recovered()), view(m.world)
    assert recovered["finished"] == memory["finished"]


def test_a_ready_job_with_less_or_higher_priority_runs_where_it_could_not(m: Machine) -> None:
    m.add("wide", size=Size(cpus=300), priority=9)
    first, second = m.add("first", "second", size=Size(cpus=200)).added
    modify(m, second, size=Size(cpus=100))
    assert second in m.running()
    assert first not in m.running()


def test_limits_of_a_waiting_job_can_be_taken_away_and_given(m: Machine) -> None:
    m.happened(events.LimitsDeclared(limits=[Limit("a", 0)]))
    one, two = m.add("one", "two", limits=(LimitUse("a"),)).added
    modify(m, two, limits=())
    assert sorted(m.running()) == [two]
    modify(m, one, limits=(LimitUse("b"),))
    assert sorted(m.running()) == [one, two]


def test_what_never_fits_is_refused_and_changes_nothing(m: Machine) -> None:
    id = in_state(m, State.READY)
    with pytest.raises(NeverFits):
        modify(m, id, size=Size(mem=64 * GIB))
    assert job(m, id).spec.size == Size()


def test_the_size_of_the_input_is_kept(m: Machine) -> None:
    id = in_state(m, State.FAILED)
    assert modify(m, id, input_bytes=7).changed == [id]
    restart(m)
    assert job(m, id).input_bytes == 7


def test_members_of_a_group_count_once_whatever_is_changed(m: Machine) -> None:
    bad = m.add("bad", dep_groups=("g",)).added[0]
    m.end(bad, exit_code=1)
    modify(m, bad, group="moved")
    after = m.add("after", after=(("g", Condition.OK, False),)).added[0]
    assert m.state(after) is State.BLOCKED
    restart(m)
    m.do("retry", bad)
    m.end(bad)
    assert after in m.running()


def test_who_is_retried_before_its_modification_is_on_disk_runs_as_modified(m: Machine) -> None:
    (failed,) = m.add("false", fresh=True).added
    m.end(failed, exit_code=1)
    assert failed not in m.world.jobs
    m.happened(events.ManagerPaused())  # the batch that is being committed: what follows waits for the next one
    m.modify(failed, priority=5)
    m.act("retry", failed)
    assert m.world.jobs[failed].spec.priority == 5
    assert m.world.keys[m.world.jobs[failed].key] == failed
    m.pump()
    assert m.recovered().jobs[failed].spec.priority == 5
    assert m.store.jobs([failed])[0].spec_id == m.world.jobs[failed].spec_id


def test_a_modified_job_that_has_ended_leaves_memory_when_that_is_on_disk(m: Machine) -> None:
    (failed,) = m.add("false", fresh=True).added
    m.end(failed, exit_code=1)
    m.modify(failed, priority=5)
    assert failed in m.world.jobs
    m.pump()
    assert failed not in m.world.jobs
