"""Holds: a job that has ended keeps its machines for a time (`reserve`).

Its outcome is recorded and its dependents begin at the end of the run. The hold belongs to the machines. It counts
in quotas and accounts; its user extends it with `rota walltime` and ends it with `rota node return`.
"""

from __future__ import annotations

from math import floor
from typing import Final

import msgspec

from rota.core.accounts.accounting import account_hold
from rota.core.accounts.amounts import cores_of
from rota.core.answers import WalltimeSet
from rota.core.attempts.suspension import change_grant
from rota.core.attempts.suspension_phases import away
from rota.core.effects import SendReply
from rota.core.events import WalltimeAsked
from rota.core.feature import Feature
from rota.core.jobs.dependencies import must_run_again
from rota.core.jobs.job import AttemptEnd, Job
from rota.core.machines.hold_records import Holds, KeptMachines
from rota.core.machines.hold_rules import hold_s
from rota.core.machines.machine_use import end_keeping, hosts_of, keep
from rota.core.restart import Restart
from rota.core.rows import GivenRow
from rota.core.site.plan_facts import ask_of_lease, inform
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import World
from rota.errors import BadInput
from rota.plan.need import Need
from rota.plan.placement.given import Hold
from rota.units import about_duration, format_duration

#: Key of `Changes.meta` for the holds.
_STORED: Final = "holds"


def _begin(world: World, turn: Turn, job: Job, ended: AttemptEnd, host: str) -> None:
    """An attempt is over: begin the hold of its job if it was the last one."""
    spec, lease, outcome = job.spec, job.lease, ended.outcome
    if not spec.reserve or lease is None or lease.given is None or outcome is None or outcome.started_at is None:
        return
    if away(job) is not None:
        return  # it was suspended, and others may have its machines
    over = ended.state is State.FAILED or (ended.state is State.COMPLETE and not must_run_again(job))
    if not over or ended.again:
        return
    code = ended.reason.code if ended.reason is not None else ""
    seconds = hold_s(spec.reserve, spec.reserve_for_s, code=code, cancelled=job.kill)
    if not seconds:
        return
    since, until = outcome.ended_at, outcome.ended_at + seconds
    change_grant(world, turn, job, hold=Hold(since, until))
    need = job.need
    rest = Need(need.size, (), need.terms, need.pool, need.walltime_s)
    ask = msgspec.structs.replace(ask_of_lease(world, job), limits=())
    kept = KeptMachines(
        job.id, job.attempt, host, tuple(sorted(hosts_of(job, host))), spec.user, spec.project, spec.queue,
        job.submitted_at, since, until, rest, lease.given, ask,
    )  # fmt: skip
    world.use(Holds).kept[job.id] = kept
    world.placement.kept(host, need, ended_at=turn.mono)
    if need.limits:
        # The plan must learn that its limits are free.
        inform(world, turn.wall, anew=True)
        world.placement.clock_moved(turn.wall)
    elif world.placement.planner is not None:
        inform(world, turn.wall)
        world.placement.move_end(job.id, until, turn.wall, force=True)
    for each in kept.hosts:
        keep(world, each, job.id)
    turn.note(job.id, job.attempt, "hold", f"keeps {', '.join(kept.hosts)} for {about_duration(seconds)}")
    _store(world, turn)


def _keeps_room(world: World, job: Job) -> bool:
    kept = world.use(Holds).kept.get(job.id)
    return kept is not None and kept.attempt == job.attempt


def end_hold(world: World, turn: Turn, kept: KeptMachines, why: str) -> None:
    """End the hold of a job: free its machines."""
    holds = world.use(Holds)
    del holds.kept[kept.job]
    ended_at = max(kept.since, turn.wall)
    world.placement.released(kept.host, kept.need, job=kept.job, ended_at=turn.mono)
    for host in kept.hosts:
        end_keeping(world, host, kept.job)
    given = msgspec.structs.replace(kept.given, hold=Hold(kept.since, kept.until, ended_at))
    text = msgspec.json.encode(given).decode()
    turn.changes.regiven[kept.job, kept.attempt] = GivenRow(kept.job, kept.attempt, text)
    account_hold(
        turn, world.usage_history, (kept.user, kept.project, kept.queue),
        cpus=cores_of(kept.need.size, kept.given), since=kept.since, until=ended_at,
    )  # fmt: skip
    turn.note(kept.job, kept.attempt, "hold", f"gives back {', '.join(kept.hosts)}: {why}")
    _store(world, turn)


