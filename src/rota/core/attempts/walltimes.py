"""Change the walltime of a running job, as far as no promise to another job breaks; the rest is pending.

Pending time is stored with the attempt's grant and tried again as time passes.
"""

from __future__ import annotations

from math import floor

from rota.core.answers import WalltimeSet
from rota.core.attempts.grant_indexes import Extensions
from rota.core.attempts.lease_refs import ref_of
from rota.core.attempts.suspension import change_grant
from rota.core.attempts.suspension_phases import pause_of, suspended_s, walltime_of
from rota.core.effects import ChangeWalltime, SendReply
from rota.core.events import RunnerJoined, WalltimeAsked
from rota.core.feature import Feature
from rota.core.jobs.job import Job, Lease
from rota.core.machines.holds import extend_hold
from rota.core.site.plan_facts import inform
from rota.core.states import TERMINAL, State
from rota.core.turn import Turn
from rota.core.world import Runner, World, acted_on
from rota.errors import BadInput, NotFound
from rota.units import format_duration

#: Smaller extensions are not worth a message.
_LEAST_S = 1.0


def on_walltime_asked(world: World, turn: Turn, event: WalltimeAsked) -> None:
    """Change the walltime of a running job. Raises `BadInput` if it does not run, or has run longer already."""
    job = world.jobs.get(event.job)
    if (job is None or job.state in TERMINAL) and extend_hold(world, turn, event):
        return
    if job is None:
        raise NotFound(
            f"job {event.job} has ended or does not exist", hint="list running jobs: rota jobs state=running"
        )
    lease = job.lease
    if job.state is not State.RUNNING or lease is None or lease.started_at is None:
        hint = f"resume it first: rota resume {job.id}" if job.state is State.SUSPENDED else ""
        hint = hint or f"change it with 'rota modify {job.id} --walltime TIME' while it waits"
        raise BadInput(f"job {job.id} is {job.state.label}, not running", hint=hint)
    old = walltime_of(job, lease)
    if old is None and event.relative:
        raise BadInput(f"job {job.id} has no walltime", hint="nothing ends it; give the whole time, like 2h")
    wanted = event.seconds + (old or 0.0 if event.relative else 0.0)
    active_s = turn.wall - lease.started_at - suspended_s(lease, turn.wall)
    if wanted <= active_s:
        raise BadInput(
            f"job {job.id} has run for {format_duration(max(1.0, floor(active_s)))} already",
            hint=f"give more than that, or end it: rota kill {job.id}",
        )
    asked = f"{format_duration(wanted)} in all asked for by {event.by.user}{', by force' if event.force else ''}"
    turn.note(job.id, job.attempt, "walltime", asked)
    _grant(world, turn, job, lease, wanted, force=event.force)
    for id in acted_on(world, "walltime", [job.id]):
        if id != job.id:
            _change_with(world, turn, world.jobs[id], event)
    assert lease.given is not None
    granted = lease.given.walltime_s or wanted
    turn.effects.append(SendReply(event.by, WalltimeSet(job.id, granted, lease.given.more_s, old)))


def _change_with(world: World, turn: Turn, job: Job, event: WalltimeAsked) -> None:
    """Change the walltime of a job that ends together with the one that the event is about, if possible."""
    lease = job.lease
    if job.state is not State.RUNNING or lease is None or lease.started_at is None:
        return
    old = walltime_of(job, lease)
    wanted = event.seconds + (old or 0.0 if event.relative else 0.0)
    if (old is None and event.relative) or wanted <= turn.wall - lease.started_at - suspended_s(lease, turn.wall):
        return
    turn.note(job.id, job.attempt, "walltime", f"changed with that of job {event.job} by {event.by.user}")
    _grant(world, turn, job, lease, wanted, force=event.force)


def _grant(world: World, turn: Turn, job: Job, lease: Lease, wanted: float, *, force: bool) -> None:
    old = walltime_of(job, lease)
    assert lease.started_at is not None
    began = lease.started_at + pause_of(lease).before_s
    if world.placement.planner is not None:
        inform(world, turn.wall)
    # A hold that is planned follows the walltime.
    after_s = job.spec.reserve_for_s or 0.0 if job.spec.reserve == "always" else 0.0
    granted = world.placement.move_end(job.id, began + wanted + after_s, turn.wall, force=force) - began - after_s
    if granted >= wanted - 0.01:
        granted = wanted
    else:
        granted = float(floor(granted))
        if old is not None and granted < min(old, wanted) + _LEAST_S:
            granted = min(old, wanted)
    more_s = max(0.0, wanted - granted)
    if granted == old and lease.given is not None and more_s == lease.given.more_s:
        return
    change_grant(world, turn, job, walltime_s=granted, more_s=more_s, changed=True)
    if granted != old:
        turn.effects.append(ChangeWalltime(lease.runner, ref_of(job, lease), granted))
        rest = f"; {format_duration(more_s)} more when that breaks no promise" if more_s else ""
        turn.note(job.id, job.attempt, "walltime", f"its walltime is {format_duration(granted)} now{rest}")


def lengthen(world: World, turn: Turn, job: Job, more_s: float, *, why: str) -> None:
    """Give a running job, and the gang members that end with it, more walltime, as far as no promise breaks."""
    for id in acted_on(world, "walltime", [job.id]):
        each = world.jobs[id]
        lease = each.lease
        if each.state is not State.RUNNING or lease is None or lease.started_at is None:
            continue
        old = walltime_of(each, lease)
        if old is not None:
            turn.note(id, each.attempt, "walltime", f"{format_duration(more_s)} more {why}")
            pending_s = lease.given.more_s if lease.given is not None else 0.0
            _grant(world, turn, each, lease, old + max(more_s, pending_s), force=False)


def grant_pending(world: World, turn: Turn) -> None:
    """Try again to grant pending extensions."""
    for id in sorted(world.use(Extensions).jobs):
        job = world.jobs[id]
        lease = job.lease
        if job.state is State.RUNNING and lease is not None and lease.given is not None:
            wanted = (lease.given.walltime_s or 0.0) + lease.given.more_s
            _grant(world, turn, job, lease, wanted, force=False)


def _repeat_walltimes(world: World, turn: Turn, runner: Runner, _event: RunnerJoined) -> None:
    """Repeat changed walltimes to a runner that joined: the messages may not have reached it."""
    for id in sorted(runner.leases):
        job = world.jobs[id]
        lease = job.lease
        if lease is not None and lease.given is not None and lease.given.changed:
            walltime_s = lease.given.walltime_s
            if walltime_s is not None:
                turn.effects.append(ChangeWalltime(runner.id, ref_of(job, lease), walltime_s))


def _forget(world: World, _turn: Turn, job: Job) -> None:
    world.use(Extensions).jobs.discard(job.id)


def _index_as_granted(world: World) -> list[str]:
    """The index has exactly the attempts that wait for more walltime."""
    given = {job.id: job.lease.given for job in world.jobs.values() if job.lease is not None}
    there = {id for id, its in given.items() if its is not None and its.more_s}
    wrong = there ^ world.use(Extensions).jobs
    return [f"I3: job {id} is {'not ' if id in there else ''}known to wait for more time" for id in sorted(wrong)]


FEATURE = Feature(
    name="walltimes",
    state=Extensions,
    invariant=_index_as_granted,
    handlers={WalltimeAsked: on_walltime_asked},
    on_timer=grant_pending,
    runner_joined=_repeat_walltimes,
    lease_dropped=_forget,
)
