"""Machines that are made ready for a job: phases, timeouts, return, failure, and what a crash leaves of it."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core import effects as e
from rota.core import events
from rota.core.attempts.leases import Finished, Started
from rota.core.jobs.explain import why
from rota.core.jobs.outcome import Outcome
from rota.core.machines import provision_records as p
from rota.core.machines.machine_events import MachineSet
from rota.core.machines.provision_restart import ask_again
from rota.core.machines.provisioned_machines import phase_at, provisions_of
from rota.core.states import State
from rota.errors import BadInput, Denied, NeverFits
from rota.manager.views import nodes
from rota.plan.size import Capacity, Size
from tests.core.machine import GIB, LOST_AFTER_S, Entry, Machine, spec
from tests.core.runners import ModelRunner, Report
from tests.core.test_planned import add, site


class Lab(Machine):
    """Remembers what it was told to provision, instead of doing it."""

    def _boot(self) -> None:
        super()._boot()
        self.commands: list[p.RunProvision] = []
        self.orders: list[p.SendProvision] = []
        self.stopped: list[int] = []

    def _perform(self, effect: e.Effect) -> None:
        match effect:
            case p.RunProvision():
                self.commands.append(effect)
            case p.SendProvision():
                self.orders.append(effect)
            case p.StopProvision(job):
                self.stopped.append(job)
            case _:
                super()._perform(effect)

    def tell(self, *what: events.Event) -> None:
        self.happened(*what)
        self.pump()

    def begins(self, order: p.RunProvision, ticket: str = "") -> None:
        ref = {"job": order.job, "attempt": order.attempt, "host": order.host, "token": order.token}
        self.tell(p.ProvisionBegan(**ref, ticket=ticket))

    def ends(self, order: p.RunProvision, wrong: str = "") -> None:
        ref = {"job": order.job, "attempt": order.attempt, "host": order.host, "token": order.token}
        self.tell(p.ProvisionEnded(**ref, wrong=wrong))

    def started_there(self, order: p.SendProvision) -> None:
        started = Started(order.jobs[0].id, order.attempt, order.token, order.token, self.wall, 7)
        self.tell(self._report(order.runner, started=[started]))

    def ended_there(self, order: p.SendProvision, **outcome: Any) -> None:
        whole = Outcome(**{"exit_code": 0, "started_at": self.wall, "ended_at": self.wall, **outcome})
        ended = Finished(order.jobs[0].id, order.attempt, order.token, order.token, whole)
        self.tell(self._report(order.runner, ended=[ended]))

    def _report(self, runner: str, **lists: Any) -> events.RunnerReported:
        report = Report(0).event(runner)
        return events.RunnerReported(**{name: getattr(report, name) for name in report.__struct_fields__} | lists)

    def phase(self, host: str = "h1") -> str:
        return phase_at(self.world, host)


@pytest.fixture
def m() -> Lab:
    """Two hosts of two cores, with runners."""
    return lab()


def lab(hosts: int = 2) -> Lab:
    made = Lab(cpus=200, hosts=hosts)
    for host in made.capacity:
        made.join(made.start_runner(host))
    made.pump()
    return made


def with_command(m: Lab, *hosts: str) -> None:
    site(m, *(("host", host, {"provision_cmd": "install"}) for host in hosts))
    m.pump()


def agent(m: Machine, host: str) -> ModelRunner:
    return next(model for model in m.runners.values() if model.host == host and not model.dead)


def state(m: Machine, job: int) -> State:
    return m.world.jobs[job].state


def returns(m: Lab, host: str) -> ModelRunner:
    """The machine is installed anew: its agent is gone, and another one joins."""
    agent(m, host).die()
    again = m.start_runner(host)
    again.boot_id = "another"
    m.join(again)
    m.pump()
    return again


# ------------------------------------------------------------------ on the machine itself


def test_the_command_of_the_job_runs_on_its_machine_first(m: Lab) -> None:
    job = add(m, provision="setup", walltime_s=60.0)
    (order,) = m.orders
    assert m.phase() == "waiting"
    assert state(m, job) is State.STARTING
    m.started_there(order)
    assert m.phase() == "installing"
    assert m.world.jobs[job].reason.code == "provision"  # type: ignore[union-attr]
    m.advance(10)
    m.ended_there(order)
    m.pump()
    assert m.phase() == ""
    assert job in m.running()


def test_provisioning_takes_the_whole_host(m: Lab) -> None:
    first, second = (add(m, provision="setup", walltime_s=60.0) for _ in range(2))
    third = add(m, walltime_s=60.0)
    assert {each.jobs[0].id for each in m.orders} == {first, second}
    assert state(m, third) is State.READY


def test_its_cores_are_the_least_that_the_machine_must_have() -> None:
    m = Lab(cpus=200, hosts=3)
    m.capacity["h2"] = Capacity(cpus=400, mem=8 << 30, disk=1 << 30, pool="local")
    m._boot()
    for host in m.capacity:
        m.join(m.start_runner(host))
    m.pump()
    add(m, provision="setup", walltime_s=60.0, size=Size(cpus=300))
    add(m, provision="setup", request="nodes=1/core=4,walltime=60s")
    assert [order.runner for order in m.orders] == [agent(m, "h2").id]
    with pytest.raises(NeverFits, match="never fits"):
        add(m, provision="setup", request="nodes=1/core=5,walltime=60s")


def test_a_waiting_job_says_which_machines_could_not_be_provisioned_for_it(m: Lab) -> None:
    job = add(m, provision="setup", walltime_s=60.0, retries=3)
    for order in (0, 1):
        m.started_there(m.orders[order])
        m.ended_there(m.orders[order], exit_code=3)
    first, *_ = why(m.world, m.world.jobs[job], wall=m.wall)
    assert first.code == "provision"
    assert first.message == "h[1-2] could not be provisioned for it and will not be tried again"


def test_a_failed_command_is_tried_on_another_machine_and_never_again_on_that_one(m: Lab) -> None:
    job = add(m, provision="setup", walltime_s=60.0, retries=3)
    m.started_there(m.orders[0])
    m.ended_there(m.orders[0], exit_code=3)
    assert [order.runner for order in m.orders] == [agent(m, "h1").id, agent(m, "h2").id]
    m.started_there(m.orders[1])
    m.ended_there(m.orders[1], exit_code=3)
    assert state(m, job) is State.READY
    assert m.world.jobs[job].avoid == ("h1", "h2")
    assert len(m.orders) == 2
    m.crash()
    assert m.world.jobs[job].avoid == ("h1", "h2")


def test_a_machine_whose_agent_died_meanwhile_may_be_tried_again(m: Lab) -> None:
    job = add(m, provision="setup", walltime_s=60.0, retries=1)
    m.started_there(m.orders[0])
    m.ended_there(m.orders[0], exit_code=None, reason="lost", message="its runner died")
    assert m.world.jobs[job].avoid == ()
    assert m.world.jobs[job].tries == 1
    assert len(m.orders) == 2


def test_without_retries_the_job_fails_and_its_machine_is_free(m: Lab) -> None:
    job = add(m, provision="setup", walltime_s=60.0)
    m.started_there(m.orders[0])
    m.ended_there(m.orders[0], exit_code=3)
    (row,) = m.store.jobs([job])
    assert (row.state, row.reason_code) == (State.FAILED, "provision")
    again = add(m, request="nodes=2,walltime=60s")
    m.pump()
    assert again in m.running()


def test_a_machine_that_restarts_while_it_provisions_itself_is_ready_when_it_is_back(m: Lab) -> None:
    job = add(m, provision="reinstall", walltime_s=60.0)
    m.started_there(m.orders[0])
    again = returns(m, "h1")
    m.pump()
    assert job in m.running()
    assert job in {each.grant.lease[0] for each in again.busy.values()}


# ------------------------------------------------------------------ from the manager's host


def test_a_machine_is_ready_when_its_agent_is_back(m: Lab) -> None:
    with_command(m, "h1", "h2")
    job = add(m, provision="f40", walltime_s=60.0)
    (order,) = m.commands
    assert (order.host, order.command, order.what, m.phase()) == ("h1", "install", "f40", "waiting")
    m.begins(order)
    assert m.phase() == "installing"
    m.ends(order)
    assert m.phase() == "installing"
    returns(m, "h1")
    assert m.phase() == ""
    assert job in m.running()


def test_a_machine_is_ready_when_it_says_so_with_its_ticket_and_only_once(m: Lab) -> None:
    with_command(m, "h1", "h2")
    job = add(m, provision="f40", walltime_s=60.0)
    m.begins(m.commands[0], ticket="abc")
    m.tell(p.NodeReady(host="", ticket="wrong"))
    assert isinstance(m.refused[-1], Denied)
    assert m.phase() == "installing"
    m.tell(p.NodeReady(host="", ticket="abc"))
    assert job in m.running()
    m.tell(p.NodeReady(host="", ticket="abc"))
    assert isinstance(m.refused[-1], Denied)
    m.tell(p.NodeReady(host="h2"))
    assert isinstance(m.refused[-1], BadInput)


def test_silence_while_a_machine_is_installed_is_neither_lost_nor_suspected(m: Lab) -> None:
    with_command(m, "h1", "h2")
    job = add(m, provision="f40", walltime_s=60.0)
    m.begins(m.commands[0])
    agent(m, "h1").disconnect()
    m.tell(events.RunnerParted(runner=agent(m, "h1").id))
    m.advance(LOST_AFTER_S * 5)
    assert state(m, job) is State.STARTING
    assert not m.world.runners[agent(m, "h1").id].silent


def test_a_machine_that_is_not_back_in_time_has_failed(m: Lab) -> None:
    with_command(m, "h1", "h2")
    job = add(m, provision="f40", walltime_s=60.0, retries=1)
    m.begins(m.commands[0])
    m.advance(1801)
    m.pump()
    assert m.world.jobs[job].avoid == ("h1",)
    assert [order.host for order in m.commands] == ["h1", "h2"]
    assert m.stopped == [job]


def test_a_command_that_is_not_begun_in_time_has_failed(m: Lab) -> None:
    with_command(m, "h1", "h2")
    job = add(m, provision="f40", walltime_s=60.0)
    m.advance(601)
    m.pump()
    (row,) = m.store.jobs([job])
    assert (row.state, row.reason_code) == (State.FAILED, "provision")
    assert "within 10m" in str(row.reason_message)


def test_a_cancelled_job_holds_nothing_and_its_command_is_stopped(m: Lab) -> None:
    with_command(m, "h1", "h2")
    job = add(m, provision="f40", walltime_s=60.0)
    m.begins(m.commands[0], ticket="abc")
    m.act("kill", job)
    m.pump()
    assert m.stopped == [job]
    assert m.phase() == ""
    m.tell(p.NodeReady(host="", ticket="abc"))
    assert isinstance(m.refused[-1], Denied)


def test_all_machines_of_a_job_must_be_ready(m: Lab) -> None:
    with_command(m, "h2")
    job = add(m, provision="setup", request="nodes=2,walltime=60s")
    m.started_there(m.orders[0])
    m.ended_there(m.orders[0])
    assert job not in m.running()
    m.begins(m.commands[0])
    m.tell(p.NodeReady(host="h2"))
    assert job in m.running()


def test_its_walltime_begins_with_its_execution(m: Lab) -> None:
    job = add(m, provision="setup", walltime_s=60.0)
    m.started_there(m.orders[0])
    m.advance(600)
    m.ended_there(m.orders[0])
    planned = m.world.placement.planned(job)
    assert planned is not None
    assert planned.end == m.wall + 60


def test_the_usual_length_of_provisioning_is_planned(m: Lab) -> None:
    job = add(m, provision="setup", walltime_s=60.0)
    m.started_there(m.orders[0])
    m.advance(600)
    m.ended_there(m.orders[0])
    second = add(m, provision="setup", walltime_s=60.0)
    planned = m.world.placement.planned(second)
    assert planned is not None
    assert planned.end == m.wall + 660
    assert job in m.running()


def test_a_machine_that_is_removed_while_it_is_installed_holds_nothing(m: Lab) -> None:
    with_command(m, "h1", "h2")
    job = add(m, provision="f40", walltime_s=60.0, retries=1)
    m.begins(m.commands[0])
    site(m, ("host", "h1", {"provision_cmd": "install", "condition": "removed"}))
    m.advance(1)
    m.pump()
    assert m.phase() == ""
    assert m.world.jobs[job].avoid == ("h1",)
    assert [order.host for order in m.commands] == ["h1", "h2"]


# ------------------------------------------------------------------ crashes


def test_after_a_crash_of_the_manager_a_machine_goes_on_being_installed(m: Lab) -> None:
    with_command(m, "h1", "h2")
    job = add(m, provision="f40", walltime_s=60.0)
    m.begins(m.commands[0], ticket="abc")
    m.crash()
    assert m.phase() == "installing"
    assert state(m, job) is State.STARTING
    m.join(agent(m, "h1"))
    m.join(agent(m, "h2"))
    m.pump()
    assert m.phase() == "installing"  # the same agent is no sign of a return
    m.tell(p.NodeReady(host="", ticket="abc"))
    m.pump()
    assert job in m.running()


def test_after_a_crash_of_the_manager_an_order_that_was_not_received_is_sent_again(m: Lab) -> None:
    job = add(m, provision="setup", walltime_s=60.0)
    m.crash()
    assert m.orders == []
    m.join(agent(m, "h1"))
    m.pump()
    (order,) = m.orders
    m.started_there(order)
    m.ended_there(order)
    m.pump()
    assert job in m.running()


def test_a_machine_that_came_back_is_known_after_a_crash(m: Lab) -> None:
    with_command(m, "h1", "h2")
    job = add(m, provision="f40", walltime_s=60.0)
    m.begins(m.commands[0])
    m.ends(m.commands[0])
    again = returns(m, "h1")
    assert job in m.running()
    m.crash()
    m.join(again)
    m.pump()
    assert job in m.running()
    assert m.world.jobs[job].lease.runner == again.id


def test_the_agent_that_dies_during_its_own_command_gives_the_job_back(m: Lab) -> None:
    job = add(m, provision="setup", walltime_s=60.0)
    m.started_there(m.orders[0])
    old = agent(m, "h1")
    old.die()
    new = m.start_runner("h1")
    new.pid = 2
    m.join(new)
    m.pump()
    assert len(m.orders) == 2
    assert m.world.jobs[job].avoid == ()
    assert all(each.phase != "done" for each in provisions_of(m.world.jobs[job]))


@pytest.mark.parametrize("crash", [False, True])
def test_a_machine_whose_condition_changes_while_it_is_installed_runs_its_job(m: Lab, crash: bool) -> None:
    with_command(m, "h1", "h2")
    job = add(m, provision="debian")
    (order,) = m.commands
    m.begins(order, ticket="abc")
    m.tell(MachineSet(by=m.asker(), operator=True, hosts=[order.host], condition="broken"))
    if crash:
        m.crash()
        m.join(agent(m, "h1"))
        m.join(agent(m, "h2"))
        m.pump()
    m.tell(p.NodeReady(host="", ticket="abc"))
    assert job in m.running()


def test_a_machine_that_is_given_too_little_memory_while_it_is_installed_runs_its_job_when_it_has_enough(
    m: Lab,
) -> None:
    with_command(m, "h1", "h2")
    job = add(m, provision="debian", size=Size(mem=GIB), where="host = 'h1'")
    m.begins(m.commands[0], ticket="abc")
    m.crash()
    m.join(agent(m, "h1"))
    m.join(agent(m, "h2"))
    less = {**m.world.site["host"]["h1"], "mem": GIB // 2}
    site(m, ("host", "h1", less))
    m.tell(p.NodeReady(host="", ticket="abc"))
    assert state(m, job) is State.READY
    m.commands.clear()
    site(m, ("host", "h1", {**less, "mem": GIB}))
    m.begins(m.commands[0], ticket="def")
    m.tell(p.NodeReady(host="", ticket="def"))
    assert job in m.running()


def test_nodes_tell_which_job_they_are_provisioned_for(m: Lab) -> None:
    job = add(m, provision="setup", walltime_s=60.0)
    first, second = nodes.view(nodes.snapshot(m.world))
    assert (first.jobs, first.cores_in_use) == ([job], 2.0)
    assert (second.jobs, second.cores_in_use) == ([], 0.0)


# ------------------------------------------------------------------ jobs over several machines


@pytest.mark.parametrize("durable", [False, True])
def test_after_a_restart_a_job_over_several_machines_still_waits_for_all_of_them(durable: bool) -> None:
    m = lab()
    with_command(m, "h1", "h2")
    m.send_chunk([Entry("wide", spec(request=("nodes=2,walltime=60s",), provision="debian"))])
    m.commit(perform=not durable)
    m.crash()
    m.commands = ask_again(m.world)
    for model in m.runners.values():
        m.join(model)
    m.pump()
    assert not m.running()
    assert not any(model.parts for model in m.runners.values()), "no part is opened before all machines are ready"
    for order in list(m.commands):
        m.begins(order)
    second = returns(m, "h2")  # it is installed anew, and what the former agent had is settled
    m.settle(next(model for model in m.runners.values() if model.host == "h2" and model is not second))
    m.pump()
    assert m.phase() == "installing"
    for order in list(m.commands):
        m.tell(p.NodeReady(host=order.host))
    assert list(m.running()) == [1]
    assert second.parts
