"""Makes, offers and ends the jobs of a session, and keeps their units between attempts.

They are ordinary jobs; what is added here is their place in the order, and when they are offered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rota.core.attempts.grant_indexes import Suspensions
from rota.core.attempts.leases import JobProgress
from rota.core.attempts.suspension import resume_job, suspend_job
from rota.core.effects import RecallLeases
from rota.core.events import JobsProgressed
from rota.core.jobs.actions import cancel, kill_jobs
from rota.core.jobs.allowed_actions import can_kill
from rota.core.jobs.job import AttemptEnd, Job, Reason
from rota.core.jobs.outcome import Outcome
from rota.core.learning.estimate import estimate
from rota.core.pipelines.conditions import take_asks
from rota.core.pipelines.flow import Ask
from rota.core.pipelines.progress import OUTCOMES, ROW, Status
from rota.core.pipelines.session import Session, Sessions, StageJob, mark_dirty, session_of
from rota.core.pipelines.session_records import SessionNews
from rota.core.states import State
from rota.core.submit.staging import row_of
from rota.core.turn import Turn
from rota.core.world import OPEN, World, dequeue, enqueue, touch
from rota.plan.placement.queue import Offer, RankKey

#: Jobs of one session that look at conditions at the same time.
_MOST_LOOKING: Final = 8
#: Exit codes that say more than failed.
TEMPORARY: Final = 75
SKIP: Final = 77


def make_job(world: World, turn: Turn, session: Session, cell: int) -> StageJob:
    """Make the job of an element at a stage, and offer it."""
    element, stage = session.place_of(cell)
    work = session.record.works[stage]
    failed = element < session.whole and session.flow.failed(element, stage)
    spec_id = work.after_failure if failed else work.spec
    spec = world.use(Sessions).specs[spec_id]
    command, key = session.begin(element, stage)
    job = StageJob(
        world.new_job_id(), key, spec, spec_id, command, State.READY, session.submission, session.record.started_at
    )
    job.cell, job.rank = cell, session.rank_key(element, stage, spec.priority)
    job.pipeline_element = session.element_name(element)
    session.live[job.id] = cell
    session.progress.set_job(cell, job.id)
    _enter(world, turn, session, job)
    for use in spec.limits:
        if use.exclusive:
            world.placement.shut(use.name, job.id)
    return job


def rank_of_cell(world: World, session: Session, cell: int) -> RankKey:
    """The place in the order of the job of an element at a stage, which is to be made."""
    element, stage = session.place_of(cell)
    spec = world.use(Sessions).specs[session.record.works[stage].spec]
    return session.rank_key(element, stage, spec.priority)


def look_at_conditions(world: World, turn: Turn, session: Session) -> None:
    """Have conditions looked at, many by one job."""
    spec_id = session.record.conditions
    while session.asks and len(session.looking) < _MOST_LOOKING and not session.still:
        asks, command = take_asks(session)
        spec = world.use(Sessions).specs[spec_id]
        id = world.new_job_id()
        job = StageJob(
            id, f"{session.submission}-{id}", spec, spec_id, command, State.READY, session.submission,
            session.record.started_at,
        )  # fmt: skip
        job.rank = RankKey(-spec.priority, session.number, -1)  # everything waits for it
        session.looking[id] = asks
        _enter(world, turn, session, job)


def _enter(world: World, turn: Turn, session: Session, job: StageJob) -> None:
    job.session = session.number
    world.jobs[job.id] = job
    world.keys[job.key] = job.id
    world.outcomes[job.id] = OPEN
    world.counts[job.spec.group][State.READY] += 1
    job.ready_at = turn.wall
    turn.changes.jobs.append(row_of(job, pipeline_element=job.pipeline_element))
    touch(world, (job,))
    enqueue(world, turn, job)


# ------------------------------------------------------------------ in the queue


def queued(world: World, _turn: Turn | None, jobs: list[Job]) -> bool:
    """Offer jobs of sessions one by one, each with its own rank; those of one that stands still are withheld."""
    if not isinstance(jobs[0], StageJob):
        return False
    for job in jobs:
        session = session_of(world, job)
        if session is not None and session.still:
            session.withheld.add(job.id)
            continue
        if session is not None and isinstance(job, StageJob) and job.doubted:
            _doubt(world, session, job)
            continue
        estimate(world, job)
        world.placement.offer(Offer(job.spec, job.need, job.rank_key, [job.id]))
    return True


def unqueued(world: World, job: Job) -> bool:
    """A job that was withheld need not be withdrawn."""
    session = session_of(world, job)
    if session is None or not isinstance(job, StageJob):
        return False
    if session.doubts.get(job.cell) == job.id:
        del session.doubts[job.cell]
        return True
    if job.id not in session.withheld:
        return False
    session.withheld.discard(job.id)
    return True


def _doubt(world: World, session: Session, job: StageJob) -> None:
    """Nobody knows how far the lost attempt of a job came: look at its condition before the next one."""
    element, stage = session.place_of(job.cell)
    session.doubts[job.cell] = job.id
    session.asks.append(Ask(element, stage, (stage,)))
    mark_dirty(world, session)


def settle_doubt(world: World, turn: Turn, session: Session, cell: int, *, done: bool) -> None:
    """The condition of a job whose attempt was lost was looked at."""
    job = world.jobs[session.doubts[cell]]
    assert isinstance(job, StageJob)
    job.doubted = False
    if not done:
        del session.doubts[cell]
        enqueue(world, turn, job)
        return
    element, stage = session.place_of(cell)
    session.flow.ended(element, stage, Status.SKIPPED)
    tell(session, turn.wall, "skipped", cell, job=job, outcome=OUTCOMES[Status.SKIPPED])
    cancel(world, turn, job, Reason("kill_requested", "its condition says that its work is done"))


def stand_still(world: World, turn: Turn, session: Session, *, user: str) -> None:
    """Start nothing more, and suspend what runs; it keeps all that it has."""
    recalled: dict[str, list[tuple[int, int, int]]] = {}
    for id in sorted({*session.live, *session.looking}):
        job = world.jobs[id]
        lease = job.lease
        if job.state is State.READY and id not in session.withheld:
            dequeue(world, job)
            session.withheld.add(id)
        elif lease is not None and lease.started_at is None:
            recalled.setdefault(lease.runner, []).append((id, job.attempt, lease.token))
        elif id in session.live:
            suspend_job(world, turn, job, keep=True, user=user)
    turn.effects.extend(RecallLeases(runner, leases) for runner, leases in recalled.items())


def go_on(world: World, turn: Turn, session: Session, *, user: str) -> None:
    """Resume what was suspended, and offer what was withheld."""
    for id in sorted(session.live):
        if _is_suspended(world, id):
            resume_job(world, turn, world.jobs[id], user=user)
    withheld, session.withheld = sorted(session.withheld), set()
    for id in withheld:
        enqueue(world, turn, world.jobs[id])


def _is_suspended(world: World, job: int) -> bool:
    found = world.find(Suspensions)
    return found is not None and job in found.jobs


def end_jobs(world: World, turn: Turn, jobs: Iterable[int], *, why: str) -> None:
    """End these jobs, whether they have begun or not."""
    running = []
    for id in jobs:
        job = world.jobs.get(id)
        if not can_kill(job):
            continue
        if job.lease is None:
            cancel(world, turn, job, Reason("kill_requested", why))
        else:
            running.append(id)
    kill_jobs(world, turn, running, why=why)


# ------------------------------------------------------------------ attempts


def retried(_world: World, job: Job, code: str, outcome: Outcome) -> bool | None:
    """Only temporary errors are retried, and attempts that were lost."""
    if not isinstance(job, StageJob):
        return None
    return code == "lost" or job.cell < 0 or (code == "exit" and outcome.exit_code == TEMPORARY)


def attempt_started(world: World, turn: Turn, job: Job) -> None:
    session = session_of(world, job)
    if session is None or not isinstance(job, StageJob) or job.cell < 0:
        return
    _began(session, job, turn.wall)
    if session.still:
        suspend_job(world, turn, job, keep=True, user=session.record.user)
    mark_dirty(world, session)


def _began(session: Session, job: StageJob, at: float) -> None:
    element, stage = session.place_of(job.cell)
    if session.progress.status(element, stage) in (Status.READY, Status.RUNNING) and job.told < job.attempt:
        session.progress.set(element, stage, Status.RUNNING)
        job.told = job.attempt
        tell(session, at, "started", job.cell, job=job)


def on_jobs_progressed(world: World, turn: Turn, event: JobsProgressed) -> None:
    """Jobs have said how far they have come: tell the watchers."""
    for told in event.told:
        job = world.jobs.get(told.job)
        lease = None if job is None or job.attempt != told.attempt else job.lease
        session = None if job is None else session_of(world, job)
        if lease is None or (lease.runner, lease.token) != (event.runner, told.token) or lease.ended is not None:
            continue
        if session is None or not isinstance(job, StageJob) or job.cell < 0:
            continue
        job.progress = told
        tell(session, turn.wall, "progress", job.cell, job=job, progress=told)
        mark_dirty(world, session)


def attempt_over(world: World, turn: Turn, job: Job, ended: AttemptEnd, _host: str) -> None:
    if not isinstance(job, StageJob):
        return
    session = session_of(world, job)
    outcome = ended.outcome
    job.keeps = bool(job.kept) or (outcome is not None and ended.state is State.DELAYED and not job.kill)
    job.exit_code = outcome.exit_code if outcome is not None else None
    lost = ended.state is State.DELAYED and ended.reason is not None and ended.reason.code == "lost"
    job.doubted = lost and _has_condition(session, job)
    if session is None or outcome is None:
        return
    if job.cell >= 0:
        element, _stage = session.place_of(job.cell)
        if outcome.started_at is not None:
            _began(session, job, outcome.started_at)  # it may have begun and ended in one report
        if element < session.whole and outcome.started_at is not None:
            session.durations[element] += outcome.ended_at - outcome.started_at
            session.progress.dirty.add(element // ROW)
        if ended.state is State.DELAYED and not job.kill:
            tell(session, turn.wall, "retried", job.cell, job=job, outcome="failed")
    mark_dirty(world, session)


def _has_condition(session: Session | None, job: StageJob) -> bool:
    if session is None or job.cell < 0:
        return False
    element, stage = session.place_of(job.cell)
    return element < session.whole and session.route.conditional[stage]


def lease_dropped(world: World, _turn: Turn, job: Job) -> None:
    """Its units are free: take those again that it keeps until its next attempt."""
    if isinstance(job, StageJob) and job.keeps:
        _keep(world, job)


def _keep(world: World, job: StageJob) -> None:
    needs = world.placement.hold(job.id, job.spec.limits)
    job.kept = tuple(use for use in job.spec.limits if use not in needs)


def keep_after_restart(world: World, session: Session, job: StageJob, *, leased: bool) -> None:
    """A job between two attempts had kept its units. Its last one may have been lost."""
    job.doubted = bool(job.tries) and not leased and _has_condition(session, job)
    for use in job.spec.limits:
        if use.exclusive:
            world.placement.shut(use.name, job.id)
    if job.tries and not leased:
        _keep(world, job)


def job_ended(world: World, turn: Turn, job: Job) -> None:
    """Give back all that the job kept, and let its element move on before jobs are placed."""
    session = session_of(world, job)
    if not isinstance(job, StageJob):
        return
    if job.kept:
        job.kept = ()
        world.placement.let_go(job.id)
    for use in job.spec.limits:
        if use.exclusive:
            world.placement.reopen(use.name, job.id)
    if session is None:
        return
    session.withheld.discard(job.id)
    cell = session.live.pop(job.id, None)
    mark_dirty(world, session)
    if cell is None:
        return
    session.ended.append((cell, job, turn.wall))


def status_of(job: StageJob) -> Status:
    """What the end of a job means for its element."""
    if job.state is State.COMPLETE:
        return Status.SKIPPED if job.exit_code == SKIP else Status.OK
    if job.state is State.CANCELLED:
        return Status.TERMINATED
    temporary = job.exit_code == TEMPORARY or (job.reason is not None and job.reason.code == "lost")
    return Status.FAILED if temporary else Status.FAILED_PERMANENTLY


def tell(
    session: Session, at: float, event: str, cell: int, *, job: Job | None = None, outcome: str | None = None,
    by: str | None = None, progress: JobProgress | None = None, lacks: str | None = None,
) -> None:  # fmt: skip
    """Something happened to an element at a stage."""
    element, stage = session.place_of(cell)
    session.news.append(
        SessionNews(
            event,
            at,
            session.element_name(element),
            session.stage_name(stage),
            None if job is None else job.id,
            None if job is None or not job.attempt else job.attempt,
            outcome,
            by,
            progress,
            lacks,
        )
    )
