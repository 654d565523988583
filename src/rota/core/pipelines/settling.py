"""Let sessions move on: once in a step, before jobs are placed, for those in which something has happened.

Ends of jobs and answers about conditions come in, jobs and questions go out; a failure is judged by `on_error`.
"""

from __future__ import annotations

from typing import Final

from rota.core.pipelines.conditions import read_answers
from rota.core.pipelines.definition import KEY
from rota.core.pipelines.flow import ASK, QUIT, TERMINATE, Ask
from rota.core.pipelines.progress import FAILURES, OUTCOMES, Status
from rota.core.pipelines.session import Session, Sessions, StageJob, mark_dirty
from rota.core.pipelines.session_records import ASKING, ENDED, SliceCommitted, TakeNextSlice
from rota.core.pipelines.session_rows import write_session
from rota.core.pipelines.stage_jobs import (
    end_jobs,
    look_at_conditions,
    make_job,
    rank_of_cell,
    settle_doubt,
    stand_still,
    status_of,
    tell,
)
from rota.core.pipelines.telling import TellSession
from rota.core.turn import Turn
from rota.core.world import World

#: Conditions of stages for the session as a whole are looked at so often.
LOOK_EVERY_S: Final = 10.0
#: In one step at most so many elements of a session move, and so many of its jobs are made: others wait for that.
MOST_MOVES: Final = 5000
MOST_JOBS: Final = 500


def settle_sessions(world: World, turn: Turn) -> None:
    """Let all sessions move on in which something has happened."""
    sessions = world.use(Sessions)
    while sessions.dirty:
        number = next(iter(sessions.dirty))
        del sessions.dirty[number]
        session = sessions.all.get(number)
        if session is not None:
            _settle(world, turn, session)


def _settle(world: World, turn: Turn, session: Session) -> None:
    was_over = session.over
    if session.record.begun and not was_over:
        _take_ends(turn, session)
        _move_on(world, turn, session)
        _make_ready(world, turn, session)
        _look_at_whole(world, turn, session)
        look_at_conditions(world, turn, session)
        _end(world, turn, session)
    else:
        session.ended.clear()
    write_session(turn, session)
    if session.news or (session.over and not was_over):
        turn.effects.append(TellSession(session, session.news, session.over))
        session.news = []


def _take_ends(turn: Turn, session: Session) -> None:
    """Jobs have ended: their elements leave their stages."""
    ended, session.ended = session.ended, []
    for cell, job, _at in ended:
        element, stage = session.place_of(cell)
        status = status_of(job)
        if element == session.whole:
            _whole_ended(turn, session, stage, job, status)
            continue
        if session.progress.status(element, stage) not in (Status.READY, Status.RUNNING):
            continue  # it was not wanted any more
        tell(session, turn.wall, "ended", cell, job=job, outcome=OUTCOMES[status])
        session.flow.ended(element, stage, status)
        if not session.route.per_session:
            continue
        names = {use.name for use in job.spec.limits}
        for each in session.route.per_session:
            takes = session.definition.stages[each].takes
            may_run = _again(session, each) or (session.route.conditional[each] and each not in session.record.ran)
            if may_run and (not takes or any(use.name in names for use in takes)):
                session.due.add(each)


def _move_on(world: World, turn: Turn, session: Session) -> None:
    """Let elements go as far as they can, and do what follows."""
    flow = session.flow
    left = MOST_MOVES
    while left:
        left -= flow.advance(left)
        moves, flow.moves = flow.moves, []
        for element, stage, status, worked in moves:
            cell = session.progress.cell(element, stage)
            if not worked:
                _tell_move(turn, session, cell, status)
            if status in FAILURES:
                _judge(world, turn, session, element, stage)
        dropped, flow.dropped = flow.dropped, []
        if dropped:
            jobs = [session.progress.jobs[cell] for cell in dropped if not session.unmade.drop(cell)]
            end_jobs(world, turn, jobs, why="its session begins nothing more")
        if not (moves or dropped):
            break
    session.asks.extend(flow.asks)
    flow.asks = []


