"""Provisioning has its host to itself: jobs that take no core are not there when it begins, and none comes."""

from __future__ import annotations

from rota.core.jobs.explain import why
from rota.core.machines.provisioned_machines import provisions_of
from rota.core.states import State
from rota.plan.size import Size
from tests.core.machines.test_provisioning import Lab, agent, lab, state
from tests.core.test_planned import add

NO_CORE = Size(cpus=0, time_s=3600.0)


def hosts_of(m: Lab, job: int) -> list[str]:
    return [each.host for each in provisions_of(m.world.jobs[job])]


def host_of(m: Lab, job: int) -> str:
    return m.running()[job][0].host


def installed(m: Lab, number: int = 0) -> None:
    """The machine of this order has made itself ready."""
    m.started_there(m.orders[number])
    m.ended_there(m.orders[number])
    m.pump()


def test_no_job_without_a_core_begins_on_a_host_while_it_is_provisioned() -> None:
    m = lab(1)
    job = add(m, provision="setup", walltime_s=60.0)
    small = add(m, size=NO_CORE)
    assert m.phase() == "waiting"
    assert state(m, small) is State.READY
    m.started_there(m.orders[0])
    assert state(m, small) is State.READY
    m.ended_there(m.orders[0])
    m.pump()
    assert {job, small} <= set(m.running())


def test_a_job_without_a_core_begins_elsewhere_meanwhile() -> None:
    m = lab(2)
    add(m, provision="setup", walltime_s=60.0)
    small = add(m, size=NO_CORE)
    assert host_of(m, small) == "h2"


def test_it_is_said_that_the_host_is_being_provisioned() -> None:
    m = lab(1)
    add(m, provision="setup", walltime_s=60.0)
    small = add(m, size=NO_CORE)
    first, *_ = why(m.world, m.world.jobs[small], wall=m.wall)
    assert first.message == "waiting for room: h1 is kept free to be provisioned"


def test_a_host_is_provisioned_when_the_jobs_without_a_core_there_have_ended() -> None:
    m = lab(1)
    small = add(m, size=NO_CORE)
    job = add(m, provision="setup", walltime_s=60.0)
    assert m.orders == []
    assert state(m, job) is State.READY
    first, *_ = why(m.world, m.world.jobs[job], wall=m.wall)
    assert first.message == "h1 must be free of other jobs to be provisioned: 1 job that takes no core is there"
    m.end(small)
    m.pump()
    assert [order.jobs[0].id for order in m.orders] == [job]


def test_jobs_without_a_core_that_come_later_do_not_keep_it_waiting() -> None:
    m = lab(1)
    small = add(m, size=NO_CORE)
    job = add(m, provision="setup", walltime_s=60.0)
    later = add(m, size=NO_CORE, priority=9)
    assert state(m, later) is State.READY
    m.end(small)
    m.pump()
    assert hosts_of(m, job) == ["h1"]
    assert state(m, later) is State.READY
    installed(m)
    assert {job, later} <= set(m.running())


def test_a_cancelled_job_keeps_no_host_for_itself() -> None:
    m = lab(1)
    add(m, size=NO_CORE)
    job = add(m, provision="setup", walltime_s=60.0)
    later = add(m, size=NO_CORE)
    assert state(m, later) is State.READY
    m.act("kill", job)
    m.pump()
    assert later in m.running()


def test_a_host_without_such_jobs_is_provisioned_rather_than_one_with_them() -> None:
    m = lab(2)
    small = add(m, size=NO_CORE)
    job = add(m, provision="setup", walltime_s=60.0)
    assert host_of(m, small) == "h1"
    assert hosts_of(m, job) == ["h2"]


def test_it_waits_no_longer_for_such_jobs_when_another_host_becomes_free() -> None:
    m = lab(2)
    busy = add(m, request="nodes=1,walltime=600s", where="host = 'h2'")
    add(m, size=NO_CORE)
    job = add(m, provision="setup", walltime_s=60.0)
    assert m.orders == []
    m.end(busy)
    m.pump()
    assert hosts_of(m, job) == ["h2"]


def test_a_gang_is_provisioned_when_all_its_hosts_are_free_of_such_jobs() -> None:
    m = lab(2)
    small = add(m, size=NO_CORE)
    fields = {"provision": "setup", "walltime_s": 60.0, "gang": "g"}
    gang = m.add("one", "two", fresh=True, **fields).added
    assert m.orders == []
    assert [state(m, job) for job in gang] == [State.READY, State.READY]
    m.end(small)
    m.pump()
    assert sorted(order.jobs[0].id for order in m.orders) == sorted(gang)


def test_after_a_crash_the_host_is_still_kept_whole() -> None:
    m = lab(1)
    job = add(m, provision="setup", walltime_s=60.0)
    m.started_there(m.orders[0])
    m.crash()
    m.join(agent(m, "h1"))
    small = add(m, size=NO_CORE)
    m.pump()
    assert state(m, small) is State.READY
    m.act("kill", job)
    m.pump()
    assert small in m.running()
