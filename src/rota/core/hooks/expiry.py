"""The expiry hook: before a job reaches its walltime, a script of the site may give it more time.

It runs once for each walltime of an attempt, and once for gang members that are about to end together.
The extension is granted like one that a user asks for. `manager.host` runs the script.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from rota.core.attempts.grant_indexes import Expiries
from rota.core.attempts.noop_jobs import is_noop
from rota.core.attempts.suspension_phases import pause_of, walltime_of
from rota.core.attempts.walltimes import lengthen
from rota.core.effects import Effect
from rota.core.events import Event
from rota.core.feature import Feature
from rota.core.hooks.server_scripts import about_job
from rota.core.jobs.job import Job
from rota.core.states import LEASED, State
from rota.core.turn import Turn
from rota.core.world import World, acted_on

#: Seconds until another look at a silent job, which cannot be given time.
_LOST_S: Final = 10.0
#: A shorter extension is ignored.
_LEAST_S: Final = 1.0


class AskExpiryHook(Effect, frozen=True):
    """Ask the site's script whether a job gets more time."""

    job: int
    attempt: int
    token: int
    about: dict[str, str]  #: environment variables of the script


class ExpiryHookAnswered(Event, frozen=True):
    """The script has answered."""

    job: int
    attempt: int
    token: int
    more_s: float = 0.0
    wrong: str = ""  #: what failed; empty: nothing


def ask_before_expiry(world: World, notice_s: float) -> None:
    """Use the site's script from now on, also for running jobs."""
    expiries = world.use(Expiries)
    expiries.notice_s = notice_s
    expiries.changed.update(id for runner in world.runners.values() for id in runner.leases)


# ------------------------------------------------------------------ when


def _end_of(world: World, job: Job) -> float | None:
    """When the walltime of a job is over; None: that is not known, or the job is ending already."""
    lease = job.lease
    if lease is None or lease.started_at is None or lease.ended is not None or lease.broken:
        return None
    if job.kill or job.preempted or job.state not in (State.RUNNING, State.LOST) or is_noop(world, job.id):
        return None
    walltime_s = walltime_of(job, lease)
    return None if walltime_s is None else lease.started_at + pause_of(lease).before_s + walltime_s


def _ask_at(world: World, job: Job) -> float | None:
    """When the script is asked about a job; None: never, as far as is known now."""
    end, lease = _end_of(world, job), job.lease
    if end is None or lease is None:
        return None
    expiries, walltime_s = world.use(Expiries), walltime_of(job, lease) or 0.0
    if job.id in expiries.asking or expiries.asked.get(job.id) == (job.attempt, walltime_s):
        return None
    return end - min(expiries.notice_s, walltime_s / 2)


def _follow_changes(world: World, _turn: Turn) -> None:
    expiries = world.use(Expiries)
    for id in sorted(expiries.changed):
        job = world.jobs.get(id)
        if job is not None and (at := _ask_at(world, job)) is not None:
            heappush(expiries.due, (at, id, job.attempt))
    expiries.changed.clear()


def _next_due(world: World) -> float | None:
    due = world.use(Expiries).due
    return due[0][0] if due else None


def _ask_due(world: World, turn: Turn) -> None:
    expiries = world.use(Expiries)
    while expiries.due and expiries.due[0][0] <= turn.wall:
        _, id, attempt = heappop(expiries.due)
        job = world.jobs.get(id)
        at = _ask_at(world, job) if job is not None and job.attempt == attempt else None
        if job is None or at is None or at > turn.wall:
            continue  # it has ended, or its end has moved, which is another entry
        if job.state is State.LOST:
            heappush(expiries.due, (turn.wall + _LOST_S, id, attempt))
        else:
            _ask(world, turn, job)


def _ask(world: World, turn: Turn, job: Job) -> None:
    """Ask about this job and the gang members that are about to end with it."""
    expiries, lease = world.use(Expiries), job.lease
    end = _end_of(world, job)
    assert lease is not None
    assert end is not None
    for id in acted_on(world, "walltime", [job.id]):
        other = world.jobs[id]
        its_end = _end_of(world, other)
        if its_end is not None and other.lease is not None and its_end <= end + expiries.notice_s:
            expiries.asked[id] = (other.attempt, walltime_of(other, other.lease) or 0.0)
    expiries.asking.add(job.id)
    spec, walltime_s = job.spec, walltime_of(job, lease)
    about = about_job(job, lease, world.runners[lease.runner].host) | {
        "ROTA_GANG": spec.gang,
        "ROTA_WALLTIME_S": f"{walltime_s:.0f}",
        "ROTA_ASKED_WALLTIME_S": f"{spec.walltime_s or walltime_s:.0f}",
        "ROTA_LEFT_S": f"{max(0.0, end - turn.wall):.0f}",
    }
    turn.effects.append(AskExpiryHook(job.id, job.attempt, lease.token, about))


# ------------------------------------------------------------------ the answer


def on_expiry_hook_answered(world: World, turn: Turn, event: ExpiryHookAnswered) -> None:
    """Give the job, and those that end with it, more time. Ignored if that attempt is over."""
    expiries = world.use(Expiries)
    job = world.jobs.get(event.job)
    lease = job.lease if job is not None else None
    if job is None or lease is None or (job.attempt, lease.token) != (event.attempt, event.token):
        return
    expiries.asking.discard(job.id)
    together = acted_on(world, "walltime", [job.id])
    expiries.changed.update(together)
    if event.wrong:
        turn.note(job.id, job.attempt, "expiry_hook", event.wrong)
    elif job.state is State.SUSPENDED:
        for id in together:
            expiries.asked.pop(id, None)  # asked again when it goes on
    elif event.more_s < _LEAST_S:
        turn.note(job.id, job.attempt, "expiry_hook", "gives it no more time")
    elif _end_of(world, job) is not None:
        lengthen(world, turn, job, event.more_s, why="from the site's expiry hook")


# ------------------------------------------------------------------ the life of jobs


def _changed(world: World, _turn: Turn, job: Job) -> None:
    world.use(Expiries).changed.add(job.id)


def _forget(world: World, _turn: Turn, job: Job) -> None:
    expiries = world.use(Expiries)
    expiries.asked.pop(job.id, None)
    expiries.asking.discard(job.id)


def _follow_clock(world: World, _turn: Turn, by: float) -> None:
    """The wall clock was set, and all starts were moved with it."""
    expiries = world.use(Expiries)
    expiries.due = [(at + by, id, attempt) for at, id, attempt in expiries.due]
    heapify(expiries.due)


def _only_leased(world: World) -> list[str]:
    """Invariant: the hook knows only jobs that hold a lease."""
    expiries = world.use(Expiries)
    known = expiries.asking | expiries.asked.keys()
    gone = [id for id in known if id not in world.jobs or world.jobs[id].state not in LEASED]
    return [f"I3: the expiry hook was asked about job {id}, which holds no lease" for id in sorted(gone)]


FEATURE = Feature(
    name="expiry hook",
    state=Expiries,
    handlers={ExpiryHookAnswered: on_expiry_hook_answered},
    invariant=_only_leased,
    on_timer=_ask_due,
    step_over=_follow_changes,
    next_due=_next_due,
    clock_moved=_follow_clock,
    attempt_started=_changed,
    lease_dropped=_forget,
)