def _make_ready(world: World, turn: Turn, session: Session) -> None:
    """Make jobs for what is ready, when nothing moves any more: the first in rank of all comes first."""
    flow, unmade = session.flow, session.unmade
    ready, flow.ready = flow.ready, []
    if flow.moving or unmade or len(ready) > MOST_JOBS:
        for cell in ready:
            session.progress.set_job(cell, 0)  # a restart finds it by that
            unmade.put(cell, rank_of_cell(world, session, cell))
        ready = [] if flow.moving else [unmade.take() for _ in range(min(MOST_JOBS, len(unmade)))]
    for cell in ready:
        make_job(world, turn, session, cell)
    if (flow.moving or unmade) and not session.slicing:
        session.slicing = True
        turn.effects.append(TakeNextSlice(session.number))


def on_slice_committed(world: World, _turn: Turn, event: SliceCommitted) -> None:
    """Let a session go on that has more to do than one step should take."""
    session = world.use(Sessions).all.get(event.session)
    if session is not None:
        session.slicing = False
        mark_dirty(world, session)


def _tell_move(turn: Turn, session: Session, cell: int, status: Status) -> None:
    outcome = OUTCOMES[status]
    if status is Status.BLOCKED:
        element, stage = session.place_of(cell)
        culprit = session.flow.culprit(element)
        by = session.element_name(culprit[0]) if culprit is not None else None
        lacks = KEY if session.flow.failed(element, stage) and session.route.stages[stage].also_failed else None
        tell(session, turn.wall, "blocked", cell, outcome=outcome, by=by, lacks=lacks)
    else:
        tell(session, turn.wall, "skipped" if status is Status.SKIPPED else "ended", cell, outcome=outcome)


# ------------------------------------------------------------------ failures


def _judge(world: World, turn: Turn, session: Session, element: int, stage: int) -> None:
    """An element has failed: do what the session says about that."""
    record = session.record
    if record.quitting or record.terminating:
        return
    if record.on_error == QUIT:
        quit_session(session)
    elif record.on_error == TERMINATE:
        terminate_session(world, turn, session)
    elif record.on_error == ASK and session.clients:
        if session.still:
            record.unasked.append((element, stage))
            session.changed = True
        else:
            _ask(world, turn, session, element, stage)


def _ask(world: World, turn: Turn, session: Session, element: int, stage: int) -> None:
    record = session.record
    record.state, record.question = ASKING, (element, stage)
    session.changed = True
    if record.paused_at is None:
        record.paused_at = turn.wall
        stand_still(world, turn, session, user=record.user)
    tell(session, turn.wall, "asked", session.progress.cell(element, stage), outcome="failed")


def ask_next(world: World, turn: Turn, session: Session) -> bool:
    """Ask about what has failed while the session stood still, if somebody can answer. False: nothing is left."""
    record = session.record
    unasked, record.unasked = record.unasked, []
    for n, (element, stage) in enumerate(unasked):
        if session.clients and session.progress.status(element, stage) in FAILURES:
            record.unasked = unasked[n + 1 :]
            _ask(world, turn, session, element, stage)
            return True
    return False


def quit_session(session: Session) -> None:
    """Begin nothing more up to the imperative stage."""
    session.record.quitting = session.changed = True
    session.flow.quit()


def terminate_session(world: World, turn: Turn, session: Session) -> None:
    """End everything now."""
    session.record.terminating = session.changed = True
    session.flow.terminate()
    session.asks.clear()
    session.due.clear()
    end_jobs(world, turn, sorted({*session.live, *session.looking}), why="its session is being terminated")


# ------------------------------------------------------------------ conditions


def take_answers(world: World, turn: Turn, session: Session, asks: list[Ask], text: str | None) -> None:
    """A job has looked at conditions."""
    for ask, skips, digest, failed in read_answers(session, asks, text):
        if ask.element < session.whole and session.progress.cell(ask.element, ask.stage) in session.doubts:
            cell = session.progress.cell(ask.element, ask.stage)
            settle_doubt(world, turn, session, cell, done=not failed and skips[ask.stage])
            continue
        if ask.element < session.whole:
            session.flow.answered(ask.element, skips, digest, failed=failed)
            continue
        cell = session.progress.cell(ask.element, ask.stage)
        session.progress.set(ask.element, ask.stage, Status.AHEAD)
        if failed:
            _whole_failed(session, ask.stage)
            tell(session, turn.wall, "ended", cell, outcome=OUTCOMES[Status.FAILED_PERMANENTLY])
        elif not skips[ask.stage] and not session.flow.terminating:
            _make_whole(world, turn, session, ask.stage)
    mark_dirty(world, session)


