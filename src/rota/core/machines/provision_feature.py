"""Provisioning as a feature: its registration as the first preparation of a lease, and what follows from time."""

from __future__ import annotations

import msgspec

from rota.core.attempts.suspension import change_grant
from rota.core.feature import Feature
from rota.core.jobs.job import Job
from rota.core.machines import provision_reports as reports
from rota.core.machines import provision_restart, provisioning
from rota.core.machines.deploy_host_commands import ask_deployers
from rota.core.machines.machine_now import condition_of
from rota.core.machines.machine_states import Condition
from rota.core.machines.provision_records import (
    PROVISION,
    NodeReady,
    ProvisionBegan,
    ProvisionEnded,
    Provisions,
    TicketMade,
)
from rota.core.machines.provision_steps import (
    all_ready,
    begin_provisioning,
    fail_provisioning,
    is_wanted,
    stop_provisioning,
)
from rota.core.machines.provisioned_machines import away_deploy_host, deployer, is_awaited, provisions_of
from rota.core.machines.provisioning import DONE, WAITING
from rota.core.site.plan_facts import inform
from rota.core.turn import Turn
from rota.core.world import Preparation, World
from rota.plan.placement.given import Provision


def _check(world: World, turn: Turn) -> None:
    """Fail what takes too long or is gone, and go on with what had to wait because nothing might start."""
    state = world.use(Provisions)
    for id in sorted(state.jobs):
        job = world.jobs[id]
        if any(each.via for each in provisions_of(job)):
            ask_deployers(world, turn, job)
        gone = [each.host for each in provisions_of(job) if condition_of(world, each.host) is Condition.REMOVED]
        if gone:
            _removed(world, turn, gone[0])
            continue
        late = next(
            ((each, why) for each in provisions_of(job)
             if (why := provisioning.lateness(each, turn.wall, state.limits))), None
        )  # fmt: skip
        if late is not None:
            # Where a deploy host is away or does not begin, that says nothing about the machine.
            by_deployer = late[0].via and (late[0].phase == WAITING or deployer(world, late[0]) is None)
            away = away_deploy_host(world, (late[0],))
            why = f"{late[1]}: the deploy host {away} has no living agent" if away else late[1]
            fail_provisioning(world, turn, job, late[0].host, why, avoid=not by_deployer)
        elif all(each.phase == DONE for each in provisions_of(job)):
            all_ready(world, turn, job)


def _removed(world: World, turn: Turn, host: str) -> None:
    """A machine is removed while it is provisioned: its job may be tried elsewhere."""
    for id in sorted(world.use(Provisions).jobs):
        job = world.jobs[id]
        if any(each.host == host for each in provisions_of(job)):
            fail_provisioning(world, turn, job, host, f"{host} was removed while it was being provisioned")


def _follow_clock(world: World, turn: Turn, by: float) -> None:
    """The wall clock was set: nothing takes longer because of that."""
    for id in sorted(world.use(Provisions).jobs):
        job = world.jobs[id]
        change_grant(world, turn, job, provisions=tuple(_moved(each, by) for each in provisions_of(job)))


def _moved(each: Provision, by: float) -> Provision:
    later = {name: at + by for name in ("began_at", "ended_at") if (at := getattr(each, name)) is not None}
    return msgspec.structs.replace(each, asked_at=each.asked_at + by, **later)


def _next_due(world: World) -> float | None:
    state = world.use(Provisions)
    times = (
        provisioning.due_at(each, state.limits) for id in state.jobs for each in provisions_of(world.jobs[id])
    )
    return min((at for at in times if at is not None), default=None)


def _started(world: World, turn: Turn, job: Job) -> None:
    """Its execution begins: plan its end after its walltime and the hold that follows."""
    lease = job.lease
    if lease is None or lease.given is None or not lease.given.provisions or lease.started_at is None:
        return
    if world.placement.planner is None:
        return
    spec = job.spec
    length = lease.given.walltime_s or job.size.time_s
    after_s = spec.reserve_for_s or 0.0 if spec.reserve == "always" else 0.0
    inform(world, turn.wall)
    world.placement.move_end(job.id, lease.started_at + length + after_s, turn.wall, force=True)


def _index_as_leased(world: World) -> list[str]:
    """Invariant: the index has exactly the withheld leases in provisioning."""
    state = world.use(Provisions)
    there = {job.id for job in world.jobs.values() if job.lease is not None and job.lease.preparing == PROVISION}
    wrong = [f"I3: job {id} is provisioned, and no index or lease says so" for id in sorted(there ^ state.jobs)]
    for id in there & state.jobs:
        lease = world.jobs[id].lease
        if lease is not None and (lease.withheld is None or not lease.stays):
            wrong.append(f"I3: job {id} is being provisioned and was sent")
    return wrong + _alone_on_their_hosts(world, state)


def _alone_on_their_hosts(world: World, state: Provisions) -> list[str]:
    """No job that takes no core runs on a host that is made ready for another one. Cores are looked at by I5."""
    wrong = []
    for id in sorted(state.jobs):
        for each in provisions_of(world.jobs[id]):
            runner = world.runners.get(world.runner_at.get(each.host, ""))
            for other in runner.leases if runner is not None else ():
                lease = world.jobs[other].lease
                if other != id and not world.jobs[other].size.cpus and lease is not None and lease.started_at:
                    wrong.append(f"I5: job {other} runs on {each.host}, which is being provisioned for job {id}")
    return wrong


FEATURE = Feature(
    name="provisioning",
    state=Provisions,
    invariant=_index_as_leased,
    handlers={
        ProvisionBegan: reports.on_provision_began,
        ProvisionEnded: reports.on_provision_ended,
        TicketMade: reports.on_ticket_made,
        NodeReady: reports.on_node_ready,
    },
    preparation=Preparation(name=PROVISION, wanted=is_wanted, begin=begin_provisioning),
    on_timer=_check,
    next_due=_next_due,
    clock_moved=_follow_clock,
    node_removed=_removed,
    restore=provision_restart.restore,
    restore_leases=provision_restart.restore_leases,
    runner_joined=reports.machine_joined,
    runner_reported=reports.take_reports,
    keeps_lease=reports.keeps_lease,
    awaits_host=is_awaited,
    attempt_started=_started,
    lease_voided=stop_provisioning,
)