def extend_hold(world: World, turn: Turn, event: WalltimeAsked) -> bool:
    """Set how long a hold lasts. False: the job has none. Raises `BadInput`."""
    found = world.find(Holds)
    kept = found.kept.get(event.job) if found is not None else None
    if found is None or kept is None:
        return False
    old = kept.until - kept.since
    wanted = event.seconds + (old if event.relative else 0.0)
    if kept.since + wanted <= turn.wall:
        raise BadInput(
            f"job {kept.job} has kept its machines for {format_duration(max(1.0, floor(turn.wall - kept.since)))}",
            hint=f"give a longer time, or return them: rota node return {kept.host}",
        )
    until = kept.since + wanted
    if world.placement.planner is not None:
        inform(world, turn.wall)
        until = max(kept.until, world.placement.move_end(kept.job, until, turn.wall, force=event.force))
        until = min(until, kept.since + wanted) if wanted < old else until
    given = msgspec.structs.replace(kept.given, hold=Hold(kept.since, until))
    found.kept[kept.job] = msgspec.structs.replace(kept, until=until, given=given)
    text = msgspec.json.encode(given).decode()
    turn.changes.regiven[kept.job, kept.attempt] = GivenRow(kept.job, kept.attempt, text)
    turn.note(kept.job, kept.attempt, "hold", f"{format_duration(until - kept.since)} in all, by {event.by.user}")
    _store(world, turn)
    turn.effects.append(SendReply(event.by, WalltimeSet(kept.job, until - kept.since, 0.0, old, keeps=True)))
    return True


def _end_overdue(world: World, turn: Turn) -> None:
    for kept in [each for each in world.use(Holds).kept.values() if each.until <= turn.wall]:
        end_hold(world, turn, kept, "its time is over")


def _next_end(world: World) -> float | None:
    return min((each.until for each in world.use(Holds).kept.values()), default=None)


def _reopened(world: World, turn: Turn, job: Job) -> None:
    """A job that is to run again returns its machines."""
    if (kept := world.use(Holds).kept.get(job.id)) is not None:
        end_hold(world, turn, kept, "it is to run again")


def _follow_clock(world: World, turn: Turn, by: float) -> None:
    """The wall clock was set: a hold lasts as long as before."""
    holds = world.use(Holds)
    for job, kept in holds.kept.items():
        holds.kept[job] = msgspec.structs.replace(kept, since=kept.since + by, until=kept.until + by)
    if holds.kept:
        _store(world, turn)


def _store(world: World, turn: Turn) -> None:
    turn.changes.meta[_STORED] = msgspec.json.encode(list(world.use(Holds).kept.values())).decode()


def _restore(world: World, restart: Restart) -> None:
    """Go on with the holds of the manager before."""
    text = restart.snapshot.meta.get(_STORED)
    for kept in msgspec.json.decode(text, type=list[KeptMachines]) if text else ():
        if kept.host not in world.capacity:
            continue
        world.use(Holds).kept[kept.job] = kept
        world.placement.adopt_lease(kept.host, kept.need)
        for host in kept.hosts:
            keep(world, host, kept.job)


def _restore_leases(world: World, _restart: Restart) -> None:
    """Put the feature into use if a running job may keep its machines."""
    jobs = (world.jobs[id] for runner in world.runners.values() for id in runner.leases)
    if any(job.spec.reserve for job in jobs):
        world.use(Holds)


FEATURE = Feature(
    name="holds",
    state=Holds,
    on_timer=_end_overdue,
    next_due=_next_end,
    clock_moved=_follow_clock,
    restore=_restore,
    restore_leases=_restore_leases,
    attempt_over=_begin,
    keeps_room=_keeps_room,
    job_reopened=_reopened,
)
