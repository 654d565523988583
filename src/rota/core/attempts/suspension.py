"""Suspend and resume jobs, as their runners freeze and thaw them and the plan gives their cores back.

A suspended job gives up its cores, unless it keeps them, and resumes on exactly these. Its phase is stored with
the attempt's grant (`plan.placement.given.Pause`), so it survives a restart. Orders are repeated to every runner
that joins; one that has obeyed already reports so again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from rota.core.answers import Acted
from rota.core.attempts.attempt import leased_job
from rota.core.attempts.grant_indexes import Expiries, Extensions, Suspensions
from rota.core.attempts.lease_refs import ref_of
from rota.core.attempts.leases import LeaseRef, Paused
from rota.core.attempts.noop_jobs import is_noop
from rota.core.attempts.part_index import PartIndex
from rota.core.attempts.parts import job_of_part, store_parts
from rota.core.attempts.reported_times import in_lease
from rota.core.attempts.suspension_phases import (
    FREEZING,
    FROZEN,
    QUEUED,
    THAWING,
    away,
    is_suspended,
    left_s,
    pause_of,
)
from rota.core.effects import SendReply, SuspendAttempts
from rota.core.events import JobsResumed, JobsSuspended, RunnerJoined
from rota.core.feature import Feature
from rota.core.jobs.job import Job, Lease, Reason
from rota.core.rows import GivenRow
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import Runner, World, acted_on, move, write
from rota.plan.placement.given import Given, Pause
from rota.plan.placement.leases import Away

#: Jobs of these types keep their cores: inner jobs use those of a container, and those of a besteffort job are
#: available to all others anyway.
_KEEP: Final = frozenset(("container", "besteffort"))


#: Characters kept of a runner's message.
_LONGEST: Final = 500


# ------------------------------------------------------------------ requests


def on_jobs_suspended(world: World, turn: Turn, event: JobsSuspended) -> None:
    """Suspend running jobs. A job that was told to resume goes back to being suspended."""
    changed: list[int] = []
    unchanged: list[int] = []
    for id in acted_on(world, "suspend", event.jobs):
        job = world.jobs.get(id)
        done = job is not None and suspend_job(world, turn, job, keep=event.keep, user=event.by.user)
        (changed if done else unchanged).append(id)
    turn.effects.append(SendReply(event.by, Acted(changed, unchanged)))


def suspend_job(world: World, turn: Turn, job: Job, *, keep: bool, user: str) -> bool:
    """Suspend a running job; `keep`: its cores stay its own. False: it cannot be."""
    lease = job.lease
    if lease is None or job.kill or job.preempted or lease.broken or lease.ended is not None:
        return False
    if is_noop(world, job.id):
        return False  # it executes nothing
    pause = pause_of(lease)
    if job.state is State.RUNNING and pause.phase == "":
        keeps = keep or not _gives_up_cores(world, job, lease)
        change_grant(world, turn, job, pause=msgspec.structs.replace(pause, phase=FREEZING, keeps=keeps))
    elif job.state is State.SUSPENDED and pause.phase == QUEUED:
        change_grant(world, turn, job, pause=msgspec.structs.replace(pause, phase=FROZEN))
        job.reason = Reason("suspended", f"suspended by {user}")
        write(turn, job)
        world.placement.suspended(job.id, _away(job))
    elif pause.phase == THAWING:
        # It has its cores back and keeps them until it is frozen again.
        change_grant(world, turn, job, pause=msgspec.structs.replace(pause, phase=FREEZING))
    else:
        return False
    turn.note(job.id, job.attempt, "suspend", f"asked for by {user}{', keeping its cores' if keep else ''}")
    if pause_of(lease).phase == FREEZING:
        _send_order(world, turn, job, lease)
    return True


def _away(job: Job) -> Away:
    """The plan's view of a job that has just given up its cores, or waits for them."""
    gone = away(job)
    assert gone is not None
    return gone


