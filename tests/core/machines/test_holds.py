"""Machines that a job keeps after its run: when, for how long, and what a crash leaves of it."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core import events
from rota.core.answers import WalltimeSet
from rota.core.jobs.job import Condition
from rota.core.jobs.outcome import Outcome
from rota.core.machines.hold_records import hold_at
from rota.core.machines.hold_rules import hold_s
from rota.core.machines.machine_conditions import MachineReturned
from rota.core.states import State
from rota.errors import BadInput, Denied, NotFound
from rota.manager.views import nodes
from rota.plan.need import LimitUse
from rota.plan.policy.limits import Limit
from tests.core.machine import Machine
from tests.core.test_planned import add, site


@pytest.fixture
def m() -> Machine:
    """One host of two cores, with a runner."""
    made = Machine(cpus=200)
    made.join(made.start_runner("h1"))
    made.pump()
    return made


def whole(m: Machine, **fields: Any) -> int:
    """A job on the whole host."""
    return add(m, request="nodes=1,walltime=60s", **fields)


def walltime(m: Machine, job: int, seconds: float, *, relative: bool = True) -> Any:
    by = m.asker()
    m.happened(events.WalltimeAsked(by=by, job=job, seconds=seconds, relative=relative))
    m.pump()
    return m.replies[by.n]


def returned(m: Machine, host: str = "h1", user: str = "ann") -> Any:
    by = events.Asker(connection=1, n=m.asker().n, user=user)
    m.happened(MachineReturned(by=by, host=host, operator=False))
    m.pump()
    return m.replies[by.n]


@pytest.mark.parametrize(
    ("reserve", "code", "cancelled", "kept"),
    [
        ("always", "", False, True),
        ("always", "exit", False, True),
        ("always", "kill_requested", True, False),
        ("always", "provision", False, False),
        ("onfail", "", False, False),
        ("onfail", "exit", False, True),
        ("onfail", "walltime", False, True),
        ("onfail", "kill_requested", True, False),
        ("onabort", "exit", False, False),
        ("onabort", "walltime", False, True),
        ("onabort", "memory", False, True),
        ("onabort", "lost", False, True),
        ("onabort", "gang", False, True),
        ("", "exit", False, False),
    ],
)
def test_when_machines_are_kept(reserve: str, code: str, cancelled: bool, kept: bool) -> None:
    assert hold_s(reserve, 60.0, code=code, cancelled=cancelled) == (60.0 if kept else 0.0)


def test_the_outcome_is_recorded_and_dependents_begin_while_the_machine_is_kept(m: Machine) -> None:
    job = whole(m, reserve="always", reserve_for_s=100.0)
    after = add(m, after=((job, Condition.OK, False),), size=m.world.jobs[job].spec.size)
    other = whole(m)
    m.end(job)
    assert m.store.jobs([job])[0].state == State.COMPLETE
    assert m.state(after) is State.READY  # it may begin, and there is no room
    assert m.state(other) is State.READY
    m.advance(99)
    m.pump()
    assert not m.running()
    m.advance(2)
    m.pump()
    assert m.running()
    assert hold_at(m.world, "h1") is None


def test_a_killed_job_keeps_nothing(m: Machine) -> None:
    job = whole(m, reserve="always", reserve_for_s=100.0)
    other = whole(m)
    m.act("kill", job)
    m.pump()
    m.pump()
    assert m.state(other) is not State.READY or other in m.running()


def test_a_failed_attempt_that_is_tried_again_keeps_nothing(m: Machine) -> None:
    job = whole(m, reserve="onfail", reserve_for_s=100.0, retries=1)
    m.end(job, Outcome(exit_code=1))
    assert m.state(job) is State.DELAYED
    assert hold_at(m.world, "h1") is None
    m.advance(120)
    m.pump()
    m.end(job, Outcome(exit_code=1))
    assert hold_at(m.world, "h1") is not None


def test_a_hold_outlives_a_crash_of_the_manager(m: Machine) -> None:
    job = whole(m, reserve="always", reserve_for_s=100.0)
    m.end(job)
    other = whole(m)
    m.crash()
    (model,) = m.runners.values()
    m.join(model)
    m.pump()
    assert not m.running()
    kept = hold_at(m.world, "h1")
    assert kept is not None
    assert kept.job == job
    m.advance(101)
    m.pump()
    assert other in m.running()


def test_its_user_extends_it_and_gives_it_back_early(m: Machine) -> None:
    job = whole(m, reserve="always", reserve_for_s=100.0)
    m.end(job)
    answer = walltime(m, job, 50.0)
    assert isinstance(answer, WalltimeSet)
    assert (answer.walltime_s, answer.before_s) == (150.0, 100.0)
    m.advance(120)
    m.pump()
    assert hold_at(m.world, "h1") is not None
    assert isinstance(walltime(m, job, 30.0, relative=False), BadInput)
    assert isinstance(returned(m, user="bob"), Denied)
    assert returned(m) == "h1"
    assert hold_at(m.world, "h1") is None
    assert isinstance(walltime(m, job, 50.0), NotFound)
    assert isinstance(returned(m), BadInput)


def test_a_job_that_runs_again_gives_back_what_it_kept(m: Machine) -> None:
    job = whole(m, reserve="onfail", reserve_for_s=100.0)
    m.end(job, Outcome(exit_code=1))
    assert hold_at(m.world, "h1") is not None
    m.act("retry", job)
    m.pump()
    assert hold_at(m.world, "h1") is None
    assert job in m.running()


def test_only_a_hold_that_always_follows_is_planned(m: Machine) -> None:
    job = whole(m, reserve="always", reserve_for_s=100.0)
    planned = m.world.placement.planned(job)
    assert planned is not None
    assert planned.end == m.wall + 160
    m.act("kill", job)
    m.pump()
    job = whole(m, reserve="onfail", reserve_for_s=100.0)
    planned = m.world.placement.planned(job)
    assert planned is not None
    assert planned.end == m.wall + 60


def test_a_hold_is_accounted_for_and_frees_limits(m: Machine) -> None:
    by = m.asker()
    m.happened(events.LimitsDeclared(by=by, limits=[Limit("net", 1)]))
    job = whole(m, reserve="always", reserve_for_s=100.0, limits=(LimitUse("net"),))
    m.advance(10)
    m.end(job)
    assert m.world.placement.limits.use("net", "")[0] == 0
    m.advance(101)
    m.pump()
    rows = m.store.accounts(first=0, end=1 << 40).rows
    assert sum(row.sums.used for row in rows) >= 2 * 100_000_000


def test_a_node_that_is_kept_cannot_be_removed(m: Machine) -> None:
    job = whole(m, reserve="always", reserve_for_s=100.0)
    m.end(job)
    by = m.asker()
    m.world.site["node"] = {"h1": {}}
    m.happened(events.SiteChanged(by=by, changes=[("node", "h1", None)]))
    m.pump()
    assert "return it first" in m.replies[by.n].hint


def test_quotas_count_a_hold() -> None:
    m = Machine(cpus=200, hosts=2)
    for host in m.capacity:
        m.join(m.start_runner(host))
    m.pump()
    site(m, ("quota", "*,*,*,ann", {"rule": "*,*,*,ann", "limits": [2, -1, -1]}))
    job = whole(m, reserve="always", reserve_for_s=100.0)
    m.end(job)
    other = whole(m)
    m.pump()
    assert m.state(other) is State.READY
    m.advance(101)
    m.pump()
    assert other in m.running()


def test_nodes_tell_which_job_keeps_them_and_count_what_it_holds(m: Machine) -> None:
    job = whole(m, reserve="always", reserve_for_s=100.0)
    m.end(job)
    (view,) = nodes.view(nodes.snapshot(m.world))
    assert (view.kept_by, view.cores_in_use, view.jobs) == (job, 2.0, [])
    assert view.kept_until is not None
    assert view.kept_until.timestamp() == m.wall + 100
    returned(m)
    (view,) = nodes.view(nodes.snapshot(m.world))
    assert (view.kept_by, view.kept_until, view.cores_in_use) == (None, None, 0.0)


@pytest.mark.parametrize("keep", [False, True])
def test_a_job_that_ends_while_it_is_suspended_keeps_only_machines_that_it_has(m: Machine, keep: bool) -> None:
    job = whole(m, reserve="onfail", reserve_for_s=100.0)
    m.do("suspend", job, keep=keep)
    m.end(job, Outcome(signal=9, reason="memory", started_at=m.wall, ended_at=m.wall))
    assert (hold_at(m.world, "h1") is not None) is keep
    next_job = whole(m)
    assert m.state(next_job) is (State.READY if keep else State.RUNNING)
