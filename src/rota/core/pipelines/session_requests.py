"""Requests about sessions: start one, pause and resume it, end it, retry what failed. Each is refused, or done."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from rota.core.admission.limit_uses import refuse_alone
from rota.core.answers import Added, compact_answer
from rota.core.effects import SendReply
from rota.core.jobs.job import Job
from rota.core.pipelines.admission import refuse_impossible_stages
from rota.core.pipelines.flow import ON_ERROR
from rota.core.pipelines.inheritance import inherit
from rota.core.pipelines.left_out import LeftOut
from rota.core.pipelines.progress import Status
from rota.core.pipelines.session import Session, Sessions, is_submission, mark_dirty
from rota.core.pipelines.session_records import (
    ASKING,
    PAUSED,
    RUNNING,
    ConditionsAnswered,
    SessionActed,
    SessionAttended,
    SessionNews,
    SessionRecord,
    SessionStarted,
)
from rota.core.pipelines.session_rows import forget_session, write_definition
from rota.core.pipelines.settling import ask_next, quit_session, take_answers, terminate_session
from rota.core.pipelines.stage_jobs import go_on, stand_still, tell
from rota.core.pipelines.telling import FollowSession
from rota.core.rows import SubmissionRow
from rota.core.site.limits import declare
from rota.core.submit.staging import write_submission
from rota.core.turn import Turn
from rota.core.world import World
from rota.errors import BadInput, NotFound

VERBS: Final = ("pause", "resume", "continue", "quit", "terminate", "retry")


class Begun(Struct, frozen=True):
    """The answer to a start."""

    session: int
    new: bool  #: False: it was running already


def on_session_started(world: World, turn: Turn, event: SessionStarted) -> None:
    """Start a session, or say which one of this file is running."""
    if event.on_error not in ON_ERROR:
        raise BadInput(f"'{event.on_error[:40]}' is no answer to an error", hint=f"use {', '.join(ON_ERROR)}")
    sessions = world.use(Sessions)
    former = sessions.of_file(event.by.user, event.file)
    if former is not None and not former.over and not event.restart:
        if former.record.digest != event.digest:
            raise BadInput(
                f"{event.file}, or what was selected of it, has changed since its session was started, which is"
                " still running",
                hint="wait for it, or end it and begin anew with --restart",
                code="changed",
            )
        _answer(turn, event, former, new=False)
        return
    refuse_impossible_stages(world, event)
    _declare_limits(world, turn, event)
    record = SessionRecord(
        number=world.new_job_id(), user=event.by.user, file=event.file, cwd=event.cwd, digest=event.digest,
        works=event.works, conditions=event.conditions, stages=event.stages, on_error=event.on_error,
        state=RUNNING, started_at=turn.wall, after=former.number if former is not None else 0, rerun=event.rerun,
    )  # fmt: skip
    session = Session(record, event.definition)
    if former is not None and event.left_out:
        session.left = LeftOut(event.left_out, session.progress.width)
    sessions.specs.update(event.specs)
    sessions.all[record.number] = session
    session.changed = True
    answer = compact_answer(Added([], [], []))
    write_submission(turn, SubmissionRow(session.submission, record.user, turn.wall, 0, answer))
    write_definition(turn, session)
    if former is not None and not former.over:
        if former.still:
            resume(world, turn, former, user=event.by.user)
        terminate_session(world, turn, former)
        mark_dirty(world, former)
    mark_dirty(world, session)
    _answer(turn, event, session, new=True)


def _answer(turn: Turn, event: SessionStarted, session: Session, *, new: bool) -> None:
    if event.watch:
        turn.effects.append(FollowSession(event.by, session))
    else:
        turn.effects.append(SendReply(event.by, Begun(session=session.number, new=new)))


def begin_waiting(world: World, turn: Turn) -> None:
    """Begin with sessions that were started, once the former session of their file is over."""
    sessions = world.use(Sessions)
    for session in [each for each in sessions.all.values() if not each.record.begun]:
        former = sessions.all.get(session.record.after)
        if former is not None:
            if not former.over:
                continue
            inherit(session, former)
            del sessions.all[former.number]
            forget_session(turn, former)
        session.record.begun = session.changed = True
        session.record.started_at = turn.wall
        session.flow.begin()
        mark_dirty(world, session)


def _declare_limits(world: World, turn: Turn, event: SessionStarted) -> None:
    """Raises `BadInput` if a limit is in force with another figure, or is not known at all."""
    limits = world.placement.limits
    named = {limit.name for limit in event.limits}
    for limit in event.limits:
        known = limits.get(limit.name)
        if known is not None and known.capacity != limit.capacity:
            has = "any number of" if known.capacity is None else f"{known.capacity:,}"
            raise BadInput(
                f"limit '{limit.name}' has {has} units, and the file says {limit.capacity:,}",
                field="limits",
                hint=f"write the same, or change the limit: rota limit {limit.name}:{limit.capacity}",
            )
    for stage in event.definition.stages:
        for use in stage.takes:
            known = limits.get(use.name)
            if known is not None and use.exclusive and not event.admin:
                refuse_alone(known, event.by.user, instead="take units of it")
            if known is None and use.name not in named:
                raise BadInput(
                    f"stage '{stage.name}' takes '{use.name}', which is no limit",
                    field="takes",
                    hint=f"add it to 'limits' of the file, or declare it: rota limit {use.name}:N",
                )
            if known is not None and known.capacity is not None and 0 < known.capacity < use.units:
                raise BadInput(
                    f"stage '{stage.name}' takes {use.units} of '{use.name}', which has {known.capacity}",
                    field="takes",
                    hint="take fewer",
                )
    declare(world, turn, [limit for limit in event.limits if limits.get(limit.name) is None])


def on_session_acted(world: World, turn: Turn, event: SessionActed) -> None:
    """Do what a user wants of a session."""
    session = world.use(Sessions).all.get(event.session)
    if session is None:
        raise NotFound(f"there is no session {event.session}", hint="list them with 'rota pipeline show'")
    if event.verb not in VERBS:
        raise BadInput(f"'{event.verb[:40]}' is nothing that a session does", hint=f"use {', '.join(VERBS)}")
    done = _ACTS[event.verb](world, turn, session, event)
    mark_dirty(world, session)
    turn.effects.append(SendReply(event.by, done))


def _pause(world: World, turn: Turn, session: Session, event: SessionActed) -> int:
    record = session.record
    if session.over or session.still:
        return 0
    record.state, record.paused_at = PAUSED, turn.wall
    session.changed = True
    stand_still(world, turn, session, user=event.by.user)
    session.news.append(SessionNews("suspended", turn.wall))
    _tell_running(turn, session, "suspended")
    return 1


def _resume(world: World, turn: Turn, session: Session, event: SessionActed) -> int:
    if not session.still:
        return 0
    if not ask_next(world, turn, session):
        resume(world, turn, session, user=event.by.user)
    return 1


def resume(world: World, turn: Turn, session: Session, *, user: str) -> None:
    """Let a session go on that stands still; the time that it stood is not counted."""
    record = session.record
    assert record.paused_at is not None
    record.paused_s += max(0.0, turn.wall - record.paused_at)
    record.state, record.paused_at, record.question = RUNNING, None, None
    record.unasked = []
    session.changed = True
    go_on(world, turn, session, user=user)
    session.news.append(SessionNews("resumed", turn.wall))
    _tell_running(turn, session, "resumed")


def _tell_running(turn: Turn, session: Session, event: str) -> None:
    for id, cell in session.live.items():
        element, stage = session.place_of(cell)
        if session.progress.status(element, stage) is Status.RUNNING:
            session.news.append(
                SessionNews(event, turn.wall, session.element_name(element), session.stage_name(stage), id)
            )


def _quit(world: World, turn: Turn, session: Session, event: SessionActed) -> int:
    if session.over:
        return 0
    if session.still:
        resume(world, turn, session, user=event.by.user)
    quit_session(session)
    return 1


def _terminate(world: World, turn: Turn, session: Session, event: SessionActed) -> int:
    if session.over:
        return 0
    if session.still:
        resume(world, turn, session, user=event.by.user)
    terminate_session(world, turn, session)
    return 1


def _retry(world: World, turn: Turn, session: Session, event: SessionActed) -> int:
    """Take elements that failed back to where they did, in a session that is over as well."""
    places = {element.name: place for place, element in enumerate(session.definition.elements)}
    for name in event.elements:
        if name not in places:
            raise NotFound(f"there is no element '{name[:80]}'", hint="name elements of the file")
    wanted = [places[name] for name in event.elements] or None
    question = session.record.question
    if question is not None and wanted is None:
        wanted = [question[0]]
    again = _take_back(turn, session, wanted)
    if session.still and session.record.state == ASKING and not ask_next(world, turn, session):
        resume(world, turn, session, user=event.by.user)
    return len(again)


def _take_back(turn: Turn, session: Session, wanted: list[int] | None) -> list[int]:
    """Take these elements back to where they failed, and return those that had."""
    again = session.flow.retry(wanted)
    record = session.record
    if again:
        record.quitting = record.terminating = False
        record.failed = []
        if session.over:
            record.paused_s += max(0.0, turn.wall - (record.ended_at or turn.wall))
            record.state, record.ended_at = RUNNING, None
        session.changed = True
        for element in again:
            tell(session, turn.wall, "retried", session.progress.cell(element, session.flow.at[element]))
    return again


def retry_jobs(world: World, turn: Turn, jobs: list[Job], _user: str) -> dict[int, bool]:
    """A user retries single jobs: those of sessions take their elements back. Nothing becomes of one whose session
    is gone, or whose place another job has taken."""
    done: dict[int, bool] = {}
    by_session: dict[str, list[int]] = {}
    for job in jobs:
        if is_submission(job.submission):
            done[job.id] = False
            by_session.setdefault(job.submission, []).append(job.id)
    for session in world.use(Sessions).all.values():
        if ids := {*by_session.get(session.submission, ())}:
            places = {id: cell for cell, id in enumerate(session.progress.jobs) if id in ids}
            elements = {id: session.place_of(cell)[0] for id, cell in places.items()}
            again = {*_take_back(turn, session, sorted({*elements.values()} - {session.whole}))}
            done |= {id: element in again for id, element in elements.items()}
            mark_dirty(world, session)
    return done


_ACTS: Final = {
    "pause": _pause,
    "resume": _resume,
    "continue": _resume,
    "quit": _quit,
    "terminate": _terminate,
    "retry": _retry,
}


def on_session_attended(world: World, turn: Turn, event: SessionAttended) -> None:
    """Somebody can answer the questions of a session, or nobody can any more."""
    session = world.use(Sessions).all.get(event.session)
    if session is None:
        return
    session.clients = event.clients
    if not event.clients and session.record.state == ASKING:
        resume(world, turn, session, user=session.record.user)
        mark_dirty(world, session)


def on_conditions_answered(world: World, turn: Turn, event: ConditionsAnswered) -> None:
    """The output of a job that looked at conditions was read."""
    session = world.use(Sessions).all.get(event.session)
    asks = session.looking.pop(event.job, None) if session is not None else None
    if session is not None and asks is not None:
        take_answers(world, turn, session, asks, event.text)