def _gives_up_cores(world: World, job: Job, lease: Lease) -> bool:
    """Can a plan give its cores to other jobs?"""
    runner = world.runners[lease.runner]
    takes_cores = bool(job.size.cpus) or job.spec.on_terms
    return runner.made_for is None and takes_cores and not _KEEP & set(job.spec.types)


def on_jobs_resumed(world: World, turn: Turn, event: JobsResumed) -> None:
    """Resume suspended jobs: at once if they kept their cores, else when the plan gives them back."""
    changed: list[int] = []
    unchanged: list[int] = []
    for id in acted_on(world, "resume", event.jobs):
        job = world.jobs.get(id)
        done = job is not None and resume_job(world, turn, job, user=event.by.user)
        (changed if done else unchanged).append(id)
    turn.effects.append(SendReply(event.by, Acted(changed, unchanged)))


def resume_job(world: World, turn: Turn, job: Job, *, user: str) -> bool:
    """Resume a suspended job. False: it is not suspended."""
    lease = job.lease
    if lease is None or job.kill or job.preempted or lease.broken or lease.ended is not None:
        return False
    pause = pause_of(lease)
    if pause.phase == FROZEN and not pause.keeps:
        change_grant(world, turn, job, pause=msgspec.structs.replace(pause, phase=QUEUED))
        world.placement.resumes(job.id, _away(job))
        then = "waits for its cores"
    elif pause.phase in (FROZEN, FREEZING):
        change_grant(world, turn, job, pause=msgspec.structs.replace(pause, phase=THAWING))
        _send_order(world, turn, job, lease)
        then = "goes on"
    else:
        return False
    turn.note(job.id, job.attempt, "resume", f"asked for by {user}")
    if job.state is State.SUSPENDED:
        job.reason = Reason("resuming", f"resumed by {user}; it {then}")
        write(turn, job)
    return True


def resume_now(world: World, turn: Turn, id: int) -> None:
    """The plan has given a resuming job its cores back: thaw it."""
    job = world.jobs.get(id)
    lease = job.lease if job is not None else None
    if job is None or lease is None or job.kill or job.preempted or lease.broken:
        return  # it is being ended, and needs no permission for that
    pause = pause_of(lease)
    if pause.phase == QUEUED:
        change_grant(world, turn, job, pause=msgspec.structs.replace(pause, phase=THAWING))
        _send_order(world, turn, job, lease)


# ------------------------------------------------------------------ reports of runners


def take_suspension_reports(world: World, turn: Turn, runner: Runner, reports: Iterable[Paused]) -> None:
    """Handle a runner's reports of frozen and thawed attempts."""
    for each in reports:
        ref = LeaseRef(each.job, each.attempt, each.token)
        job = leased_job(world, runner, ref) or job_of_part(world, runner, ref)
        if job is None or job.lease is None:
            continue
        if each.message and runner.may_note(job.id):
            turn.note(job.id, job.attempt, "pause", f"{runner.host}: {each.message[:_LONGEST]}")
        lease = job.lease
        if lease.ended is not None:
            continue  # only parts are left, which are being closed
        at = in_lease(lease, each.at, turn.wall)
        frozen = lease.frozen if lease.frozen is not None else set()
        lease.frozen = frozen
        if each.frozen:
            frozen.add(runner.host)
            if set(hosts_of(world, lease)) <= frozen:
                _all_frozen(world, turn, job, lease, at)
        else:
            frozen.discard(runner.host)
            if pause_of(lease).phase == FREEZING and each.message:
                resume_unconfirmed(world, turn, job, lease)
            elif not frozen:
                _all_thawed(world, turn, job, lease, at)


def host_left(world: World, turn: Turn, job: Job, host: str) -> None:
    """Nothing of the job is left on this host: its other hosts decide whether it is frozen."""
    lease = job.lease
    if lease is None or lease.ended is not None or lease.frozen is None:
        return
    lease.frozen.discard(host)
    phase = pause_of(lease).phase
    if phase == FREEZING and set(hosts_of(world, lease)) <= lease.frozen:
        _all_frozen(world, turn, job, lease, turn.wall)
    elif phase == THAWING and not lease.frozen:
        _all_thawed(world, turn, job, lease, turn.wall)


