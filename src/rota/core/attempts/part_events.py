"""Events of parts (`core.attempts.parts`): runners open, close and lose them.

A part ends when its runner reports that nothing of it is left, or when that runner is proven dead.
"""

from __future__ import annotations

from rota.core.attempts.attempt import conclude, revive, void_attempt
from rota.core.attempts.leases import LeaseRef
from rota.core.attempts.part_index import PartIndex
from rota.core.attempts.part_invariants import parts_as_leased
from rota.core.attempts.parts import (
    PREPARATION,
    after_clock_moved,
    ask_for_part,
    drop_part,
    drop_parts,
    forget_part,
    job_of_part,
    jobs_with_part,
    lease_of,
    mark_part_open,
    part_at,
    parts_by_host,
    release_part,
    store_parts,
)
from rota.core.attempts.suspension import host_left
from rota.core.events import RunnerJoined, RunnerReported
from rota.core.feature import Feature
from rota.core.jobs.job import Job
from rota.core.machines.suspected_hosts import suspect
from rota.core.turn import Turn
from rota.core.world import Runner, World

# ------------------------------------------------------------------ reports of runners


def take_part_reports(world: World, turn: Turn, runner: Runner, event: RunnerReported) -> None:
    """Handle a runner's reports about parts that it opened or closed."""
    for report in event.opened:
        job = job_of_part(world, runner, report)
        part = part_at(job, runner.host) if job is not None else None
        if job is None or job.lease is None or part is None or part.runner not in ("", runner.id):
            continue
        if not report.ok:
            suspect(world, turn, runner.host, by="prologue", why=f"job {report.job}: {report.message}")
            part_failed(world, turn, job, runner.host, report.message)
        elif job.lease.ended is None:
            part.runner = runner.id
            mark_part_open(world, turn, job, runner.host)
    for ref in event.shut:
        job = job_of_part(world, runner, ref)
        part = part_at(job, runner.host) if job is not None else None
        if job is not None and part is not None and part.runner == runner.id:
            part_shut(world, turn, job, runner.host)


def unwanted_parts(world: World, runner: Runner, held: list[LeaseRef]) -> list[tuple[int, int, int]]:
    """Select the parts held by a runner that it must close. Records it as the holder, even if another was
    asked."""
    unwanted = []
    for ref in held:
        job = job_of_part(world, runner, ref)
        part = part_at(job, runner.host) if job is not None else None
        if part is not None:
            part.runner = runner.id
        if job is None or job.lease is None or job.lease.ended is not None:
            unwanted.append((ref.job, ref.attempt, ref.token))
    return unwanted


def _agree_on_parts(world: World, turn: Turn, runner: Runner, event: RunnerJoined) -> None:
    """Parts that a joining runner lacks: ask it to open them, or, if the attempt has ended, count them as
    closed."""
    named = {(ref.job, ref.attempt, ref.token) for ref in event.parts}
    for id in sorted(jobs_with_part(world, runner.host)):
        job = world.jobs[id]
        part, lease = part_at(job, runner.host), job.lease
        if part is None or lease is None or part.runner not in ("", runner.id):
            continue
        has = (id, job.attempt, lease.token) in named
        if lease.ended is None:
            if not part.open or not has:
                ask_for_part(world, turn, job, runner.host)
        elif not has:
            part_shut(world, turn, job, runner.host)


def ask_for_unheld(world: World, turn: Turn, runner: Runner) -> None:
    """A runner answers again: ask it to open the parts on its host that have no holder."""
    for id in sorted(jobs_with_part(world, runner.host)):
        part, lease = part_at(world.jobs[id], runner.host), world.jobs[id].lease
        if part is not None and not part.runner and lease is not None and lease.ended is None:
            ask_for_part(world, turn, world.jobs[id], runner.host)


# ------------------------------------------------------------------ the end of a part


def part_shut(world: World, turn: Turn, job: Job, host: str) -> None:
    """Nothing of the job is left on this host."""
    lease = lease_of(job)
    if lease.ended is None:
        release_part(world, turn, job, host)  # unrequested; the next runner there opens it again
        host_left(world, turn, job, host)
        return
    drop_part(world, job, host)
    if lease.parts is None:
        conclude(world, turn, job, lease.ended, host=lease.host)
    else:
        store_parts(world, turn)  # the report is not repeated to another manager, nor the proof of death
        revive(world, turn, job)


def part_gone(world: World, turn: Turn, job: Job, host: str, why: str) -> None:
    """The runner that held a part is gone, with all processes that it had started."""
    part_shut(world, turn, job, host)
    lease = job.lease
    if lease is None or lease.ended is not None:
        return
    if lease.withheld is not None:
        void_attempt(world, turn, job, f"its part on {host} is gone before it began: {why}")
    elif not job.kill and not job.preempted:
        # The command runs on the first host and notices by itself what it lost; the job goes on.
        turn.note(job.id, job.attempt, "part", f"everything of it on {host} has ended: {why}")
        ask_for_part(world, turn, job, host)
    if job.lease is lease:
        revive(world, turn, job)


def part_failed(world: World, turn: Turn, job: Job, host: str, why: str) -> None:
    """A host cannot be made ready for its part, and has nothing of it."""
    lease = lease_of(job)
    part_shut(world, turn, job, host)
    if lease.ended is not None:
        return
    if lease.withheld is not None:
        void_attempt(world, turn, job, f"{host} could not be made ready for it: {why}")
    else:
        forget_part(world, turn, job, host)
        turn.note(job.id, job.attempt, "part", f"it goes on without {host}, which could not be made ready: {why}")


def _void_unheld(world: World, turn: Turn) -> None:
    """Void leases that wait for a part on a host without a runner that answers: the jobs are planned anew."""
    for host, ids in list(world.use(PartIndex).at.items()):
        runner = world.runners.get(world.runner_at.get(host, ""))
        if runner is not None and not runner.silent:
            continue
        for id in sorted(ids):
            job = world.jobs[id]
            # During an earlier preparation, such as a prologue, no runner is asked for parts yet.
            opening = lease_of(job).withheld is not None and lease_of(job).preparing == PREPARATION.name
            if opening and not parts_by_host(job)[host].runner:
                void_attempt(world, turn, job, f"no runner answers on {host}")


FEATURE = Feature(
    name="parts",
    state=PartIndex,
    invariant=parts_as_leased,
    on_timer=_void_unheld,
    clock_moved=after_clock_moved,
    runner_joined=_agree_on_parts,
    preparation=PREPARATION,
    lease_dropped=drop_parts,
)
