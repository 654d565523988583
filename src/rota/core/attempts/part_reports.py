"""What runners say of parts (`core.attempts.parts`): those they have when they join, and what became of others."""

from __future__ import annotations

from rota.core.attempts.leases import LeaseRef
from rota.core.attempts.part_ends import part_failed, part_shut
from rota.core.attempts.parts import ask, opened, part_at, part_named
from rota.core.events import RunnerReported
from rota.core.machines.suspected_hosts import suspect
from rota.core.turn import Turn
from rota.core.world import Runner, World


def take_part_reports(world: World, turn: Turn, runner: Runner, event: RunnerReported) -> None:
    """What became of parts that a runner was told to open or to close."""
    for report in event.opened:
        job = part_named(world, runner, report)
        part = part_at(job, runner.host) if job is not None else None
        if job is None or job.lease is None or part is None or part.runner not in ("", runner.id):
            continue
        if not report.ok:
            suspect(world, turn, runner.host, by="prologue", why=f"job {report.job}: {report.message}")
            part_failed(world, turn, job, runner.host, report.message)
        elif job.lease.ended is None:
            part.runner = runner.id
            opened(turn, job, runner.host)
    for ref in event.shut:
        job = part_named(world, runner, ref)
        part = part_at(job, runner.host) if job is not None else None
        if job is not None and part is not None and part.runner == runner.id:
            part_shut(world, turn, job, runner.host)


def unwanted_parts(world: World, runner: Runner, held: list[LeaseRef]) -> list[tuple[int, int, int]]:
    """Of the parts that a runner has, those that it must close. It has them, whoever was asked for them."""
    unwanted = []
    for ref in held:
        job = part_named(world, runner, ref)
        part = part_at(job, runner.host) if job is not None else None
        if part is not None:
            part.runner = runner.id
        if job is None or job.lease is None or job.lease.ended is not None:
            unwanted.append((ref.job, ref.attempt, ref.token))
    return unwanted


def agree_on_parts(world: World, turn: Turn, runner: Runner, held: list[LeaseRef]) -> None:
    """A part that a living runner does not have is closed, or is yet to be opened."""
    named = {(ref.job, ref.attempt, ref.token) for ref in held}
    for id in sorted(world.parts_at.get(runner.host, ())):
        job = world.jobs[id]
        part, lease = part_at(job, runner.host), job.lease
        if part is None or lease is None or part.runner not in ("", runner.id):
            continue
        has = (id, job.attempt, lease.token) in named
        if lease.ended is None:
            if not part.open or not has:
                ask(world, turn, job, runner.host)
        elif not has:
            part_shut(world, turn, job, runner.host)


def ask_for_unheld(world: World, turn: Turn, runner: Runner) -> None:
    """A runner answers again: parts on its host that nobody has are for it to open."""
    for id in sorted(world.parts_at.get(runner.host, ())):
        part, lease = part_at(world.jobs[id], runner.host), world.jobs[id].lease
        if part is not None and not part.runner and lease is not None and lease.ended is None:
            ask(world, turn, world.jobs[id], runner.host)