# ------------------------------------------------------------------ stages for the session as a whole


def _again(session: Session, stage: int) -> bool:
    """May the stage run more than once?"""
    return any(use.exclusive for use in session.definition.stages[stage].takes)


def _look_at_whole(world: World, turn: Turn, session: Session) -> None:
    """Begin with stages for the session as a whole whose time has come, those that are exclusive one by one."""
    route, progress = session.route, session.progress
    if not route.per_session or session.still:
        return
    last = _is_last(session)
    if last:
        begun = {*session.looked_at, *session.record.ran}  # after a restart only the latter is known
        session.due.update(stage for stage in route.per_session if stage not in begun)
    for stage in sorted(session.due):
        stops = session.flow.terminating or (session.flow.quitting and stage <= route.quit_until)
        status = progress.status(session.whole, stage)
        runs = status in (Status.READY, Status.RUNNING) or stage in session.record.ran
        if stops or (runs and not _again(session, stage)):
            session.due.discard(stage)
            continue
        looked_at = session.looked_at.get(stage)
        if status is not Status.AHEAD or (_again(session, stage) and _busy(session)):
            continue
        if looked_at is not None and turn.wall < looked_at + LOOK_EVERY_S and not last:
            continue  # `next_look` says when
        session.due.discard(stage)
        session.looked_at[stage] = turn.wall
        if route.conditional[stage]:
            progress.set(session.whole, stage, Status.CHECKING)
            session.asks.append(Ask(session.whole, stage, (stage,)))
        else:
            _make_whole(world, turn, session, stage)


def _busy(session: Session) -> bool:
    """Is a stage of which there may be only one at a time under way?"""
    return any(
        _again(session, stage) and session.progress.status(session.whole, stage) is not Status.AHEAD
        for stage in session.route.per_session
    )


def _is_last(session: Session) -> bool:
    """Has everything else ended?"""
    return not session.flow.left and not session.live and not session.looking and not session.asks


def next_look(session: Session) -> float | None:
    """When a stage for the session as a whole is to be looked at next."""
    if session.over or session.still:
        return None
    moments = (session.looked_at[stage] + LOOK_EVERY_S for stage in session.due if stage in session.looked_at)
    return min(moments, default=None)


def _make_whole(world: World, turn: Turn, session: Session, stage: int) -> None:
    session.progress.set(session.whole, stage, Status.READY)
    make_job(world, turn, session, session.progress.cell(session.whole, stage))


def _whole_ended(turn: Turn, session: Session, stage: int, job: StageJob, status: Status) -> None:
    ran = session.record.ran
    ran[stage] = ran.get(stage, 0) + 1
    session.changed = True
    session.progress.set(session.whole, stage, Status.AHEAD)
    if all(use.exclusive for use in session.definition.stages[stage].takes):
        session.due.discard(stage)  # nobody has used its limits since it began
    if status in FAILURES:
        _whole_failed(session, stage)
    cell = session.progress.cell(session.whole, stage)
    tell(session, turn.wall, "ended", cell, job=job, outcome=OUTCOMES[status])


def _whole_failed(session: Session, stage: int) -> None:
    if stage not in session.record.failed:
        session.record.failed.append(stage)
        session.changed = True


# ------------------------------------------------------------------ the end


def _end(world: World, turn: Turn, session: Session) -> None:
    """The session is over when nothing of it is left to do."""
    record = session.record
    if not _is_last(session) or session.due or session.still:
        return
    if any(
        session.progress.status(session.whole, stage) is not Status.AHEAD for stage in session.route.per_session
    ):
        return
    record.state, record.ended_at = ENDED, turn.wall
    session.changed = True
    for each in world.use(Sessions).all.values():
        if each.record.after == session.number and not each.record.begun:
            mark_dirty(world, each)
