"""Suspected hosts: a hook of the site found them unfit, so nothing begins there until they heal.

The verdict is stored in the host's record, like an administrator's, with its author and reason.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rota.core.attempts.attempt import leased_job
from rota.core.events import HostHealed, RunnerReported
from rota.core.jobs.job import Job, Reason
from rota.core.machines.host_fields import recall_unstarted
from rota.core.machines.nodes import follow_records
from rota.core.states import State
from rota.core.turn import NO_JOB_ID, Turn
from rota.core.world import Runner, World, move
from rota.plan.site.site_builder import host_record

#: Author of the state `dead` after fencing. A runner that joins there disproves it.
BY_FENCE = "fence"
#: Characters kept of a runner's message.
_LONGEST = 500


def take_hook_reports(world: World, turn: Turn, runner: Runner, event: RunnerReported) -> None:
    """Handle a runner's reports about prologues and epilogues."""
    for phase in event.phases:
        job = leased_job(world, runner, phase)
        if job is None:
            continue
        # Routine, so not written: a restart may forget it.
        if phase.name == "prologue" and job.state is State.SCHEDULED:
            move(world, job, State.STARTING)
            job.reason = Reason("prologue", f"the prologue of {runner.host} runs")
        elif phase.name == "epilogue" and job.state is State.RUNNING:
            move(world, job, State.FINISHING)
            job.reason = Reason("epilogue", f"the epilogue of {runner.host} runs")
    for fault in event.faults:
        job = world.jobs.get(fault.job)
        if job is not None and job.attempt == fault.attempt and _believed(world, job, runner):
            turn.note(
                job.id, fault.attempt, fault.hook[:_LONGEST], f"on {runner.host}: {fault.message[:_LONGEST]}"
            )
        why = f"job {fault.job}: {fault.message[:_LONGEST]}"
        suspect(world, turn, runner.host, by=fault.hook[:_LONGEST], why=why)


def _believed(world: World, job: Job, runner: Runner) -> bool:
    """May the runner add a line to the job's story? Yes, if it has the job's latest attempt and has not added too
    many. A host without the lease may add one, since that makes it suspected.
    """
    if job.lease is None:
        return host_record(world.site, runner.host).state == "alive"
    given = job.lease.given
    here = job.id in runner.leases or (given is not None and runner.host in {host for host, _cores in given.nodes})
    return here and runner.may_note(job.id)


def suspect(world: World, turn: Turn, host: str, *, by: str, why: str) -> None:
    """Begin nothing more on this host, and recall leases that have not started."""
    if host_record(world.site, host).state != "alive":
        return
    set_state(world, turn, host, "suspected", by=by, why=why)
    recall_unstarted(world, turn, host)


def to_heal(world: World) -> list[str]:
    """The suspected hosts whose runner answers."""
    hosts = (host for host, record in world.site["host"].items() if record.get("state") == "suspected")
    runners = ((host, world.runners.get(world.runner_at.get(host, ""))) for host in hosts)
    return sorted(
        host for host, runner in runners if runner is not None and runner.connected and not runner.silent
    )


def on_host_healed(world: World, turn: Turn, event: HostHealed) -> None:
    """The site's check found a suspected host healthy."""
    if host_record(world.site, event.host).state == "suspected":
        set_state(world, turn, event.host, "alive", by="heal", why=event.why)


def clear_fenced(world: World, turn: Turn, host: str) -> None:
    """A runner joined: a fenced host is no longer dead."""
    record = host_record(world.site, host)
    if record.state == "dead" and record.by == BY_FENCE:
        set_state(world, turn, host, "alive", by="agent", why="its agent joined")


def set_state(world: World, turn: Turn, host: str, state: str, *, by: str, why: str) -> None:
    """Write a host's state into its record, with author and reason."""
    before: dict[str, Any] = world.site["host"].get(host, {})
    about = ("state", "by", "why") if before.get("drain") else ("state", "by", "why", "reason")
    record: dict[str, Any] = {name: value for name, value in before.items() if name not in about}
    if state != "alive":
        record |= {"state": state, "by": by, "why": why}
    value = record or None
    hosts = {name: each for name, each in world.site["host"].items() if name != host}
    world.site["host"] = hosts if value is None else {**hosts, host: value}
    world.site_version += 1
    turn.changes.site["host", host] = None if value is None else msgspec.json.encode(value).decode()
    turn.note(NO_JOB_ID, 0, "node", f"{host} is {state}, by {by}: {why}")
    follow_records(world, turn, [("host", host, value)], by=by)
    if world.on_site is not None:
        world.on_site()