def _all_frozen(world: World, turn: Turn, job: Job, lease: Lease, at: float) -> None:
    pause = pause_of(lease)
    if pause.since is not None:
        if pause.phase != FREEZING:
            return  # reported before
    else:
        pause = msgspec.structs.replace(pause, since=max(at, lease.started_at or at))
    if pause.phase != FREEZING:
        change_grant(world, turn, job, pause=pause)  # it is being resumed
        return
    change_grant(world, turn, job, pause=msgspec.structs.replace(pause, phase=FROZEN))
    if job.kill or job.preempted or lease.broken:
        return  # it is being ended
    if job.state is not State.SUSPENDED and job.state is not State.LOST:
        move(world, job, State.SUSPENDED)
    if job.state is State.SUSPENDED:
        job.reason = Reason("suspended", "suspended; its cores are its own" if pause.keeps else "suspended")
    write(turn, job)
    turn.note(job.id, job.attempt, "suspended", "all its processes stand still")
    if not pause.keeps:
        world.placement.suspended(job.id, _away(job))


def _all_thawed(world: World, turn: Turn, job: Job, lease: Lease, at: float) -> None:
    pause = pause_of(lease)
    if pause.since is None:
        if pause.phase == THAWING:
            change_grant(world, turn, job, pause=msgspec.structs.replace(pause, phase=""))
        return
    was_away = not pause.keeps and pause.phase in (FROZEN, QUEUED)
    before_s = pause.before_s + max(0.0, at - pause.since)
    phase = FREEZING if pause.phase == FREEZING else ""
    if was_away:
        # Only its end can have thawed it, and that is reported soon.
        return
    change_grant(world, turn, job, pause=Pause(phase, keeps=pause.keeps if phase else False, before_s=before_s))
    if job.state is State.SUSPENDED:
        move(world, job, State.RUNNING)
        job.reason = None
        write(turn, job)
        turn.note(job.id, job.attempt, "resumed", f"it goes on after {before_s - pause.before_s:.0f} s")
    world.placement.move_end(job.id, at + left_s(job, lease, at), turn.wall, force=True)


def resume_unconfirmed(world: World, turn: Turn, job: Job, lease: Lease) -> None:
    """Part of the job is not known to stand still, so all of it goes on."""
    change_grant(world, turn, job, pause=msgspec.structs.replace(pause_of(lease), phase=THAWING))
    _send_order(world, turn, job, lease)


def repeat_orders(world: World, turn: Turn, runner: Runner) -> None:
    """Repeat the orders about its attempts to a runner that joined; it reports how they are."""
    suspensions = world.find(Suspensions)
    for id in sorted(suspensions.jobs) if suspensions is not None else ():
        job = world.jobs[id]
        if job.lease is not None and runner.id in _holders(world, job.lease):
            pause = pause_of(job.lease)
            on = pause.phase in (FREEZING, FROZEN, QUEUED)
            turn.effects.append(SuspendAttempts(runner.id, [ref_of(job, job.lease)], on))


# ------------------------------------------------------------------ the lease


def hosts_of(world: World, lease: Lease) -> list[str]:
    """All hosts on which the attempt may have processes."""
    first = [] if lease.ended is not None else [world.runners[lease.runner].host]
    return first + [host for host, part in (lease.parts or {}).items() if part.runner]


def _holders(world: World, lease: Lease) -> Iterator[str]:
    if lease.ended is None:
        yield lease.runner
    for part in (lease.parts or {}).values():
        if part.runner:
            yield part.runner


def _send_order(world: World, turn: Turn, job: Job, lease: Lease) -> None:
    on = pause_of(lease).phase == FREEZING
    for runner in _holders(world, lease):
        turn.effects.append(SuspendAttempts(runner, [ref_of(job, lease)], on))


