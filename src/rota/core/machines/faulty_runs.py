"""Broken detection: two runs in a row that go wrong make a machine broken, and its owner is told.

A run goes wrong if provisioning fails or the site aborts it. The two must belong to different jobs. A run that
ends by itself, and an operator who sets the condition, reset the count. Aborted runs count only on provisioned
machines and on those with an owner or a group: on a host shared by many small jobs, a job that takes too long says
nothing about the host.
"""

from __future__ import annotations

from typing import Final

import msgspec

from rota.core.feature import Feature
from rota.core.jobs.job import AttemptEnd, Job
from rota.core.machines.fault_rules import PROVISION, Faults, Verdict, another, verdict
from rota.core.machines.host_fields import recall_unstarted, set_fields
from rota.core.machines.machine_use import hosts_of
from rota.core.restart import Restart
from rota.core.turn import NO_JOB_ID, Turn
from rota.core.world import World
from rota.plan.site.site_builder import host_record

#: Key of `Changes.meta`.
FAULTS: Final = "machine_faults"


class FaultyRuns:
    """State of the feature `broken detection`."""

    __slots__ = ("faults",)

    def __init__(self) -> None:
        self.faults: dict[str, Faults] = {}  #: by host


def judge_run(world: World, turn: Turn, job: Job, ended: AttemptEnd, host: str) -> None:
    """Count the end of a run for or against its machines."""
    runs = world.use(FaultyRuns)
    code = ended.reason.code if ended.reason is not None else ""
    executed = ended.outcome is not None
    strictest = verdict(code, executed=executed, watched=True)
    if strictest is Verdict.NOTHING or (strictest is Verdict.GOOD and not runs.faults):
        return  # as almost all runs
    for each in sorted(hosts_of(job, host)):
        record = host_record(world.site, each)
        if code == PROVISION and each not in job.avoid:
            continue  # it was another machine, or none
        watched = bool(job.spec.provision or record.owner or record.groups)
        match verdict(code, executed=executed, watched=watched):
            case Verdict.GOOD:
                reset_faults(world, turn, each)
            case Verdict.FAULTY:
                why = ended.reason.message if ended.reason is not None else code
                _count(world, turn, each, job, f"job {job.id}: {why}")


def _count(world: World, turn: Turn, host: str, job: Job, why: str) -> None:
    runs = world.use(FaultyRuns)
    leased_at = None if job.lease is None else job.lease.leased_at
    found = another(runs.faults.get(host), job=job.id, leased_at=leased_at, why=why, now=turn.wall)
    if found is None:
        return
    if not found.is_broken:
        runs.faults[host] = found
        _store(world, turn)
        return
    reset_faults(world, turn, host)
    declare_broken(world, turn, host, f"{found.number} runs in a row went wrong: {found.why}")


def declare_broken(world: World, turn: Turn, host: str, why: str) -> None:
    """Let nothing begin on this machine until it is repaired, and tell its owner."""
    record = host_record(world.site, host)
    if record.condition != "automated":
        return
    set_fields(world, turn, host, by="rota", condition="broken", condition_reason=why[:500])
    recall_unstarted(world, turn, host)
    told = f"; notice to its owner {record.owner}" if record.owner else ""
    turn.note(NO_JOB_ID, 0, "broken", f"{host} is broken: {why}{told}")


def reset_faults(world: World, turn: Turn, host: str) -> None:
    """Forget the faults of a machine, after a good run or on the word of an operator."""
    runs = world.find(FaultyRuns)
    if runs is not None and runs.faults.pop(host, None) is not None:
        _store(world, turn)


def _store(world: World, turn: Turn) -> None:
    turn.changes.meta[FAULTS] = msgspec.json.encode(world.use(FaultyRuns).faults).decode()


def _restore(world: World, restart: Restart) -> None:
    faults = msgspec.json.decode(restart.snapshot.meta.get(FAULTS) or "{}", type=dict[str, Faults])
    if faults:
        world.use(FaultyRuns).faults = faults


FEATURE = Feature(name="broken detection", state=FaultyRuns, restore=_restore, attempt_over=judge_run)
