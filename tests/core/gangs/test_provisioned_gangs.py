"""Gangs whose machines are provisioned: nobody begins before all are ready, and one that fails releases all."""

from __future__ import annotations

import pytest

from rota.core.attempts.leases import PartOpened
from rota.core.machines.provision_records import NodeReady, RunProvision
from rota.core.states import State
from tests.core.gangs.lab import add, reason
from tests.core.machine import Entry, spec
from tests.core.machines.test_provisioning import Lab, lab, with_command


def provisioned(retries: int, policy: str = "", hosts: int = 3) -> tuple[Lab, list[int]]:
    """A gang of two whose machines are being installed."""
    m = lab(hosts)
    with_command(m, *m.capacity)
    jobs = add(m, "a", "b", provision="debian", retries=retries, on_member_failure=policy)
    m.pump()
    return m, jobs


def installed(m: Lab, order: RunProvision) -> None:
    """The machine says that it is ready."""
    m.begins(order, ticket=order.host)
    m.tell(NodeReady(host="", ticket=order.host))


def states(m: Lab, jobs: list[int]) -> list[State]:
    return [m.world.jobs[job].state for job in jobs if job in m.world.jobs]


def test_nobody_begins_before_all_machines_are_ready() -> None:
    m, jobs = provisioned(retries=0)
    first, second = m.commands
    installed(m, first)
    assert State.RUNNING not in states(m, jobs)
    installed(m, second)
    assert states(m, jobs) == [State.RUNNING] * 2


@pytest.mark.parametrize("policy", ["", "kill", "keep", "retry"])
def test_a_member_that_fails_in_provisioning_releases_all_and_the_gang_is_tried_elsewhere(policy: str) -> None:
    m, jobs = provisioned(retries=1, policy=policy)
    first, second = m.commands
    m.begins(first)
    installed(m, second)
    m.ends(first, wrong="exit 1")
    third, fourth = m.commands[2:]
    assert {third.host, fourth.host} == set(m.capacity) - {first.host}
    for order in (third, fourth):
        installed(m, order)
    assert states(m, jobs) == [State.RUNNING] * 2


def test_without_retries_all_fail_and_hold_nothing() -> None:
    m, jobs = provisioned(retries=0)
    first, second = m.commands
    m.begins(first)
    m.begins(second)
    m.ends(first, wrong="exit 1")
    assert states(m, jobs) in ([], [State.FAILED] * 2)
    assert sorted(reason(m, job) for job in jobs) == ["gang", "provision"]
    assert not any(runner.leases for runner in m.world.runners.values())


def test_while_too_few_machines_are_left_the_gang_waits_and_holds_nothing() -> None:
    m, jobs = provisioned(retries=1, hosts=2)
    first, _second = m.commands
    m.begins(first)
    m.ends(first, wrong="exit 1")
    assert len(m.commands) == 2
    assert not any(runner.leases for runner in m.world.runners.values())
    assert State.FAILED not in states(m, jobs)


def test_a_runner_that_says_twice_that_its_part_is_open_lets_no_member_begin_before_the_others() -> None:
    m = lab(3)
    wide = Entry("w", spec(gang="g", name="wide", request=("nodes=2",)))
    (prepared, wide_job) = add(m, "a", provision="debian", request=("nodes=1",), entries=[wide])
    (other,) = [model for model in m.runners.values() if model.parts]
    (lease,) = other.parts
    other.draft.opened.append(PartOpened(*lease))
    other.report()
    m.pump()
    assert states(m, [prepared, wide_job]) == [State.STARTING] * 2
    m.ended_there(m.orders[0])
    assert states(m, [prepared, wide_job]) == [State.RUNNING] * 2
