"""Members of gangs that a later submission names again: they stay what they were added as."""

from __future__ import annotations

from rota.core.gangs.gang_state import Gangs
from rota.core.jobs.job import Condition
from rota.core.states import State
from tests.core.gangs.lab import RUNNING, add, lab, waits_for
from tests.core.machine import Entry, Machine, spec


def waiting_gang(m: Machine) -> tuple[int, int, int]:
    """A parent that runs, and two members that wait for it."""
    (parent,) = m.add("parent").added
    entries = [Entry(name, spec(gang="g", name=name), waits_for(parent)) for name in ("web", "db")]
    web, db = add(m, entries=entries)
    return parent, web, db


def test_a_waiting_member_that_is_added_again_without_the_gang_stays_in_it() -> None:
    m = lab(3)
    parent, web, db = waiting_gang(m)
    answer = m.answer(m.send_chunk([Entry("web", spec(), waits_for(parent, Condition.ANY))]))
    assert (answer.existing, answer.changed) == ([web], [])
    assert f"job {web} keeps its own after, name, gang: " in answer.warnings[0]
    m.end(parent)
    assert m.states(web, db) == [RUNNING, RUNNING]
    m.end(web)
    m.end(db)
    assert m.world.use(Gangs).by_key == {}


def test_a_waiting_job_that_is_added_again_as_a_member_stays_alone() -> None:
    m = lab(3)
    (parent,) = m.add("parent").added
    (web,) = m.answer(m.send_chunk([Entry("web", spec(), waits_for(parent))])).added
    again = [Entry(name, spec(gang="g", name=name), waits_for(parent)) for name in ("web", "db")]
    answer = m.answer(m.send_chunk(again))
    assert (answer.existing, answer.changed) == ([web], [])
    assert f"job {web} keeps its own name, gang: " in answer.warnings[0]
    assert [gang.members for gang in m.world.use(Gangs).by_key.values()] == [answer.added]


def test_all_members_follow_when_one_that_is_added_again_waits_for_nothing_any_more() -> None:
    m = lab(3)
    (parent,) = m.add("parent").added
    its = [Entry("web", spec(gang="g", name="web"), waits_for(parent)), Entry("db", spec(gang="g", name="db"))]
    web, db = add(m, entries=its)
    assert m.world.jobs[db].state is State.DEPENDENT
    answer = m.answer(m.send_chunk([Entry("web", spec(gang="g", name="web"))]))
    assert answer.changed == [web]
    assert m.states(web, db) == [RUNNING, RUNNING]
