"""Questions about a session of a pipeline whose answers are of bounded size: as a picture, by element, as a graph.

A copy of what changes is taken on the loop; the answer is made of it in a worker thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from rota.core.pipelines.progress import Status
from rota.core.pipelines.session import Session
from rota.core.pipelines.session_records import ASKING
from rota.errors import BadInput
from rota.manager.feature import Serve, Services
from rota.manager.loop import clock
from rota.manager.peers.peer import Peer
from rota.manager.views import pipeline_pictures as views
from rota.manager.views import pipelines
from rota.manager.views.session_snapshot import STATES, SessionSnapshot, take
from rota.wire import messages as m
from rota.wire.pipeline_pictures import ElementPage, PipelinePicture, StagePicture
from rota.wire.pipeline_views import StageSums

_PAGE_MAX: Final = 1000
_LONGEST: Final = 500

#: Finds a session that this peer may see. Raises `NotFound`.
Find = Callable[[Peer, int], Session]


class PipelinePictures:
    """Answers questions about sessions."""

    def __init__(self, services: Services, find: Find) -> None:
        self._services = services
        self._find = find

    def requests(self) -> Mapping[type[Any], Serve]:
        return {m.GetPipelinePicture: self._picture, m.ListElements: self._list, m.GetElementGraph: self._graph}

    def _take(self, session: Session) -> SessionSnapshot:
        return take(session, self._services.world, clock.now())

    async def _picture(self, peer: Peer, ask: m.GetPipelinePicture) -> None:
        session = self._find(peer, ask.session)
        taken = self._take(session)
        picture = _head(session, taken)

        def draw() -> PipelinePicture:
            for stage, each in zip(taken.stages, picture.stages, strict=True):
                each.stretches = views.stretches(taken, stage)
            picture.outcomes = views.outcomes(taken)
            picture.running = views.running(taken)
            picture.failures, picture.failures_total = views.failures(taken)
            picture.left_s, picture.path_s = views.time_left(taken)
            return picture

        await self._answer(peer, ask.n, draw)

    async def _list(self, peer: Peer, ask: m.ListElements) -> None:
        session = self._find(peer, ask.session)
        if not 0 < ask.limit <= _PAGE_MAX or ask.offset < 0:
            raise BadInput(
                f"'limit' must be between 1 and {_PAGE_MAX:,}, and 'offset' not negative",
                hint="ask for a page at a time",
            )
        if ask.state and ask.state not in STATES:
            raise BadInput(f"'{ask.state[:40]}' is no state of an element", hint=f"use {', '.join(STATES)}")
        taken = self._take(session)
        stage = _stage(session, taken, ask.stage) if ask.stage else None

        def find() -> ElementPage:
            return views.element_page(
                taken, state=ask.state, stage=stage, search=ask.search[:_LONGEST], offset=ask.offset,
                limit=ask.limit,
            )  # fmt: skip

        await self._answer(peer, ask.n, find)

    async def _graph(self, peer: Peer, ask: m.GetElementGraph) -> None:
        taken = self._take(self._find(peer, ask.session))
        await self._answer(peer, ask.n, lambda: views.element_graph(taken))

    async def _answer(self, peer: Peer, n: int, work: Callable[[], Any]) -> None:
        found = await self._services.readers.read(work)
        self._services.turns.answer(peer.asker(n), found)


def _stage(session: Session, taken: SessionSnapshot, name: str) -> int:
    for stage in taken.stages:
        if session.stage_name(stage) == name:
            return stage
    known = ", ".join(session.stage_name(stage) for stage in taken.stages)
    raise BadInput(f"there is no stage '{name[:80]}'", hint=f"the stages are {known}")


def _head(session: Session, taken: SessionSnapshot) -> PipelinePicture:
    """All that is not looked for among elements."""
    record, progress = session.record, session.progress
    stages = session.definition.stages
    return PipelinePicture(
        session=record.number,
        file=record.file,
        user=record.user,
        state=record.state,
        on_error=record.on_error,
        ending="terminate" if session.flow.terminating else "quit" if session.flow.quitting else None,
        total=session.whole,
        outcomes={},
        stretch=views.stretch(taken),
        stages=[
            StagePicture(
                name=stages[stage].name,
                sums=StageSums(**progress.sums(stage)),
                ready=progress.counts[stage][Status.READY],
                imperative=stages[stage].imperative,
                needs_dependencies=stages[stage].needs_dependencies,
                takes=views.takes(stages[stage].takes),
                stretches="",
            )
            for stage in taken.stages
        ],
        session_stages=views.session_stages(session),
        running=[],
        running_total=sum(cell.element < session.whole for cell in taken.running),
        failures=[],
        failures_total=0,
        elapsed_s=taken.elapsed_s,
        left_s=None,
        path_s=None,
        started_at=datetime.fromtimestamp(record.started_at, UTC),
        ended_at=None if record.ended_at is None else datetime.fromtimestamp(record.ended_at, UTC),
        question=pipelines.question(session) if record.state == ASKING else None,
    )
