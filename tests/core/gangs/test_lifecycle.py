"""Gangs in the engine: members begin together, wait together and end by their rule."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core.effects import SendWork
from rota.core.gangs.gang_state import Gangs, find_gang
from rota.core.gangs.missing import missing_members
from rota.core.jobs.explain import why
from rota.core.jobs.job import Condition
from rota.core.jobs.outcome import Behaved, Outcome
from rota.core.machines.machine_events import MachineSet
from rota.core.states import State
from rota.errors import BadInput
from tests.core.gangs.lab import FAILED, READY, RUNNING, add, lab, reason, send, waits_for
from tests.core.machine import Entry, Machine, spec

# ------------------------------------------------------------------ together


def test_all_members_begin_in_one_batch() -> None:
    m = lab(2)
    send(m, "web", "db")
    sent = [effect for effect in m.open.effects or m.committing.effects if isinstance(effect, SendWork)]
    assert sorted(job.id for effect in sent for job in effect.jobs) == [1, 2]
    m.pump()
    assert m.states(1, 2) == [RUNNING, RUNNING]


def test_nobody_begins_while_a_host_is_missing() -> None:
    m = lab(2, simple=True)
    (other,) = m.add("other").added
    web, db = add(m, "web", "db")
    assert m.states(web, db) == [READY, READY]
    assert len(m.world.placement._seats) == 1, "nothing is held for a gang that waits"
    m.end(other)
    assert m.states(web, db) == [RUNNING, RUNNING]


def test_a_gang_is_ready_when_the_dependencies_of_all_members_hold() -> None:
    m = lab(3)
    (parent,) = m.add("parent").added
    entry = Entry("run g db", spec(gang="g", name="db"), waits_for(parent))
    web, db = add(m, "web", entries=[entry])
    assert m.states(web, db) == [State.DEPENDENT, State.DEPENDENT]
    m.crash()
    m.heal()
    assert m.states(web, db) == [State.DEPENDENT, State.DEPENDENT]
    m.end(parent)
    assert m.states(web, db) == [RUNNING, RUNNING]


def test_one_blocked_member_blocks_all() -> None:
    m = lab(3)
    (parent,) = m.add("parent").added
    entry = Entry("run g db", spec(gang="g", name="db"), waits_for(parent))
    web, db = add(m, "web", entries=[entry])
    m.end(parent, exit_code=1)
    assert m.states(web, db) == [State.BLOCKED, State.BLOCKED]
    assert reason(m, web) == "gang"
    m.crash()
    m.heal()
    assert m.states(web, db) == [State.BLOCKED, State.BLOCKED]
    m.do("retry", parent)
    assert m.states(web, db) == [State.DEPENDENT, State.DEPENDENT]
    m.end(parent)
    assert m.states(web, db) == [RUNNING, RUNNING]


def test_a_gang_that_is_blocked_when_it_is_added_is_blocked_whole() -> None:
    m = lab(3)
    (parent,) = m.add("parent").added
    m.end(parent, exit_code=1)
    entry = Entry("run g db", spec(gang="g", name="db"), waits_for(parent))
    assert m.states(*add(m, "web", entries=[entry])) == [State.BLOCKED, State.BLOCKED]


def test_elements_of_an_array_are_the_members() -> None:
    m = lab(3)
    entries = [Entry("run", spec(gang="g"), element=(0, index)) for index in (4, 5, 7)]
    ids = add(m, entries=entries)
    assert m.states(*ids) == [RUNNING] * 3
    gang = next(iter(m.world.use(Gangs).by_key.values()))
    assert list(gang.roles.values()) == ["4", "5", "7"]


def test_members_know_the_hosts_of_all() -> None:
    m = lab(2)
    web, db = add(m, "web", "db")
    for id in (web, db):
        assert m.world.jobs[id].lease.gang_hosts == "web=h1\ndb=h2"


def test_a_deployment_without_gangs_never_uses_the_feature() -> None:
    m = lab(2)
    (job,) = m.add("job").added
    m.end(job)
    assert m.world.find(Gangs) is None
    assert m.world.points.queued == ()


def test_an_ended_gang_is_forgotten() -> None:
    m = lab(2)
    web, db = add(m, "web", "db")
    m.end(web)
    m.end(db)
    assert m.states(web, db) == [State.COMPLETE, State.COMPLETE]
    assert m.world.use(Gangs).by_key == {}


# ------------------------------------------------------------------ when one fails


def test_kill_ends_all_when_one_fails_and_retries_nothing() -> None:
    m = lab(2)
    web, db = add(m, "web", "db", retries=3)
    m.end(web, exit_code=1)
    assert m.states(web, db) == [FAILED, FAILED]
    assert (reason(m, web), reason(m, db)) == ("exit", "gang")


def test_kill_ends_all_when_one_is_killed() -> None:
    m = lab(2)
    web, db = add(m, "web", "db", retries=3)
    m.do("kill", web)
    assert m.states(web, db) == [State.CANCELLED, FAILED]
    assert reason(m, db) == "gang"


def test_a_member_that_succeeds_leaves_the_others_alone() -> None:
    m = lab(2)
    web, db = add(m, "web", "db")
    m.end(web)
    assert m.states(web, db) == [State.COMPLETE, RUNNING]


def test_keep_lets_the_others_go_on() -> None:
    m = lab(2)
    web, db = add(m, "web", "db", retries=3, on_member_failure="keep")
    m.end(web, exit_code=1)
    assert m.states(web, db) == [FAILED, RUNNING]
    m.end(db)
    assert m.state(db) is State.COMPLETE


def test_retry_ends_all_and_queues_them_again_together() -> None:
    m = lab(2)
    web, db = add(m, "web", "db", retries=1, on_member_failure="retry")
    m.end(web, exit_code=1)
    assert m.states(web, db) == [State.DELAYED, State.DELAYED]
    assert [m.world.jobs[id].retries_left for id in (web, db)] == [0, 0]
    m.advance(3600)
    m.pump()
    assert m.states(web, db) == [RUNNING, RUNNING]
    m.end(db, exit_code=1)
    assert m.states(web, db) == [FAILED, FAILED]
    assert (reason(m, db), reason(m, web)) == ("exit", "gang")


def test_retry_needs_a_retry_of_every_member() -> None:
    m = lab(2)
    entries = [Entry(f"run {n}", spec(gang="g", name=n, retries=r, on_member_failure="retry")) for n, r in
               (("web", 1), ("db", 0))]  # fmt: skip
    web, db = add(m, entries=entries)
    m.end(web, exit_code=1)
    assert m.states(web, db) == [FAILED, FAILED]


def test_others_are_tried_again_whatever_their_own_failures_would_mean() -> None:
    m = lab(2)
    web, db = add(m, "web", "db", retries=1, on_member_failure="retry", retry_on=("exit",))
    m.end(web, exit_code=1)
    assert m.states(web, db) == [State.DELAYED, State.DELAYED]


def test_a_killed_member_is_not_tried_again_and_so_nobody_is() -> None:
    m = lab(2)
    web, db = add(m, "web", "db", retries=3, on_member_failure="retry")
    m.do("kill", db)
    assert m.states(web, db) == [FAILED, State.CANCELLED]


def test_a_silent_member_counts_only_on_proof() -> None:
    m = lab(2)
    web, db = add(m, "web", "db")
    runner, _seat = m.running()[db]
    m.die(runner)
    for _ in range(5):
        m.advance(30)
        for model in m.runners.values():
            if model.connected:
                model.report()
        m.pump()
    assert m.states(web, db) == [RUNNING, State.LOST]
    m.settle(runner)
    m.pump()
    assert m.states(web, db) == [FAILED, FAILED]
    assert (reason(m, web), reason(m, db)) == ("gang", "lost")


def test_a_failed_member_that_removes_itself_still_ends_the_others() -> None:
    m = lab(2)
    web, db = add(m, "web", "db", on_exit=("remove",))
    started = m.running()[web][0].busy[m.running()[web][1]].started_at
    done = (Behaved("remove", ok=True),)
    m.end(web, Outcome(exit_code=1, started_at=started, ended_at=m.wall, behaviours=done))
    assert m.state(db) in (FAILED, State.CANCELLED) or m.world.outcome(db) == 255


def _ends(m: Machine, job: int, **outcome: Any) -> None:
    """The command of a member ends, and its runner says so; nothing is committed."""
    model, seat = m.running()[job]
    model.end(seat, Outcome(**{"started_at": m.wall, "ended_at": m.wall, **outcome}), m.wall)
    model.report()
    m.hear(model)


@pytest.mark.parametrize(("held", "waits"), [(False, State.DELAYED), (True, State.HELD)])
def test_a_member_that_is_to_be_tried_again_fails_if_another_one_fails_for_good_meanwhile(
    held: bool, waits: State
) -> None:
    m = lab(2)
    web, db = add(m, "web", "db", on_member_failure="retry", retries=1)
    _ends(m, web, exit_code=1)
    if held:
        m.act("hold", web)
    assert m.states(web, db) == [waits, State.FINISHING]
    _ends(m, db, exit_code=127, reason="not_found", permanent=True)
    m.pump()
    assert m.states(web, db) == [FAILED, FAILED]
    assert (reason(m, web), reason(m, db)) == ("gang", "not_found")


def test_members_that_fail_together_are_tried_again_though_parts_of_one_are_left() -> None:
    m = lab(3)
    wide = Entry("w", spec(gang="g", name="wide", on_member_failure="retry", retries=1, request=("nodes=2",)))
    db, wide_job = add(m, "db", on_member_failure="retry", retries=1, entries=[wide])
    _ends(m, wide_job, exit_code=1)
    assert m.states(db, wide_job) == [RUNNING, State.FINISHING]
    _ends(m, db, exit_code=1)
    m.pump()
    assert m.states(db, wide_job) == [State.DELAYED, State.DELAYED]
    m.advance(60.0)
    m.pump()
    assert m.states(db, wide_job) == [RUNNING, RUNNING]


def test_a_member_that_is_frozen_while_it_is_ended_with_the_others_ends() -> None:
    m = lab(2)
    web, db = add(m, "web", "db")
    (runner, _seat) = m.running()[db]
    m.act("suspend", db)
    m.commit()
    runner.deliver()
    runner.report()  # on its way: it stands still
    _ends(m, web, exit_code=1)
    m.pump()
    assert m.states(web, db) == [FAILED, FAILED]
    assert (reason(m, web), reason(m, db)) == ("exit", "gang")


# ------------------------------------------------------------------ what people do


def test_cancelling_one_waiting_member_cancels_all() -> None:
    m = lab(1, simple=True)
    web, db = add(m, "web", "db", allow_unsatisfiable=True)
    assert sorted(m.do("kill", db).changed) == [web, db]
    assert m.states(web, db) == [State.CANCELLED, State.CANCELLED]
    assert m.world.placement.gangs == {}


def test_holding_and_releasing_one_member_does_so_to_all() -> None:
    m = lab(2)
    (other,) = m.add("other").added
    web, db = add(m, "web", "db")
    m.do("hold", web)
    assert m.states(web, db) == [State.HELD, State.HELD]
    m.end(other)
    assert m.states(web, db) == [State.HELD, State.HELD]
    m.do("release", db)
    assert m.states(web, db) == [RUNNING, RUNNING]


def test_removing_one_waiting_member_is_refused() -> None:
    m = lab(1)
    web, db = add(m, "web", "db", allow_unsatisfiable=True)
    with pytest.raises(BadInput, match="removed as a whole"):
        m.do("remove", web, waiting=True)
    assert m.states(web, db) == [READY, READY]
    m.do("remove", web, db, waiting=True)
    assert m.world.use(Gangs).by_key == {}


def test_modifying_one_waiting_member_is_refused_and_all_is_not() -> None:
    m = lab(1, simple=True)
    web, db = add(m, "web", "db", allow_unsatisfiable=True)
    with pytest.raises(BadInput, match="modified as a whole"):
        m.answer(m.modify(web, priority=3))
    m.answer(m.modify(web, db, priority=3))
    assert m.world.placement.gangs[web].rank.priority == 3


def test_suspend_and_resume_act_on_all() -> None:
    m = lab(2)
    web, db = add(m, "web", "db")
    m.do("suspend", web)
    assert m.states(web, db) == [State.SUSPENDED, State.SUSPENDED]
    m.do("resume", db)
    m.pump()
    assert m.states(web, db) == [RUNNING, RUNNING]


def test_resuming_waits_for_the_cores_of_all() -> None:
    m = lab(2, simple=True)
    web, db = add(m, "web", "db")
    m.do("suspend", web)
    placement = m.world.placement
    granted: list[int] = []
    placement.resumes = lambda job, away: granted.append(job)
    m.do("resume", web)
    assert sorted(granted) == [web, db]
    placement._resumed = [web]
    m.advance(1)
    m.pump()
    assert m.states(web, db) == [State.SUSPENDED, State.SUSPENDED]
    placement._resumed = [db]
    m.advance(1)
    m.pump()
    assert m.states(web, db) == [RUNNING, RUNNING]


def test_more_walltime_for_one_member_is_more_for_all() -> None:
    m = lab(2)
    web, db = add(m, "web", "db", walltime_s=100.0)
    m.do("walltime", web, seconds=60.0, relative=True)
    assert [m.world.jobs[id].lease.given.walltime_s for id in (web, db)] == [160.0, 160.0]


def test_retrying_an_ended_gang_brings_it_back_whole() -> None:
    m = lab(2)
    web, db = add(m, "web", "db")
    m.end(web, exit_code=1)
    m.do("retry", web, db)
    assert m.states(web, db) == [RUNNING, RUNNING]


@pytest.mark.parametrize("simple", [False, True])
def test_members_of_an_ended_gang_that_are_retried_one_by_one_begin_together(simple: bool) -> None:
    m = lab(2, simple=simple)
    first, second = (m.add(name).added[0] for name in ("first", "second"))
    web, db = add(m, "web", "db")
    m.do("kill", web)
    assert m.states(web, db) == [State.CANCELLED] * 2
    m.do("retry", web)
    m.do("retry", db)
    m.end(first)
    assert m.states(web, db) == [READY, READY]
    m.end(second)
    assert m.states(web, db) == [RUNNING, RUNNING]


def test_a_member_that_is_retried_later_and_depends_on_a_job_keeps_the_other_waiting() -> None:
    m = lab(2)
    first, second = (m.add(name).added[0] for name in ("first", "second"))
    web, db = add(m, "web", entries=[Entry("run g db", spec(gang="g", name="db"), waits_for(second))])
    m.do("kill", web)
    m.do("retry", web)
    m.do("retry", db)
    assert m.states(web, db) == [State.DEPENDENT] * 2
    m.end(first)
    assert m.states(web, db) == [State.DEPENDENT] * 2
    m.end(second)
    assert m.states(web, db) == [RUNNING, RUNNING]


def test_a_failed_member_is_not_retried_while_others_run() -> None:
    m = lab(2)
    web, db = add(m, "web", "db", on_member_failure="keep")
    m.end(web, exit_code=1)
    assert m.do("retry", web).unchanged == [web]
    assert m.states(web, db) == [FAILED, RUNNING]


def test_why_names_the_members_that_are_missing() -> None:
    m = lab(3)
    (parent,) = m.add("parent").added
    entry = Entry("run g db", spec(gang="g", name="db"), waits_for(parent, Condition.ANY))
    web, _db = add(m, "web", entries=[entry])
    (found,) = why(m.world, m.world.jobs[web], wall=m.wall)
    assert found.code == "gang"
    assert "db" in found.message


# ------------------------------------------------------------------ leases that come back


def test_a_lease_that_is_handed_back_releases_all_and_costs_nothing() -> None:
    m = lab(2)
    for model in m.runners.values():
        model._use_seats = lambda now: None  # nothing starts
    web, db = add(m, "web", "db")
    assert set(m.states(web, db)) <= {State.STARTING, State.SCHEDULED}
    model = next(each for each in m.runners.values() if any(g.lease[0] == db for g in each.waiting))
    for each in m.runners.values():
        del each._use_seats
    model.give_back(0)
    m.pump()
    for each in m.runners.values():
        each._use_seats(m.wall)
    m.pump()
    assert m.states(web, db) == [RUNNING, RUNNING]
    assert [m.world.jobs[id].tries for id in (web, db)] == [0, 0]
    m.run_out()
    assert m.states(web, db) == [State.COMPLETE, State.COMPLETE]


def test_the_member_whose_machine_is_busy_is_missing() -> None:
    m = lab(2)
    m.add("other", request=("{host = 'h1'}/host=1",))
    fields = {
        host: {"gang": "g", "name": host, "request": (f"{{host = '{host}'}}/host=1",)} for host in m.capacity
    }
    entries = [Entry(f"run {host}", spec(**its)) for host, its in fields.items()]
    jobs = m.answer(m.send_chunk(entries, fresh=True)).added
    m.pump()
    gang = find_gang(m.world, jobs[0])
    assert gang is not None
    assert missing_members(m.world, gang) == jobs[:1]


def test_a_gang_that_waits_for_a_broken_machine_says_so() -> None:
    m = lab(2)
    m.happened(MachineSet(by=m.asker(), operator=True, hosts=["h2"], condition="broken", reason="no fan"))
    ids = add(m, "web", "db", walltime_s=60.0)
    for id in ids:
        (cause, *_more) = why(m.world, m.world.jobs[id], wall=m.wall)
        assert cause.code == "condition"
        assert "h2 is broken (no fan)" in cause.message
    m.happened(MachineSet(by=m.asker(), operator=True, hosts=["h2"], condition="automated"))
    m.pump()
    assert m.states(*ids) == [RUNNING] * 2
