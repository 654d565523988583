"""The registration of pipelines as a feature: where sessions take part in the life of jobs and leases."""

from __future__ import annotations

from rota.core.events import JobsProgressed
from rota.core.feature import Feature
from rota.core.jobs.fate import Fate
from rota.core.jobs.job import AttemptEnd, Job
from rota.core.jobs.outcome import Outcome
from rota.core.pipelines.progress import Status
from rota.core.pipelines.session import Session, Sessions, StageJob, mark_dirty, session_of
from rota.core.pipelines.session_records import (
    ConditionsAnswered,
    ReadConditions,
    SessionActed,
    SessionAttended,
    SessionStarted,
    SliceCommitted,
)
from rota.core.pipelines.session_requests import (
    begin_waiting,
    on_conditions_answered,
    on_session_acted,
    on_session_attended,
    on_session_started,
    retry_jobs,
)
from rota.core.pipelines.session_rows import numbers_of, read_sessions
from rota.core.pipelines.settling import next_look, on_slice_committed, settle_sessions, take_answers
from rota.core.pipelines.stage_jobs import (
    SKIP,
    attempt_over,
    attempt_started,
    end_jobs,
    job_ended,
    keep_after_restart,
    lease_dropped,
    on_jobs_progressed,
    queued,
    retried,
    unqueued,
)
from rota.core.restart import Restart
from rota.core.states import TERMINAL, State
from rota.core.turn import Turn
from rota.core.world import World
from rota.plan.placement.queue import RankKey


def _judged(_world: World, job: Job, outcome: Outcome) -> Fate | None:
    """A stage that says that it has nothing to do has not failed."""
    if isinstance(job, StageJob) and job.cell >= 0 and outcome.exit_code == SKIP:
        return Fate.COMPLETE
    return None


def _attempt_over(world: World, turn: Turn, job: Job, ended: AttemptEnd, host: str) -> None:
    attempt_over(world, turn, job, ended, host)
    session = session_of(world, job)
    if session is not None and job.id in session.looking and ended.state is State.COMPLETE and ended.outcome:
        turn.effects.append(ReadConditions(session.number, job.id, ended.outcome))


def _job_ended(world: World, turn: Turn, job: Job) -> None:
    job_ended(world, turn, job)
    session = session_of(world, job)
    if session is not None and job.state is not State.COMPLETE:
        asks = session.looking.pop(job.id, None)
        if asks is not None:
            take_answers(world, turn, session, asks, None)


def _before_placing(world: World, turn: Turn) -> None:
    sessions = world.use(Sessions)
    for session in sessions.all.values():
        if session.orphans:
            orphans, session.orphans = session.orphans, []
            end_jobs(world, turn, orphans, why="its conditions are looked at again")
    begin_waiting(world, turn)
    while sessions.dirty:
        settle_sessions(world, turn)
        begin_waiting(world, turn)


def _on_timer(world: World, turn: Turn) -> None:
    for session in world.use(Sessions).going():
        at = next_look(session)
        if at is not None and at <= turn.wall:
            mark_dirty(world, session)


def _next_due(world: World) -> float | None:
    moments = [at for session in world.use(Sessions).going() if (at := next_look(session)) is not None]
    return min(moments, default=None)


def _clock_moved(world: World, _turn: Turn, by: float) -> None:
    for session in world.use(Sessions).all.values():
        record = session.record
        if not session.over:
            record.started_at += by
            record.paused_at = None if record.paused_at is None else record.paused_at + by
            session.looked_at = {stage: at + by for stage, at in session.looked_at.items()}
            session.changed = True


# ------------------------------------------------------------------ restart


