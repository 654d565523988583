"""Provision commands of nodes that the agent of a deploy host runs: when it gets them, and what it may lose."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rota.core import effects as e
from rota.core.attempts.leases import Finished, LeaseRef, Started
from rota.core.jobs.explain import why
from rota.core.jobs.outcome import Outcome
from rota.core.machines import provision_records as p
from rota.core.machines.faulty_runs import FaultyRuns
from rota.core.machines.provisioned_machines import provisions_of
from rota.core.states import State
from rota.manager.views import nodes
from tests.core.machine import LOST_AFTER_S
from tests.core.machines.test_provisioning import Lab, agent, returns, state, with_command
from tests.core.runners import Grant, ModelRunner
from tests.core.test_planned import add


class Deployment(Lab):
    """The machines h1 and h2, which have a provision command, and the deploy host h3."""

    def _boot(self) -> None:
        super()._boot()
        self.world.settings = msgspec.structs.replace(self.world.settings, deploy_host="h3")
        self.errands: list[p.SendErrand] = []
        self.kept: list[str] = []
        self.killed: list[tuple[int, int, int]] = []

    def _perform(self, effect: e.Effect) -> None:
        match effect:
            case p.SendErrand():
                self.errands.append(effect)
            case p.KeepProvisionOutput(host=host):
                self.kept.append(host)
            case _:
                if isinstance(effect, e.KillAttempts) and effect.runner == agent(self, "h3").id:
                    self.killed += effect.leases
                super()._perform(effect)

    def ticket_made(self, ticket: str = "abc") -> p.SendErrand:
        """The last command that was asked for has its ticket, and is sent."""
        order = self.commands[-1]
        ref = {"job": order.job, "attempt": order.attempt, "host": order.host, "token": order.token}
        self.tell(p.TicketMade(**ref, ticket=ticket))
        return self.errands[-1]

    def errand_started(self, errand: p.SendErrand) -> None:
        order = errand.order
        started = Started(order.job, order.attempt, order.token, order.token, self.wall, 7)
        self.tell(self._report(errand.runner, started=[started]))

    def errand_ended(self, errand: p.SendErrand, **outcome: Any) -> None:
        order = errand.order
        whole = Outcome(**{"exit_code": 0, "started_at": self.wall, "ended_at": self.wall, **outcome})
        self.tell(self._report(errand.runner, ended=[Finished(order.job, order.attempt, order.token, 0, whole)]))

    def given_back(self, errand: p.SendErrand) -> None:
        order = errand.order
        self.tell(self._report(errand.runner, returned=[LeaseRef(order.job, order.attempt, order.token)]))


def deployment(*joined: str) -> Deployment:
    made = Deployment(cpus=200, hosts=3)
    for host in joined or made.capacity:
        made.join(made.start_runner(host))
    made.pump()
    with_command(made, "h1", "h2")
    return made


@pytest.fixture
def m() -> Deployment:
    return deployment()


def job_on_h1(m: Deployment, **fields: Any) -> int:
    return add(m, provision="f40", walltime_s=60.0, prefer="host = 'h1'", **fields)


def away(m: Deployment) -> ModelRunner:
    """The deploy host is cut off."""
    gone = agent(m, "h3")
    m.disconnect(gone)
    return gone


def said(m: Deployment, job: int) -> str:
    return why(m.world, m.world.jobs[job], wall=m.wall)[0].message


def test_the_command_is_sent_to_the_deploy_host_with_its_ticket(m: Deployment) -> None:
    job = job_on_h1(m)
    assert [order.via for order in m.commands] == ["h3"]
    assert m.errands == []
    errand = m.ticket_made()
    assert (errand.runner, errand.order.host, errand.order.command) == (agent(m, "h3").id, "h1", "install")
    assert m.phase() == "waiting"
    m.errand_started(errand)
    assert m.phase() == "installing"
    m.errand_ended(errand)
    assert (m.phase(), m.kept) == ("installing", ["h1"])
    returns(m, "h1")
    assert job in m.running()


def test_the_ticket_is_accepted_while_the_command_runs_and_the_command_is_ended_then(m: Deployment) -> None:
    job = job_on_h1(m)
    errand = m.ticket_made("abc")
    m.errand_started(errand)
    m.tell(p.NodeReady(host="", ticket="abc"))
    assert job in m.running()
    assert m.killed == [(job, 1, errand.order.token)]
    m.errand_ended(errand, exit_code=None, signal=9)
    assert m.kept == ["h1"]
    assert job in m.running()


def test_a_failed_command_is_tried_on_another_machine(m: Deployment) -> None:
    job = job_on_h1(m, retries=1)
    errand = m.ticket_made()
    m.errand_started(errand)
    m.errand_ended(errand, exit_code=3)
    assert m.world.jobs[job].avoid == ("h1",)
    assert m.commands[-1].host == "h2"


def test_the_deploy_host_itself_is_provisioned_from_the_managers_host(m: Deployment) -> None:
    with_command(m, "h3")
    add(m, provision="f40", walltime_s=60.0, force_host="h3")
    assert [(order.host, order.via) for order in m.commands] == [("h3", "")]


def test_without_a_living_agent_of_the_deploy_host_the_attempt_waits_and_says_so(m: Deployment) -> None:
    gone = away(m)
    job = job_on_h1(m)
    assert m.commands == []
    assert m.phase() == "waiting"
    assert said(m, job) == "h1 waits to be provisioned: the deploy host h3 has no living agent"
    first, *_ = nodes.view(nodes.snapshot(m.world))
    assert first.why == "waits for the deploy host h3, which has no living agent"
    m.join(gone)
    m.pump()
    m.advance(1)
    assert said(m, job) == "h1 waits to be provisioned"
    m.errand_started(m.ticket_made())
    assert m.phase() == "installing"


def test_it_is_said_when_the_agent_of_the_deploy_host_falls_silent(m: Deployment) -> None:
    job = job_on_h1(m)
    away(m)
    m.advance(LOST_AFTER_S + 5)
    assert said(m, job) == "h1 waits to be provisioned: the deploy host h3 has no living agent"


def test_a_machine_is_not_to_blame_for_an_absent_deploy_host(m: Deployment) -> None:
    away(m)
    job = job_on_h1(m)
    m.advance(601)
    m.pump()
    (row,) = m.store.jobs([job])
    assert (row.state, row.reason_code) == (State.FAILED, "provision")
    assert str(row.reason_message).endswith("within 10m: the deploy host h3 has no living agent")
    assert m.world.jobs.get(job) is None or m.world.jobs[job].avoid == ()
    assert m.world.use(FaultyRuns).faults == {}


def test_a_command_that_its_agent_gives_back_is_sent_again(m: Deployment) -> None:
    job_on_h1(m)
    first = m.ticket_made()
    m.given_back(first)
    m.advance(1)
    m.pump()
    assert len(m.commands) == 2
    second = m.ticket_made("other")
    assert second.order.token != first.order.token
    m.errand_started(second)
    assert m.phase() == "installing"


def test_a_command_that_ended_with_its_agent_is_run_again_with_another_ticket(m: Deployment) -> None:
    job = job_on_h1(m)
    m.errand_started(first := m.ticket_made("abc"))
    m.errand_ended(first, exit_code=None, reason="lost", message="its runner died")
    assert (m.phase(), len(m.commands)) == ("installing", 2)
    m.errand_started(m.ticket_made("def"))
    m.tell(p.NodeReady(host="", ticket="abc"))
    assert job not in m.running()
    m.tell(p.NodeReady(host="", ticket="def"))
    assert job in m.running()


@pytest.mark.parametrize("crash", [False, True])
def test_a_command_that_the_agent_still_has_goes_on(m: Deployment, crash: bool) -> None:
    job = job_on_h1(m)
    errand = m.ticket_made("abc")
    m.errand_started(errand)
    gone = away(m)
    if crash:
        m.crash()
        m.join(agent(m, "h1"))
    model_holds(gone, errand)
    m.join(gone)
    m.pump()
    m.advance(2)
    assert len(m.commands) == (0 if crash else 1)
    assert m.phase() == "installing"
    m.tell(p.NodeReady(host="", ticket="abc"))
    m.pump()
    assert job in m.running()


def model_holds(model: ModelRunner, errand: p.SendErrand) -> None:
    """It reports the command as one of its leases when it joins."""
    order = errand.order
    lease = (order.job, order.attempt, order.token)
    model.waiting.append(Grant((0, order.job), lease, errand.job.spec, errand.job.size))


@pytest.mark.parametrize("sent", [False, True])
def test_after_a_crash_of_the_manager_a_command_that_was_not_received_is_asked_for_again(
    m: Deployment, sent: bool
) -> None:
    job = job_on_h1(m)
    if sent:
        m.ticket_made("abc")
    m.crash()
    assert m.commands == []
    for host in ("h1", "h3"):
        m.join(agent(m, host))
    m.pump()
    m.advance(1)
    assert [order.via for order in m.commands] == ["h3"]
    m.errand_started(m.ticket_made("def"))
    m.tell(p.NodeReady(host="", ticket="def"))
    m.pump()
    assert job in m.running()


def test_a_cancelled_job_has_its_command_ended(m: Deployment) -> None:
    job = job_on_h1(m)
    errand = m.ticket_made()
    m.errand_started(errand)
    m.act("kill", job)
    m.pump()
    assert m.killed == [(job, 1, errand.order.token)]
    assert m.phase() == ""


def test_each_machine_of_a_job_has_a_command_of_its_own(m: Deployment) -> None:
    job = add(m, provision="f40", request="nodes=2,walltime=60s", where="host in ('h1', 'h2')")
    assert sorted(order.host for order in m.commands) == ["h1", "h2"]
    assert len({each.token for each in provisions_of(m.world.jobs[job])}) == 2
    assert state(m, job) is State.STARTING
