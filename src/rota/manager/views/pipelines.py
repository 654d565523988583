"""Views of sessions of pipelines, from memory."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from rota.core.attempts.leases import JobProgress
from rota.core.attempts.suspension_phases import suspended_s
from rota.core.pipelines.progress import SUMS
from rota.core.pipelines.session import Session, StageJob
from rota.core.pipelines.session_records import SessionNews
from rota.core.world import World
from rota.wire.pipeline_views import (
    PipelineBrief,
    PipelineEvent,
    PipelineView,
    ProgressView,
    QuestionView,
    RunningView,
    StageSums,
)

_MOST_BLOCKED: Final = 1000
_MOST_RUNNING: Final = 1000


def view(world: World, session: Session, now: float) -> PipelineView:
    """A session now."""
    record, flow = session.record, session.flow
    outcomes = flow.outcomes()
    elements = {each.name: word for each, word in zip(session.definition.elements, outcomes, strict=True)}
    return PipelineView(
        session=record.number,
        file=record.file,
        user=record.user,
        state=record.state,
        total=session.whole,
        stages=sums(session),
        elements=elements,
        elapsed_s=session.elapsed_s(now),
        started_at=_moment(record.started_at),
        ended_at=None if record.ended_at is None else _moment(record.ended_at),
        failed=bool(record.failed) or not {"failed", "terminated"}.isdisjoint(outcomes),
        question=question(session),
        failures=_failures(session, elements),
        cwd=record.cwd,
        running=_running(world, session, now),
    )


def sums(session: Session) -> dict[str, StageSums]:
    """The sums of each stage."""
    counted = [stage for stage, counts in enumerate(session.route.counted) if counts]
    return {session.stage_name(stage): StageSums(**session.progress.sums(stage)) for stage in counted}


def _running(world: World, session: Session, now: float) -> list[RunningView]:
    found: list[RunningView] = []
    for id, cell in session.live.items():
        job = world.jobs[id]
        lease = job.lease
        if lease is None or lease.started_at is None or len(found) >= _MOST_RUNNING:
            continue
        element, stage = session.place_of(cell)
        told = job.progress if isinstance(job, StageJob) else None
        run_s = max(0.0, now - lease.started_at - suspended_s(lease, now))
        found.append(
            RunningView(
                element=session.element_name(element), stage=session.stage_name(stage), job=id,
                attempt=job.attempt, run_s=run_s,
                progress=_progress(told) if told is not None and told.attempt == job.attempt else None,
            )
        )  # fmt: skip
    return found


def question(session: Session) -> QuestionView | None:
    """What the session asks."""
    if session.record.question is None:
        return None
    element, stage = session.record.question
    job = session.progress.jobs[session.progress.cell(element, stage)] or None
    return QuestionView(element=session.element_name(element) or "", stage=session.stage_name(stage), job=job)


def _failures(session: Session, elements: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for place, (name, outcome) in enumerate(elements.items()):
        if outcome == "blocked" and len(found) < _MOST_BLOCKED:
            culprit = session.flow.culprit(place)
            if culprit is not None:
                found[name] = session.element_name(culprit[0]) or ""
    return found


def brief(session: Session, now: float) -> PipelineBrief:
    """One line about a session."""
    record = session.record
    return PipelineBrief(
        session=record.number,
        file=record.file,
        user=record.user,
        state=record.state,
        total=session.whole,
        left=session.flow.left if record.begun else session.whole,
        elapsed_s=session.elapsed_s(now),
        started_at=_moment(record.started_at),
        ended_at=None if record.ended_at is None else _moment(record.ended_at),
        sums=_all_sums(session),
    )


def version(session: Session) -> object:
    """Another value whenever there is something new to be seen of a session."""
    record = session.record
    flow = session.flow
    counts = [tuple(each) for each in session.progress.counts]
    return record.number, record.state, record.question, flow.quitting, flow.terminating, counts, dict(record.ran)


def _all_sums(session: Session) -> StageSums:
    """The sums of all stages together."""
    sums = [session.progress.sums(stage) for stage, counts in enumerate(session.route.counted) if counts]
    return StageSums(**{name: sum(each[name] for each in sums) for name in SUMS})


def event(news: SessionNews) -> PipelineEvent:
    """An event as it is sent."""
    return PipelineEvent(
        event=news.event,
        element=news.element,
        stage=news.stage,
        job=news.job,
        attempt=news.attempt,
        outcome=news.outcome,
        at=_moment(news.at),
        by=news.by,
        progress=None if news.progress is None else _progress(news.progress),
        lacks=news.lacks,
    )


def _progress(told: JobProgress) -> ProgressView:
    return ProgressView(done=told.done, of=told.of, text=told.text)


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