def _restore(world: World, restart: Restart) -> None:
    found = read_sessions(restart.snapshot.meta)
    if not found:
        return
    sessions = world.use(Sessions)
    leased = {row.job for row in restart.snapshot.open_attempts}
    by_submission: dict[str, Session] = {}
    for session in found:
        sessions.all[session.number] = session
        by_submission[session.submission] = session
        for number in numbers_of(session.record):
            sessions.specs[number] = restart.snapshot.specs[number]
        world.next_job = max(world.next_job, session.number + 1)
        mark_dirty(world, session)
    for id, job in list(world.jobs.items()):
        if (of := by_submission.get(job.submission)) is not None:
            _adopt(world, of, id, job, leased=id in leased)
    for session in found:
        _ask_again(session)


def _adopt(world: World, session: Session, id: int, job: Job, *, leased: bool) -> None:
    """A job of a session that has not ended."""
    values = {name: getattr(job, name) for name in Job.__struct_fields__}
    own = world.jobs[id] = StageJob(**values)
    own.session = session.number
    own.rank = RankKey(-job.spec.priority, session.number, -1)
    if job.spec_id == session.record.conditions:
        session.orphans.append(id)
        return
    cell = session.under_way.get(id)
    if cell is None:
        session.orphans.append(id)
        return
    own.cell = cell
    element, stage = session.place_of(own.cell)
    own.pipeline_element = session.element_name(element)
    if session.progress.status(element, stage) is Status.RUNNING:
        own.told = own.attempt
    own.rank = session.rank_key(element, stage, job.spec.priority)
    session.live[id] = cell
    keep_after_restart(world, session, own, leased=leased)


def _ask_again(session: Session) -> None:
    """What was looked at for the session as a whole is looked at again."""
    progress = session.progress
    for stage in session.route.per_session:
        if progress.status(session.whole, stage) is Status.CHECKING:
            progress.set(session.whole, stage, Status.AHEAD)
            session.due.add(stage)


# ------------------------------------------------------------------ invariants


def _sums_add_up(world: World) -> list[str]:
    """At each stage all elements are counted once; what is under way has a job, and only that."""
    wrong = []
    for session in world.use(Sessions).all.values():
        progress, name = session.progress, f"session {session.number}"
        for stage in progress.miscounted():
            wrong.append(f"{name}: the sums of stage '{session.stage_name(stage)}' are not those of its elements")
        for stage, counted in enumerate(session.route.counted):
            sums = progress.sums(stage)
            if counted and sum(sums.values()) != session.whole:
                wrong.append(f"{name}: stage '{session.stage_name(stage)}' counts {sum(sums.values())} elements")
        if session.over and (session.live or session.flow.left):
            wrong.append(f"{name} is over and has something left to do")
        for id, cell in session.live.items():
            job = world.jobs.get(id)
            if job is None or job.state in TERMINAL:
                wrong.append(f"{name}: job {id} has ended and is under way")
            elif progress.jobs[cell] != id:
                wrong.append(f"{name}: job {id} is not that of its cell")
        busy = {cell for cell, status in enumerate(progress.statuses) if status in (Status.READY, Status.RUNNING)}
        ended = {cell for cell, _job, _at in session.ended}
        for cell in busy - {*session.live.values()} - ended:
            if cell in session.unmade:
                continue
            wrong.append(f"{name}: cell {session.place_of(cell)} is under way and has no job")
    return wrong


FEATURE = Feature(
    name="pipelines",
    state=Sessions,
    handlers={
        SessionStarted: on_session_started,
        SessionActed: on_session_acted,
        SessionAttended: on_session_attended,
        ConditionsAnswered: on_conditions_answered,
        SliceCommitted: on_slice_committed,
        JobsProgressed: on_jobs_progressed,
    },
    restore=_restore,
    invariant=_sums_add_up,
    before_placing=_before_placing,
    on_timer=_on_timer,
    next_due=_next_due,
    clock_moved=_clock_moved,
    queued=queued,
    unqueued=unqueued,
    judged=_judged,
    retried=retried,
    retried_by_user=retry_jobs,
    attempt_started=attempt_started,
    attempt_over=_attempt_over,
    lease_dropped=lease_dropped,
    job_ended=_job_ended,
)
