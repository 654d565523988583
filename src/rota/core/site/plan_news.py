"""Carry out the planner's decisions other than starts."""

from __future__ import annotations

from collections.abc import Iterator

from rota.core.attempts.attempt import void_attempt
from rota.core.attempts.noop_jobs import end_noop, is_noop
from rota.core.attempts.signals import signal_before_end
from rota.core.attempts.suspension import resume_now
from rota.core.effects import KillAttempts
from rota.core.jobs.dependencies import end_job
from rota.core.jobs.job import Reason
from rota.core.site.policy import remember_spent
from rota.core.site.promised_starts import note_moves
from rota.core.site.reservations import remember_reservations
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import World, acted_on, dequeue, move, touch, write
from rota.plan.placement.decisions import Preempted
from rota.units import about_duration

#: A long queue moves as a whole with every event: watchers are told only if at most this many jobs moved.
_FEW_MOVED = 20


def act_on_plan(world: World, turn: Turn) -> bool:
    """Carry out preemptions, rejected reservations, expired jobs, resumed jobs and moved promises.

    Returns True if other jobs may start because of them.
    """
    news = world.placement.take_news()
    kills: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    freed = bool(news.ended)
    for id, by, code, at in _preempted(world, news.preempted):
        job = world.jobs.get(id)
        if job is None or job.lease is None or job.preempted or job.kill or job.lease.ended is not None:
            continue
        if job.lease.withheld is not None:
            void_attempt(world, turn, job, f"job {by} begins on its resources; it had not begun")
            continue
        job.preempted = by
        ended = f"its container {by} has ended" if code == "container" else f"being ended for job {by}"
        job.reason = Reason(code, ended)
        if job.state not in (State.LOST, State.FINISHING):
            move(world, job, State.FINISHING)
        write(turn, job)
        turn.note(id, job.attempt, code, ended if code == "container" else _preemption_text(by, at, turn.wall))
        if is_noop(world, id):
            end_noop(world, turn, job, reason="kill_requested", message=ended)
            freed = True
            continue
        lease = (id, job.attempt, job.lease.token)
        kills.setdefault((job.lease.runner, signal_before_end(job)), []).append(lease)
    turn.effects.extend(KillAttempts(runner, leases, first) for (runner, first), leases in kills.items())
    for id, code, message in news.ended:
        job = world.jobs.get(id)
        if job is not None and job.state is State.READY:
            dequeue(world, job)
            end_job(world, turn, job, State.FAILED, reason=Reason(code, message), outcome=None)
    for id in acted_on(world, "resumed", news.resumed) if news.resumed else ():
        resume_now(world, turn, id)
    if news.reserved:
        remember_reservations(world, turn, news.reserved)
    if news.spent:
        remember_spent(world, turn, news.spent)
    if news.moved:
        note_moves(world, turn, news.moved)
        if len(news.moved) <= _FEW_MOVED:
            touch(world, (job for each in news.moved if (job := world.jobs.get(each.job)) is not None))
    return freed and not (world.paused or world.draining or world.stopping)


def _preempted(world: World, found: list[Preempted]) -> Iterator[Preempted]:
    """All jobs that must end: with these all that can only be ended together."""
    for each in found:
        for id in acted_on(world, "preempt", [each.job]):
            yield each._replace(job=id)


def _preemption_text(by: int, at: float | None, wall: float) -> str:
    """Explain to a besteffort job why it is ended."""
    if at is None or at <= wall:
        return f"job {by} begins on its resources"
    return f"reservation {by} begins on its resources in {about_duration(at - wall)}"