def change_grant(world: World, turn: Turn, job: Job, **changes: Any) -> None:
    """Change the grant of an attempt, and store that."""
    lease = job.lease
    assert lease is not None
    given = lease.given if lease.given is not None else Given(job.size, walltime_s=job.spec.walltime_s)
    lease.given = msgspec.structs.replace(given, **changes)
    text = msgspec.json.encode(lease.given).decode()
    turn.changes.regiven[job.id, job.attempt] = GivenRow(job.id, job.attempt, text)
    index_attempt(world, job, lease)
    if (parts := world.find(PartIndex)) is not None and (job.id in parts.moved or job.id in parts.closing):
        store_parts(world, turn)


def index_attempt(world: World, job: Job, lease: Lease) -> None:
    """Index attempts to be looked at when a runner joins or time passes."""
    if pause_of(lease).phase:
        world.use(Suspensions).jobs.add(job.id)
    elif (suspensions := world.find(Suspensions)) is not None:
        suspensions.jobs.discard(job.id)
    if lease.given is not None and (lease.given.changed or lease.given.more_s):
        extensions = world.use(Extensions)
        if lease.given.more_s:
            extensions.jobs.add(job.id)
        else:
            extensions.jobs.discard(job.id)
    if (expiries := world.find(Expiries)) is not None:
        expiries.changed.add(job.id)


def restore_suspension(world: World, job: Job, lease: Lease) -> None:
    """After a restart, set the job's state from the phase stored with its grant."""
    index_attempt(world, job, lease)
    if job.state in (State.RUNNING, State.SUSPENDED):
        suspended = is_suspended(lease)
        if suspended and job.state is State.RUNNING:
            job.state = State.SUSPENDED
            job.reason = Reason("suspended", "suspended")
        elif not suspended and job.state is State.SUSPENDED:
            job.state, job.reason = State.RUNNING, None


def runners_of(world: World, job: Job) -> list[tuple[str, LeaseRef]]:
    """(runner, lease) of every runner that has processes of the attempt."""
    lease = job.lease
    if lease is None:
        return []
    return [(runner, LeaseRef(*ref_of(job, lease))) for runner in _holders(world, lease)]


# ------------------------------------------------------------------ registration


def is_suspending(world: World, job: int) -> bool:
    """Is the job suspended, being suspended or being resumed?"""
    found = world.find(Suspensions)
    return found is not None and job in found.jobs


def _index_as_granted(world: World) -> list[str]:
    """The index has exactly the attempts whose grant says that they are not simply running."""
    there = {job.id for job in world.jobs.values() if job.lease is not None and pause_of(job.lease).phase}
    wrong = there ^ world.use(Suspensions).jobs
    return [f"I3: job {id} is {'not ' if id in there else ''}known to be suspended" for id in sorted(wrong)]


def _needs_plan(world: World) -> bool:
    return bool(world.use(Suspensions).jobs)  # a resumed job returns to its own cores


def _on_runner_joined(world: World, turn: Turn, runner: Runner, _event: RunnerJoined) -> None:
    repeat_orders(world, turn, runner)


def _shift(world: World, turn: Turn, by: float) -> None:
    for id in sorted(world.use(Suspensions).jobs):
        job = world.jobs[id]
        if job.lease is not None and (since := pause_of(job.lease).since) is not None:
            change_grant(world, turn, job, pause=msgspec.structs.replace(pause_of(job.lease), since=since + by))


def _forget(world: World, _turn: Turn, job: Job) -> None:
    world.use(Suspensions).jobs.discard(job.id)


FEATURE = Feature(
    name="suspension",
    state=Suspensions,
    invariant=_index_as_granted,
    handlers={JobsSuspended: on_jobs_suspended, JobsResumed: on_jobs_resumed},
    clock_moved=_shift,
    needs_plan=_needs_plan,
    runner_joined=_on_runner_joined,
    lease_dropped=_forget,
)
