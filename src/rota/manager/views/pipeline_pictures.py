"""Pictures of sessions of pipelines, from a snapshot: for worker threads."""

from __future__ import annotations

from collections import Counter
from typing import Final

from rota.core.pipelines.progress import FAILURES, OUTCOMES, SETTLED, Status
from rota.core.pipelines.session import Session
from rota.manager.views.element_durations import (
    ElementDurations,
    element_durations,
    longest_chain,
    session_left_s,
)
from rota.manager.views.layers import GraphItem, layers_view
from rota.manager.views.session_snapshot import NOBODY, STATES, WORDS, SessionSnapshot
from rota.plan.need import LimitUse
from rota.wire.graph_views import LayersView
from rota.wire.pipeline_pictures import (
    ElementPage,
    ElementView,
    PipelineFailure,
    RunningElement,
    SessionStage,
)

LETTERS: Final = "apcwrosffbt"  #: by the number of the status
_MOST_RUNNING: Final = 200
_MOST_FAILURES: Final = 100
_MOST_NAMED: Final = 10
#: Stretches of elements in a picture.
_MOST_STRETCHES: Final = 200
_MOST_PARENTS: Final = 5


def stretches(taken: SessionSnapshot, stage: int) -> str:
    """One letter for each stretch of elements at a stage."""
    column = taken.statuses[stage : len(taken.definition.elements) * taken.width : taken.width]
    step = stretch(taken)
    return "".join(_letter(column[at : at + step]) for at in range(0, len(column), step))


def stretch(taken: SessionSnapshot) -> int:
    """How many elements are in one."""
    return max(1, -(-len(taken.definition.elements) // _MOST_STRETCHES))


def _letter(some: bytes) -> str:
    if len(some) == 1:
        return LETTERS[some[0]]
    if not FAILURES.isdisjoint(some):
        return "f"
    if Status.RUNNING in some:
        return "r"
    return LETTERS[Counter(some).most_common(1)[0][0]]


def outcomes(taken: SessionSnapshot) -> dict[str, int]:
    """Elements by state."""
    found = Counter(now.state for now in taken.elements)
    return {state: found[state] for state in STATES}


def running(taken: SessionSnapshot) -> list[RunningElement]:
    """Those that run longest first."""
    elements, stages = taken.definition.elements, taken.definition.stages
    cells = [cell for cell in taken.running if cell.element < len(elements)]
    cells.sort(key=lambda cell: (-cell.run_s, cell.job))
    return [
        RunningElement(
            element=elements[cell.element].name,
            stage=stages[cell.stage].name,
            job=cell.job,
            attempt=cell.attempt,
            run_s=cell.run_s,
            state=cell.state,
        )
        for cell in cells[:_MOST_RUNNING]
    ]


def failures(taken: SessionSnapshot) -> tuple[list[PipelineFailure], int]:
    """Those that block most first, and how many there are."""
    elements = taken.definition.elements
    blocked: dict[int, list[int]] = {}
    for element, culprit in enumerate(taken.culprits):
        if culprit == element:
            blocked.setdefault(element, [])
        elif culprit != NOBODY:
            blocked.setdefault(culprit, []).append(element)
    found = [each for each in blocked if taken.elements[each].state == "failed"]
    found.sort(key=lambda each: (-len(blocked[each]), each))
    views = []
    for element in found[:_MOST_FAILURES]:
        row = taken.row(element)
        stage = next(stage for stage, status in enumerate(row) if status in FAILURES)
        views.append(
            PipelineFailure(
                element=elements[element].name,
                stage=taken.definition.stages[stage].name,
                job=taken.job(element, stage),
                outcome=OUTCOMES[Status(row[stage])],
                blocks=len(blocked[element]),
                blocked=[elements[each].name for each in blocked[element][:_MOST_NAMED]],
            )
        )
    return views, len(found)


def session_stages(session: Session) -> list[SessionStage]:
    """The stages that are for the session as a whole. Belongs to the loop's thread."""
    found = []
    for stage in session.route.per_session:
        status, ran = session.progress.status(session.whole, stage), session.record.ran.get(stage, 0)
        state = "running" if status is Status.RUNNING else "waiting"
        if status is Status.AHEAD and ran:
            state = "failed" if stage in session.record.failed else "ok"
        found.append(
            SessionStage(
                name=session.stage_name(stage),
                state=state,
                ran=ran,
                job=session.progress.jobs[session.progress.cell(session.whole, stage)] or None,
                takes=takes(session.definition.stages[stage].takes),
            )
        )
    return found


def takes(uses: tuple[LimitUse, ...]) -> list[str]:
    """Units of limits as they are written: `cache`, `cache:2`, `cache!`."""
    return [f"{use.name}!" if use.exclusive else f"{use.name}:{use.units}".removesuffix(":1") for use in uses]


def time_left(taken: SessionSnapshot) -> tuple[float | None, float | None]:
    """About how long the session takes yet, and the part that nothing can make shorter."""
    durations = element_durations(taken)
    path = longest_chain(taken, durations)
    left = session_left_s(taken, durations, path)
    return left, None if left is None else path.length


def element_page(
    taken: SessionSnapshot, *, state: str, stage: int | None, search: str, offset: int, limit: int
) -> ElementPage:
    """The elements of a state; with a stage, those that it has there."""
    elements, text = taken.definition.elements, search.lower()

    def fits(element: int) -> bool:
        if text and text not in elements[element].name.lower():
            return False
        if stage is not None:
            status = taken.row(element)[stage]
            return WORDS[Status(status)] == state if state else taken.elements[element].at == stage
        return not state or taken.elements[element].state == state

    places = [element for element in range(len(elements)) if fits(element)] if text or state or stage is not None \
        else range(len(elements))  # fmt: skip
    culprits = taken.culprits
    return ElementPage(
        stages=[taken.definition.stages[each].name for each in taken.stages],
        elements=[_element(taken, element, culprits[element]) for element in places[offset : offset + limit]],
        offset=offset,
        total=len(places),
    )


def _element(taken: SessionSnapshot, element: int, culprit: int) -> ElementView:
    elements, row, at = taken.definition.elements, taken.row(element), taken.elements[element].at
    by = culprit if culprit not in (NOBODY, element) else None
    by_stage = None if by is None else taken.elements[by].first_bad
    waits = []
    if at is not None and row[at] == Status.PENDING:
        waits = [
            elements[each].name
            for each in elements[element].depends
            if taken.row(each)[at] < SETTLED
        ]  # fmt: skip
    return ElementView(
        name=elements[element].name,
        place=element,
        state=taken.elements[element].state,
        at=None if at is None else taken.definition.stages[at].name,
        statuses="".join(LETTERS[row[stage]] for stage in taken.stages),
        jobs=[taken.job(element, stage) for stage in taken.stages],
        waits_for=waits[:_MOST_PARENTS],
        blocked_by=None if by is None else elements[by].name,
        blocked_at=None if by_stage is None else taken.definition.stages[by_stage].name,
        took_s=taken.durations[element],
    )


def element_graph(taken: SessionSnapshot) -> LayersView:
    """The dependencies between elements. Each has the newest of its jobs."""
    durations: ElementDurations = element_durations(taken)
    items = []
    for element, each in enumerate(taken.definition.elements):
        jobs = [taken.job(element, stage) for stage in taken.stages]
        items.append(
            GraphItem(
                id=max((job for job in jobs if job is not None), default=None),
                name=each.name,
                state=taken.elements[element].state,
                parents=[(parent, "ok") for parent in each.depends],
                left_s=durations.left_s[element],
                took_s=durations.spent_s[element],
            )
        )
    return layers_view(items)
