"""Jobs that ask for more than a size, in the engine: who begins when, what survives, who is before whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from rota.core import events
from rota.core.attempts.leases import NodeFault
from rota.core.attempts.vacate_times import VacateTimes
from rota.core.engine_settings import EngineSettings
from rota.core.jobs.explain import why
from rota.core.jobs.job import Condition
from rota.core.jobs.outcome import Outcome
from rota.core.machines.energy_rules import EnergyRules
from rota.core.site.plan_facts import leases_out, rules_now
from rota.core.site.reservations import Reservations
from rota.core.states import State
from rota.errors import BadInput, NeverFits, NotGranted
from rota.manager.views import nodes
from rota.plan.ask import Ask, ask_of
from rota.plan.dispatch import plan_factory
from rota.plan.dispatch.planning import Planning
from rota.plan.explain.whatif import ask_snapshot
from rota.plan.need import LimitUse
from rota.plan.placement.given import Promised
from rota.plan.planner.planner import Planner
from rota.plan.policy.limits import Limit, Window
from rota.plan.size import Capacity, Size
from rota.units import about_duration
from tests.core.jobs.test_modification import modify
from tests.core.machine import GIB, Entry, Machine, spec
from tests.core.runners import Report
from tests.core.sleepers import Cluster


@pytest.fixture
def m() -> Machine:
    """Two cores, and a runner."""
    machine = Machine(cpus=200)
    machine.with_runner()
    return machine


def add(m: Machine, cmd: str = "true", **fields: Any) -> int:
    if "request" in fields and isinstance(fields["request"], str):
        fields["request"] = (fields["request"],)
    (job,) = m.add(cmd, fresh=True, **fields).added
    return job


def site(m: Machine, *changes: tuple[str, str, Any]) -> None:
    by = m.asker()
    m.happened(events.SiteChanged(by=by, changes=list(changes)))
    m.answer(by.n)


def running(m: Machine) -> set[int]:
    return set(m.running())


def planning(m: Machine) -> Planning:
    assert isinstance(m.world.placement, Planning)
    return m.world.placement


def given(m: Machine, job: int) -> str:
    lease = m.world.jobs[job].lease
    assert lease is not None
    assert lease.given is not None
    return lease.given.resources


def reason(m: Machine, job: int) -> str:
    (row,) = m.store.jobs([job])
    return str(row.reason_code)


# ------------------------------------------------------------------ idle means: nobody waits that fits


def test_what_is_only_asked_leaves_every_lease_the_core_that_it_has(m: Machine) -> None:
    """One that was packed, and is older, takes what those leave that a plan gave theirs."""
    first, _second = m.add("packed", "packed too", fresh=True).added
    planned = add(m, request="core=1")
    m.end(first)
    mine = given(m, planned)
    placement = planning(m)
    rules, leases = rules_now(m.world, m.wall), leases_out(m.world)
    outlook = plan_factory.outlook(rules, leases, placement._asks, placement._packing, m.wall)
    assert outlook.planner.plan.site.spans(outlook.planner.plan.entries[planned].resources) == mine
    own = [entry.resources for entry in outlook.planner.plan.running.values()]
    assert sum(own).bit_count() == sum(each.bit_count() for each in own) == 2


def test_parts_of_a_core_fill_it_whether_or_not_they_are_on_terms(m: Machine) -> None:
    half = Size(cpus=50)
    jobs = {add(m, size=half, types=types) for types in (("allowed=p",), (), ("idempotent",), ())}
    assert running(m) == jobs, "four halves fit two cores"
    assert add(m, size=half) not in running(m)


def test_a_new_job_starts_on_an_idle_machine_without_waiting_for_a_tick(m: Machine) -> None:
    job = add(m, request="core=1")
    assert running(m) == {job}


def test_who_waits_longest_gets_the_machine_that_becomes_free(m: Machine) -> None:
    busy = add(m, request="core=2")
    first, second = add(m, request="core=2"), add(m, request="core=2")
    m.end(busy)
    assert running(m) == {first}
    m.end(first)
    assert running(m) == {second}


def test_a_job_that_fits_elsewhere_does_not_take_what_another_waits_for() -> None:
    m = Machine(cpus=100, hosts=2)
    for host in ("h1", "h2"):
        m.join(m.start_runner(host))
    m.pump()
    busy = add(m, where="host = 'h1'")
    one = add(m, where="host = 'h1'")
    two, three = add(m, request="core=1"), add(m, request="core=1")
    assert running(m) == {busy, two}
    m.end(busy)
    assert running(m) == {two, one}
    m.end(two)
    assert running(m) == {one, three}


@pytest.mark.parametrize("plain", [False, True])
def test_a_newcomer_does_not_jump_the_queue_when_something_was_just_released(m: Machine, plain: bool) -> None:
    busy = add(m, request="core=2")
    waiting = add(m, request="core=2")
    model, seat = m.running()[busy]
    model.end(seat, Outcome(exit_code=0, started_at=m.wall, ended_at=m.wall), m.wall)
    model.report()
    late = m.send_chunk([Entry("late", m.world.jobs[waiting].spec)], fresh=True)
    if plain:
        m.add("plain", fresh=True)
    m.answer(late)
    assert running(m) == {waiting}


def test_a_job_starts_on_a_host_that_comes_later() -> None:
    m = Machine(cpus=100)
    m.with_runner()
    job = add(m, request="host=1/core=2", allow_unsatisfiable=True)
    assert m.state(job) is State.READY
    m.capacity["h2"] = Capacity(cpus=200, mem=8 * GIB, disk=GIB)
    m.happened(events.HostAppeared(host="h2", capacity=m.capacity["h2"]))
    m.join(m.start_runner("h2"))
    m.pump()
    assert running(m) == {job}


@pytest.mark.parametrize(
    ("record", "said", "undone"),
    [
        ({"drain": True}, "h1 is drained", "rota node set h1 --no-drain"),
        ({"drain": True, "reason": "new disks"}, "h1 is drained (new disks)", "rota node set h1 --no-drain"),
        ({"state": "absent"}, "h1 is absent", "rota node set h1 --state alive"),
        ({"state": "dead"}, "h1 is dead", "rota node set h1 --state alive"),
        ({"state": "suspected"}, "h1 is suspected", "rota node set h1 --state alive"),
    ],
)
def test_who_waits_for_a_host_that_may_not_be_used_is_told_why_and_how_to_undo_it(
    m: Machine, record: dict[str, Any], said: str, undone: str
) -> None:
    site(m, ("host", "h1", record))
    job = add(m)
    (reason,) = why(m.world, m.world.jobs[job], wall=m.wall)
    assert (reason.code, reason.hint) == ("no_resources", undone)
    assert reason.message.endswith(said)


def test_who_waits_for_a_host_that_a_hook_found_unfit_is_told_why(m: Machine) -> None:
    fault = NodeFault(7, 1, "prologue", "no disk")
    m.happened(msgspec.structs.replace(Report(0).event("r1"), faults=[fault]))
    for request in ("core=1,walltime=1", ()):
        (reason,) = why(m.world, m.world.jobs[add(m, request=request)], wall=m.wall)
        assert reason.message.endswith("h1 is suspected (job 7: no disk)")
        assert reason.hint == "rota node set h1 --state alive"


def test_who_waits_for_a_host_whose_runner_does_not_answer_is_told_so() -> None:
    m = Machine(hosts=1)
    m.with_runner()
    job = add(m, request="core=4,walltime=1")
    m.world.runners["r1"].connected = False
    site(m, ("host", "h1", {}))
    later = add(m, request="core=1,walltime=1")
    (reason,) = why(m.world, m.world.jobs[later], wall=m.wall)
    assert m.world.jobs[job].lease is not None
    assert reason.message.endswith("h1 is absent")


def leave(c: Cluster) -> None:
    c.happened(msgspec.structs.replace(Report(0).event(c.nodes["h1"].id), leaving=True))


@pytest.mark.parametrize("request_", [("core=1,walltime=1",), ()])
@pytest.mark.parametrize(
    ("word", "happens", "hint"),
    [
        ("absent", lambda c: c.disconnect(c.nodes["h1"]), "rota node add h1, or see 'rota node show h1'"),
        ("suspected", lambda c: c.advance(61.0), "rota node add h1, or see 'rota node show h1'"),
        ("dead", lambda c: (c.advance(61.0), c.advance(3601.0)), "rota node add h1, or see 'rota node show h1'"),
        ("leaving", leave, "rota node show h1"),
    ],
)
def test_who_waits_for_a_node_without_its_agent_is_told_in_the_word_of_the_node_list(
    word: str, happens: Callable[[Cluster], object], hint: str, request_: tuple[str, ...]
) -> None:
    c = Cluster(1, rules=EnergyRules())
    c.add("sleep", request=("core=1,walltime=5:00:00",))
    happens(c)
    c.commit()
    job = c.world.next_job
    c.add_quietly("true", request=request_)
    c.commit()
    (shown,) = nodes.view(nodes.snapshot(c.world))
    assert (shown.state, shown.usable) == (word, False)
    (reason,) = why(c.world, c.world.jobs[job], wall=c.wall)
    assert reason.message == f"too few of the resources it asks for may be used now: h1 is {word}"
    assert reason.hint == hint


def test_nothing_starts_on_a_drained_host_and_all_start_when_it_is_not_any_more(m: Machine) -> None:
    site(m, ("host", "h1", {"drain": True}))
    jobs = {add(m), add(m, request="core=1")}
    assert running(m) == set()
    site(m, ("host", "h1", None))
    assert running(m) == jobs


def test_a_host_that_is_said_to_be_dead_ends_what_runs_there_but_not_what_only_holds_it(m: Machine) -> None:
    job, holder = add(m, request="core=1", retries=3), add(m, request="core=1", types=("noop",))
    site(m, ("host", "h1", {"state": "dead"}))
    assert m.state(job) is State.CANCELLED
    assert m.state(holder) is State.RUNNING


# ------------------------------------------------------------------ from packing to planning and back


def test_the_plan_is_there_only_while_somebody_needs_it(m: Machine) -> None:
    plain = add(m)
    assert planning(m).planner is None
    planned = add(m, request="core=1")
    waiting = add(m)
    assert planning(m).planner is not None
    assert running(m) == {plain, planned}
    m.end(planned)
    assert running(m) == {plain, waiting}
    assert planning(m).planner is None
    m.end(plain)
    m.end(waiting)


def test_what_was_sent_ahead_before_there_was_a_plan_is_never_beside_what_the_plan_gives(m: Machine) -> None:
    for number in range(60):
        m.add(f"short {number}")
        for job in list(m.running())[:1]:
            m.end(job)
    m.send_chunk([Entry(f"more {n}", m.world.specs.get(1) or next(iter(m._spec_ids))) for n in range(40)])
    m.pump()
    planned = add(m, request="core=2")
    for _ in range(200):
        if not m.running():
            break
        m.end(next(iter(m.running())))
    assert m.state(planned) is State.COMPLETE
    assert m.unfinished() == []


def test_leases_of_a_runner_that_is_away_keep_their_cores_when_the_plan_opens(m: Machine) -> None:
    first, second = add(m), add(m)
    (model,) = m.runners.values()
    m.disconnect(model)
    planned = add(m, request="core=1")
    m.join(model)
    m.pump()
    assert running(m) == {first, second}
    m.end(first)
    assert running(m) == {second, planned}


def test_jobs_without_a_core_take_none_of_the_plan_but_their_memory_counts(m: Machine) -> None:
    without = [add(m, size=Size(cpus=0, mem=3 * GIB)) for _ in range(2)]
    first = add(m, request="core=2", size=Size(mem=GIB))
    assert running(m) == {*without, first}
    m.end(first)
    large = add(m, request="core=1", size=Size(mem=6 * GIB))
    assert running(m) == set(without)
    m.end(without[0])
    m.end(without[1])
    assert running(m) == {large}


# ------------------------------------------------------------------ limits


def test_a_job_outside_the_hours_of_its_limit_waits_and_holds_no_core(m: Machine) -> None:
    m.happened(events.LimitsDeclared(by=m.asker(), limits=[Limit("night", None, Window(60, 120))]))
    kept = add(m, request="core=2", limits=(LimitUse("night"),))
    other = add(m, request="core=2")
    assert running(m) == {other}
    m.end(other)
    assert running(m) == set()
    m.advance(3600.0)
    m.pump()
    assert running(m) == {kept}


def test_who_wants_a_limit_alone_holds_no_core_while_others_use_it(m: Machine) -> None:
    m.happened(events.LimitsDeclared(by=m.asker(), limits=[Limit("a", 5)]))
    user = add(m, request="core=1", limits=(LimitUse("a"),))
    alone = add(m, request="core=1", limits=(LimitUse("a", exclusive=True),))
    other = add(m, request="core=1")
    assert running(m) == {user, other}
    m.end(user)
    assert running(m) == {other, alone}


def test_a_reservation_that_a_limit_kept_back_does_not_share_its_core_with_a_later_job(m: Machine) -> None:
    first, kept = m.add(
        "a", "b", request=("core=1,walltime=1",), types=("allowed=p",), limits=(LimitUse("a"),), at=m.wall + 100
    ).added
    m.happened(events.LimitsDeclared(by=m.asker(), limits=[Limit("a", 1)]))
    m.advance(100.0)
    m.pump()
    assert running(m) == {first}
    plain = add(m, request="core=1,walltime=1")
    assert running(m) == {first, plain}
    m.end(first)
    other = add(m, request="core=1,walltime=1")
    assert running(m) == {plain, other}, "the reservation waits for the core that it was granted"
    m.end(plain)
    assert running(m) == {kept, other}
    add(m, request="core=1,walltime=1")
    assert running(m) == {kept, other}


def test_a_limit_that_is_declared_again_as_it_was_changes_no_plan(
    m: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    m.happened(events.LimitsDeclared(by=m.asker(), limits=[Limit("a", 5)]))
    add(m, request="core=2", limits=(LimitUse("a"),))
    renewed = []
    monkeypatch.setattr(Planner, "change_rules", lambda *_args, **_rules: renewed.append(1))
    m.happened(events.LimitsDeclared(by=m.asker(), limits=[Limit("a", 5)]))
    m.pump()
    assert renewed == []
    m.happened(events.LimitsDeclared(by=m.asker(), limits=[Limit("a", 6)]))
    m.pump()
    assert renewed == [1]


# ------------------------------------------------------------------ reservations


def test_a_reservation_begins_at_its_time_without_any_other_event(m: Machine) -> None:
    job = add(m, request="core=2,walltime=0:10:0", at=m.wall + 100)
    assert running(m) == set()
    due = m.engine.next_due()
    assert due == m.wall + 100
    m.advance(99.0)
    m.pump()
    assert running(m) == set()
    m.advance(1.0)
    m.pump()
    assert running(m) == {job}


def test_a_single_reservation_that_cannot_be_had_is_refused_and_leaves_no_trace(m: Machine) -> None:
    first = add(m, request="core=2,walltime=1", at=m.wall + 100)
    with pytest.raises(NotGranted, match="rejected"):
        add(m, request="core=1,walltime=1", at=m.wall + 100)
    with pytest.raises(NotGranted, match="past"):
        add(m, request="core=1,walltime=1", at=m.wall - 1)
    assert m.world.next_job >= first
    assert [id for id in range(1, m.world.next_job) if m.world.outcome(id) == 0] == [first]
    m.add("true", check=True, request=("core=1,walltime=0:1:0",), at=m.wall + 10)
    assert list(m.world.use(Reservations).granted) == [first]


def test_a_refused_reservation_says_which_jobs_are_in_the_way(m: Machine) -> None:
    first = add(m, request="core=1,walltime=1")
    second = add(m, request="core=1,walltime=1")
    with pytest.raises(NotGranted, match=f"jobs {first}, {second} have them; ask"):
        add(m, request="core=1,walltime=1", at=m.wall + 100)
    answer = ask_snapshot(m.world.placement.outlook(m.wall).planner, asked(m, at=m.wall + 100), m.wall)
    assert [waits.blockers for waits in answer.reasons] == [(first, second)]


def test_a_reservation_refused_for_jobs_that_nothing_ends_says_so(m: Machine) -> None:
    add(m, size=Size(cpus=200, time_s=3600))
    with pytest.raises(NotGranted, match="job 1 has them; jobs without a walltime may run"):
        add(m, request="core=1,walltime=1", at=m.wall + 100)


def test_jobs_that_end_before_a_reservation_or_run_elsewhere_are_not_in_its_way() -> None:
    m = Machine(cpus=100, hosts=2)
    for host in m.capacity:
        m.join(m.start_runner(host))
    m.pump()
    in_the_way = add(m, request="core=1,walltime=1", where="host = 'h1'")
    add(m, request="core=1,walltime=1", where="host = 'h2'")
    with pytest.raises(NotGranted, match=f"job {in_the_way} has them; ask"):
        add(m, request="core=1,walltime=1", where="host = 'h1'", at=m.wall + 100)
    add(m, request="core=1,walltime=1", where="host = 'h1'", at=m.wall + 3600)


def asked(m: Machine, **fields: Any) -> Ask:
    its = spec(request=("core=1,walltime=1",), **fields)
    return ask_of(its, its.size)


def test_several_reservations_of_one_input_are_answered_one_by_one(m: Machine) -> None:
    at = m.wall + 100
    jobs = m.add("a", "b", "c", request=("core=1,walltime=1",), at=at).added
    assert m.states(*jobs) == [State.READY, State.READY, State.FAILED]
    assert reason(m, jobs[2]) == "reservation"
    m.advance(100.0)
    m.pump()
    assert running(m) == set(jobs[:2])


def test_a_granted_reservation_is_kept_over_a_crash_before_any_runner_is_back(m: Machine) -> None:
    busy = add(m, request="core=1,walltime=0:1:0")
    job = add(m, request="core=1,walltime=1", at=m.wall + 100)
    rival = add(m, request="core=2,walltime=1", queue="admin")
    m.crash()
    m.advance(1.0)
    (model,) = m.runners.values()
    assert m.state(job) is State.READY
    m.join(model)
    m.pump()
    m.end(busy)
    m.advance(99.0)
    m.pump()
    assert job in running(m) or rival in running(m)
    for each in (rival, job):
        if each in running(m):
            m.end(each)
    m.run_out()
    assert m.state(job) is State.COMPLETE


def test_a_reservation_that_comes_while_no_runner_is_there_is_answered_when_one_is() -> None:
    m = Machine(cpus=200)
    first = add(m, request="core=2,walltime=1", at=m.wall + 100)
    assert m.state(first) is State.READY
    m.with_runner()
    assert list(m.world.use(Reservations).granted) == [first]


def test_a_reservation_that_is_held_gives_back_what_it_was_granted(m: Machine) -> None:
    first = add(m, request="core=2,walltime=1", at=m.wall + 100)
    m.do("hold", first)
    assert not m.world.use(Reservations).granted
    second = add(m, request="core=2,walltime=1", at=m.wall + 100)
    m.do("release", first)
    assert m.states(first, second) == [State.FAILED, State.READY]
    assert reason(m, first) == "reservation"


def test_a_reservation_whose_host_does_not_come_back_fails_at_its_end(m: Machine) -> None:
    job = add(m, request="core=1,walltime=0:10:0", at=m.wall + 100)
    (model,) = m.runners.values()
    m.disconnect(model)
    m.advance(650.0)
    assert m.state(job) is State.READY
    m.advance(60.0)
    m.pump()
    assert m.state(job) is State.FAILED
    assert reason(m, job) == "reservation"


def test_a_reservation_that_begins_late_still_ends_on_time(m: Machine) -> None:
    job = add(m, request="core=1,walltime=0:10:0", at=m.wall + 100)
    (model,) = m.runners.values()
    m.disconnect(model)
    m.advance(200.0)
    m.join(model)
    m.pump()
    lease = m.world.jobs[job].lease
    assert lease is not None
    assert lease.given is not None
    assert lease.given.walltime_s == pytest.approx(500.0)


def test_nothing_is_due_while_the_manager_is_paused(m: Machine) -> None:
    add(m, request="core=1,walltime=0:10:0", at=m.wall + 100)
    m.happened(events.ManagerPaused())
    m.advance(200.0)
    assert m.engine.next_due() is None


# ------------------------------------------------------------------ besteffort


def test_a_preemption_is_said_again_to_a_runner_that_did_not_hear_it(m: Machine) -> None:
    low = add(m, request="core=2", types=("besteffort",), queue="besteffort")
    (model,) = m.runners.values()
    m.send_chunk([Entry("high", msgspec.structs.replace(m.world.jobs[low].spec, types=(), queue="default"))])
    model.disconnect()  # before the kill is on its way
    m.pump()
    assert m.state(low) is State.FINISHING
    m.join(model)
    m.pump()
    assert m.state(low) is State.FAILED
    assert reason(m, low) == "preempted"


@pytest.mark.parametrize(("checkpoint_s", "state"), [(60.0, State.READY), (None, State.COMPLETE)])
def test_who_makes_room_after_a_checkpoint_has_not_done_its_work(
    m: Machine, checkpoint_s: float | None, state: State
) -> None:
    fields: Any = {"types": ("besteffort", "idempotent"), "queue": "besteffort", "checkpoint_s": checkpoint_s}
    low = add(m, request="core=2", **fields)
    (model,) = m.runners.values()
    spec = msgspec.structs.replace(m.world.jobs[low].spec, types=(), queue="default", checkpoint_s=None)
    m.send_chunk([Entry("high", spec)])
    model.disconnect()  # before it is told; it writes its checkpoint and ends with 0
    m.pump()
    model.end(next(iter(model.busy)), Outcome(exit_code=0, started_at=m.wall, ended_at=m.wall), m.wall)
    m.join(model)
    m.pump()
    assert m.state(low) is state
    assert len(running(m)) == 1


def test_a_preemption_is_remembered_over_a_crash(m: Machine) -> None:
    low = add(m, request="core=2", types=("besteffort",), queue="besteffort")
    m.send_chunk([Entry("high", msgspec.structs.replace(m.world.jobs[low].spec, types=(), queue="default"))])
    m.commit(perform=False)
    m.crash()
    assert m.state(low) is State.FINISHING
    (model,) = m.runners.values()
    m.join(model)
    m.pump()
    assert m.state(low) is State.FAILED
    (row,) = m.store.jobs([low])
    assert row.reason_code == "preempted"
    assert "-1" not in (row.reason_message or "")
    assert len(running(m)) == 1


def test_who_waits_for_a_preemption_may_be_killed_meanwhile(m: Machine) -> None:
    low = add(m, request="core=2", types=("besteffort", "idempotent"), queue="besteffort")
    n = m.send_chunk([Entry("high", msgspec.structs.replace(m.world.jobs[low].spec, types=(), queue="default"))])
    m.commit()
    high = m.replies[n].added[0]
    m.act("kill", high)
    m.pump()
    assert m.state(high) is State.CANCELLED
    m.run_out()
    assert m.state(low) is State.COMPLETE


def test_an_older_job_that_comes_back_does_not_disturb_one_that_has_begun(m: Machine) -> None:
    busy = add(m, request="core=2")
    first, second = (add(m, request="core=2") for _ in range(2))
    m.do("hold", first, second)
    m.end(busy)
    low = add(m, request="core=2", types=("besteffort",), queue="besteffort")
    m.act("release", second)  # it begins as soon as the other has ended
    assert m.state(low) is State.FINISHING
    m.act("release", first)
    m.pump()
    assert running(m) == {second}
    m.end(second)
    assert running(m) == {first}


# ------------------------------------------------------------------ again, later, changed


def test_a_planned_job_that_fails_waits_again_for_what_it_asked(m: Machine) -> None:
    job = add(m, request="core=2", retries=1, backoff_s=30.0)
    m.end(job, exit_code=1)
    assert m.state(job) is State.DELAYED
    m.advance(61.0)
    m.pump()
    assert running(m) == {job}
    assert given(m, job) == "1-2"
    m.end(job)
    assert m.state(job) is State.COMPLETE


def test_a_job_after_a_planned_one_begins_when_that_is_complete(m: Machine) -> None:
    parent = add(m, request="core=1")
    (child,) = m.add("child", after=((parent, Condition.OK, False),), request=("core=2",)).added
    assert m.state(child) is State.DEPENDENT
    m.end(parent)
    assert running(m) == {child}


def test_a_waiting_job_may_ask_for_something_else(m: Machine) -> None:
    busy = add(m, request="core=1")
    job = add(m, request="core=2")
    modify(m, job, request=("core=1",))
    assert running(m) == {busy, job}
    with pytest.raises(BadInput, match="unknown level"):
        modify(m, add(m, request="core=2"), request=("hots=1",))
    with pytest.raises(NeverFits):
        modify(m, add(m, request="core=2"), request=("core=3",))


def test_a_plain_job_becomes_a_planned_one_and_plain_again(m: Machine) -> None:
    busy = [add(m), add(m)]
    job = add(m)
    modify(m, job, types=("besteffort",), queue="besteffort")
    assert planning(m).planner is not None
    modify(m, job, types=(), queue="default")
    assert planning(m).planner is None
    m.end(busy[0])
    assert running(m) == {busy[1], job}


def test_cores_are_the_same_after_a_crash_and_are_not_given_twice(m: Machine) -> None:
    first, second = add(m, request="core=1"), add(m, request="core=1")
    waiting = add(m, request="core=1")
    held = given(m, first), given(m, second)
    assert sorted(held) == ["1", "2"]
    m.crash()
    (model,) = m.runners.values()
    m.join(model)
    m.pump()
    assert (given(m, first), given(m, second)) == held
    assert running(m) == {first, second}
    m.end(second)
    assert given(m, waiting) == held[1]


@pytest.mark.parametrize("restart", [True, False])
def test_cores_are_not_given_twice_after_the_clock_was_set_back_a_little(m: Machine, restart: bool) -> None:
    """Steps of up to a minute are followed at once; leases may then seem to begin in the future."""
    held = {add(m, request="core=1"), add(m, request="core=1")}
    assert running(m) == held
    m.wall -= 30.0
    if restart:
        m.crash()
        m.join(*m.runners.values())
        m.pump()
    short = add(m, request="core=1,walltime=0:0:10")
    assert running(m) == held
    m.end(held.pop())
    assert running(m) == {*held, short}


def test_a_lease_that_began_by_a_fast_clock_keeps_its_core_when_the_plan_opens(m: Machine) -> None:
    m.wall += 30.0
    held = {add(m), add(m)}
    m.wall -= 30.0
    short = add(m, request="core=1,walltime=0:0:10")
    assert running(m) == held
    m.end(held.pop())
    assert running(m) == {*held, short}


def test_who_expires_gives_up_though_others_that_ask_for_the_same_are_before_it(m: Machine) -> None:
    add(m, request="core=2")
    types = (f"expire={m.wall + 50:.0f}",)
    jobs = m.add("a", "b", request=("core=2",), types=types).added
    m.advance(51.0)
    m.pump()
    assert m.states(*jobs) == [State.FAILED, State.FAILED]


def test_an_unknown_word_names_line_field_and_column(m: Machine) -> None:
    lines = [Entry("a", spec()), Entry("b", spec(request=("core=1+hots=1",)))]
    with pytest.raises(BadInput, match=r"line 2: field 'request': .*hots.*column 8"):
        m.answer(m.send_chunk(lines))
    with pytest.raises(BadInput, match="field 'where'"):
        add(m, where="colour = 'red'")


def test_after_a_crash_who_was_given_cores_keeps_them_and_who_was_not_takes_the_others(m: Machine) -> None:
    plain = add(m)
    planned = add(m, request="core=1")
    m.end(plain)
    plain = add(m, types=("idempotent",))
    m.end(planned)
    early = add(m)
    late = add(m, request="core=1")
    assert running(m) == {plain, early}
    for _ in range(2):
        m.crash()
        (model,) = m.runners.values()
        m.join(model)
        m.pump()
    assert running(m) == {plain, early}
    m.end(early)
    assert running(m) == {plain, late}
    assert given(m, late) != given(m, plain)


def test_jobs_planned_one_after_the_other_do_not_begin_at_once_when_nobody_looked_for_long(m: Machine) -> None:
    busy = add(m, request="core=2,walltime=0:1:0")
    jobs = [add(m, f"job {n}", request=f"core=2,walltime=0:1:{n}") for n in range(4)]
    low = [
        add(m, f"low {n}", types=("besteffort",), queue="besteffort", request=f"core=2,walltime=0:1:{n}")
        for n in (5, 6)
    ]
    m.happened(events.ManagerPaused())
    m.end(busy)
    m.advance(3600.0)
    m.happened(events.ManagerResumed())
    m.pump()
    assert running(m) == {jobs[0]}
    for done, following in zip(jobs, [*jobs[1:], *low], strict=False):
        m.end(done)
        assert running(m) == {following}
    m.run_out()
    assert m.unfinished() == []


def test_a_later_job_does_not_slip_in_between_many_that_ask_for_the_same() -> None:
    m = Machine(cpus=400)
    m.with_runner()
    busy = add(m, request="core=4,walltime=1m")
    alike = m.add(*[f"echo {n}" for n in range(6)], fresh=True, request=("core=1,walltime=30s",)).added
    big = add(m, request="core=3,walltime=10h")
    m.end(busy)
    assert running(m) == set(alike[:4])
    for job in alike[:4]:
        m.end(job)
    assert running(m) == set(alike[4:])
    for job in alike[4:]:
        m.end(job)
    assert running(m) == {big}


def test_what_an_ended_job_used_of_a_period_counts_until_it_is_over_also_after_a_crash_and_a_change_of_rules(
    m: Machine,
) -> None:
    # It is a quarter past midnight. Until one o'clock there is half a resource-hour.
    quota = {"rule": "*,*,*,*", "limits": [-1, -1, 0.5], "set": "night"}
    period = {"set": "night", "period": "00:00-01:00"}
    site(m, ("quota", "night: *,*,*,*", quota), ("calendar", "00:00-01:00: night", period))
    first = add(m, request="core=2,walltime=10m")
    assert running(m) == {first}
    m.advance(600.0)
    m.end(first)  # a third of an hour is used
    second = add(m, request="core=2,walltime=10m")
    third = add(m, request="core=1,walltime=5m")  # what is left is promised to the second
    assert running(m) == set()
    m.crash()
    (model,) = m.runners.values()
    m.join(model)
    m.pump()
    assert running(m) == set()
    assert planned_start(m, second) == 3300.0
    site(m, ("queue", "quick", {"priority": 3}))
    assert running(m) == set()
    assert planned_start(m, second) == 3300.0
    m.advance(3300.0 - m.wall)  # five minutes of both cores are left
    m.pump()
    assert running(m) == {second}
    assert planned_start(m, third) == 3900.0


def planned_start(m: Machine, job: int) -> float | None:
    found = planning(m).planned(job)
    return None if found is None else found.start


def test_who_is_planned_behind_many_equal_jobs_is_told_that_it_may_begin_later(m: Machine) -> None:
    equal = m.add(*"abcde", request=("core=2,walltime=10m",)).added
    other = add(m, request="core=2,walltime=5m")
    assert running(m) == {equal[0]}
    said = why(m.world, m.world.jobs[other], wall=m.wall)[-1].message
    assert said == "3 jobs before it have no planned start yet: it may begin later than planned"
    for job in equal[:4]:
        m.end(job)
    reasons = why(m.world, m.world.jobs[other], wall=m.wall)
    assert not any("no planned start" in each.message for each in reasons)
    planned = m.world.placement.planned(other)
    assert planned is not None
    assert planned.start == m.wall + 600.0


# ------------------------------------------------------------------ in time for a reservation


def low_job(m: Machine, **fields: Any) -> int:
    return add(m, types=("besteffort", "idempotent"), queue="besteffort", **{"request": "core=2", **fields})


def test_a_besteffort_job_leaves_so_early_that_a_reservation_begins_on_time(m: Machine) -> None:
    m.world.settings = EngineSettings(vacate_times=VacateTimes(checkpoint_s=30.0, grace_s=5.0))
    low = low_job(m, checkpoint_s=60.0)
    start = m.wall + 100
    reserved = add(m, request="core=2,walltime=0:10:0", at=start)
    (model,) = m.runners.values()
    m.advance(58.0)
    m.pump()
    assert m.state(low) is State.RUNNING
    due = m.engine.next_due()
    assert due is not None
    assert due < start - 35.0
    m.advance(due - m.wall)
    m.commit()
    assert m.state(low) is State.FINISHING
    assert m.world.jobs[low].preempted == reserved
    m.pump()  # it is gone
    assert m.state(low) is State.READY
    assert running(m) == set()
    m.advance(start - m.wall)
    m.pump()
    assert running(m) == {reserved}
    story = [note.text for note in m.store.events(low) if note.kind == "preempted"]
    assert story == [f"reservation {reserved} begins on its resources in {about_duration(start - due)}"]
    assert model.connected


def test_a_job_without_a_checkpoint_leaves_later_than_one_that_writes_one(m: Machine) -> None:
    leaving = VacateTimes(checkpoint_s=30.0, grace_s=5.0)
    with_one, without = (spec(checkpoint_s=each) for each in (60.0, None))
    assert leaving.leave_s(with_one) == leaving.leave_s(without) + 30.0
    assert leaving.leave_s(spec(signal="USR1")) == leaving.leave_s(with_one), "who names a signal gets it first"
    assert leaving.leave_s(spec(on_exit=("cleanup",))) > leaving.leave_s(without)
    assert VacateTimes(epilogue_s=60.0).leave_s(without) >= 60.0
    assert VacateTimes().leave_s(with_one) == 0.0


def test_who_must_leave_for_a_reservation_is_told_though_the_manager_crashed_meanwhile(m: Machine) -> None:
    m.world.settings = EngineSettings(vacate_times=VacateTimes(checkpoint_s=30.0, grace_s=5.0))
    low = low_job(m, checkpoint_s=60.0)
    start = m.wall + 100
    reserved = add(m, request="core=2,walltime=0:10:0", at=start)
    m.advance(50.0)
    m.crash()
    m.world.settings = EngineSettings(vacate_times=VacateTimes(checkpoint_s=30.0, grace_s=5.0))
    (model,) = m.runners.values()
    m.join(model)
    m.pump()
    m.advance(30.0)
    m.pump()
    assert m.state(low) is State.READY
    m.advance(start - m.wall)
    m.pump()
    assert running(m) == {reserved}


# ------------------------------------------------------------------ reservations with fewer nodes


def wide(m: Machine, at: float) -> int:
    return add(m, request="host=2,walltime=1:0:0", at=at)


def notes(m: Machine, job: int, kind: str) -> list[str]:
    return [note.text for note in m.store.events(job) if note.kind == kind]


def test_a_reservation_that_begins_with_fewer_nodes_says_which_are_missing_and_why() -> None:
    m = Machine(cpus=200, hosts=2)
    for name in ("h1", "h2"):
        m.join(m.start_runner(name))
    m.pump()
    start = m.wall + 100
    job = wide(m, start)
    site(m, ("host", "h2", {"drain": True}))
    m.advance(start + 10 - m.wall)
    m.pump()
    (reason,) = why(m.world, m.world.jobs[job], wall=m.wall)
    assert reason.message == (
        "its time has come, but 2 of its 4 cores are missing: h2 is drained; it begins with the others in 4m50s"
    )
    m.advance(m.world.settings.patience_s)
    m.pump()
    assert running(m) == {job}
    said = "began with 2 of 4 cores on 1 of 2 nodes: h2 is drained"
    assert notes(m, job, "fewer") == [said]
    (reason,) = why(m.world, m.world.jobs[job], wall=m.wall)
    assert (reason.code, reason.message) == ("reservation", said)
    m.crash()
    lease = m.world.jobs[job].lease
    assert lease is not None
    assert lease.given is not None
    assert lease.given.promised == Promised(4, ("h1", "h2"), "h2 is drained"), "it is remembered"


def test_a_reservation_that_gets_all_it_was_promised_says_nothing() -> None:
    m = Machine(cpus=200, hosts=2)
    for name in ("h1", "h2"):
        m.join(m.start_runner(name))
    m.pump()
    start = m.wall + 100
    job = wide(m, start)
    m.advance(start - m.wall)
    m.pump()
    assert running(m) == {job}
    assert notes(m, job, "fewer") == []
    assert why(m.world, m.world.jobs[job], wall=m.wall) == []
