"""Sessions of pipelines: as a list, as pictures, their elements, and what can be done with them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from rota.api.operations import ApiRequest, OperationTable
from rota.client import pipelines
from rota.wire.graph_views import LayersView
from rota.wire.pipeline_pictures import ElementPage, PipelinePicture
from rota.wire.pipeline_views import PipelineBrief

table = OperationTable("pipelines")


class OneSession(Struct, forbid_unknown_fields=True):
    session: Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]


@table.get("/pipelines", "list_pipelines", answer=list[PipelineBrief])
async def list_pipelines(request: ApiRequest) -> list[PipelineBrief]:
    """The latest session of each pipeline, running or over."""
    return await request.call(pipelines.sessions())


@table.get("/pipelines/{session}", "show_pipeline", place=OneSession, answer=PipelinePicture)
async def show_pipeline(request: ApiRequest) -> PipelinePicture:
    """One session by stages: counts, what runs, failures with what they block, and the time left.

    The answer is of bounded size, however many elements there are.
    """
    return await request.call(pipelines.picture(request.path.session))


class ElementsQuery(Struct, forbid_unknown_fields=True):
    state: Annotated[
        Literal["", "waiting", "running", "ok", "skipped", "failed", "blocked", "terminated"],
        Meta(description="Only elements in this state; with `stage`, those that are in it there."),
    ] = ""
    stage: Annotated[str, Meta(max_length=255, description="Without `state`: only elements that are here.")] = ""
    search: Annotated[str, Meta(max_length=200, description="A part of the name.")] = ""
    offset: Annotated[int, Meta(ge=0, le=1 << 62)] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


@table.get(
    "/pipelines/{session}/elements", "list_elements", place=OneSession, query=ElementsQuery, answer=ElementPage
)
async def list_elements(request: ApiRequest) -> ElementPage:
    """A page of the elements of a session, in their order, with their status at each stage."""
    query: ElementsQuery = request.query
    return await request.call(
        pipelines.elements(
            request.path.session,
            state=query.state,
            stage=query.stage,
            search=query.search,
            offset=query.offset,
            limit=query.limit,
        )
    )


@table.get("/pipelines/{session}/graph", "element_graph", place=OneSession, answer=LayersView)
async def element_graph(request: ApiRequest) -> LayersView:
    """The dependencies between the elements of a session: layers, states and the critical path."""
    return await request.call(pipelines.graph(request.path.session))


class PipelineAction(Struct, forbid_unknown_fields=True):
    action: Literal["pause", "resume", "continue", "quit", "terminate", "retry"]
    elements: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=4096)]],
        Meta(max_length=10_000, description="Only for retry: only these; none: all that failed or were ended."),
    ] = field(default_factory=list)


class PipelineActedView(Struct):
    changed: int


@table.post(
    "/pipelines/{session}/actions",
    "act_on_pipeline",
    place=OneSession,
    body=PipelineAction,
    answer=PipelineActedView,
)
async def act_on_pipeline(request: ApiRequest) -> PipelineActedView:
    """Pause or resume a session, answer its question, let it end, terminate it, or retry what failed.

    For its owner, and for operators and administrators.
    """
    action: PipelineAction = request.body
    changed = await request.call(
        pipelines.act(action.action, session=request.path.session, elements=action.elements)
    )
    return PipelineActedView(changed)
