"""Operations on jobs: add, list, show, act and modify."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field

from rota.api.operations import ApiRequest, OperationTable
from rota.client import calls, submission
from rota.client.batches import Most, UploadBatch
from rota.client.fields.modification import spec_change
from rota.client.session import AddOptions
from rota.core.attempts.signal_names import signal_name
from rota.errors import BadInput
from rota.wire.graph_views import LayersView
from rota.wire.views import GraphView, JobPage, JobView, WhyView

table = OperationTable("jobs")

JobId = Annotated[
    int,
    Meta(
        ge=1,
        le=(1 << 63) - 1,
        description="A job's id, or an element of an array, such as 12_3.",
        # The gateway resolves array elements before it reads the path.
        extra_json_schema={"type": ["integer", "string"], "pattern": "^[1-9][0-9]*(_[0-9]+)?$"},
    ),
]
Select = Annotated[
    list[Annotated[str, Meta(max_length=4096)]],
    Meta(
        max_length=1000,
        description="Selectors, as on the command line: 12, 12-20, @group, state=failed, name=x, cmd~text.",
    ),
]
_ADD_MAX: Final = 64 << 20
#: The limits of one request: a few bytes can name a million elements, or parents.
_MOST: Final = Most(jobs=100_000, parents=200_000)
#: The most changed jobs that the answer to an action lists.
_TOLD: Final = 1000


class OneJob(Struct, forbid_unknown_fields=True):
    id: JobId


class ListQuery(Struct, forbid_unknown_fields=True):
    select: Select = field(default_factory=list)
    search: Annotated[str, Meta(max_length=200, description="Text in the command or the name.")] = ""
    sort: Annotated[
        Literal["id", "-id", "submitted", "-submitted", "started", "-started", "ended", "-ended", "wall", "-wall",
                "cpu", "-cpu", "mem", "-mem", "priority", "-priority"],
        Meta(description="By what, with - in front for the largest first."),
    ] = "-id"  # fmt: skip
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    offset: Annotated[int, Meta(ge=0, le=1 << 62, description="How many to skip; a cursor says it itself.")] = 0
    cursor: Annotated[str, Meta(max_length=200, description="`next` of the page before.")] = ""


@table.get("/jobs", "list_jobs", query=ListQuery, answer=JobPage)
async def list_jobs(request: ApiRequest) -> JobPage:
    """A page of jobs, filtered, searched and sorted."""
    query: ListQuery = request.query
    return await request.call(
        calls.page(
            query.select,
            search=query.search,
            sort=query.sort,
            limit=query.limit,
            offset=query.offset,
            cursor=query.cursor,
        )
    )


class LayersQuery(Struct, forbid_unknown_fields=True):
    select: Select = field(default_factory=list)


@table.get("/layers", "job_layers", query=LayersQuery, answer=LayersView)
async def job_layers(request: ApiRequest) -> LayersView:
    """The dependencies between jobs, such as those of a group: layers, states, the critical path and time left.

    Nodes and edges are in it only if there are at most 300 jobs. More than 50,000 jobs are refused.
    """
    return await request.call(calls.layers(request.query.select))


class NewJobs(Struct, forbid_unknown_fields=True):
    jobs: Annotated[
        list[str | dict[str, Any]],
        Meta(
            min_length=1, max_length=_MOST.jobs, description="Command lines, or objects with fields of 'rota add'."
        ),
    ]
    defaults: Annotated[
        dict[str, Any], Meta(description="Fields for jobs that do not say themselves; `cwd` is needed somewhere.")
    ] = field(default_factory=dict)
    dry_run: bool = False
    submission: Annotated[
        str, Meta(max_length=64, description="Your own id for this; a repeat gets the first answer.")
    ] = ""
    input: Annotated[
        str,
        Meta(
            max_length=4096,
            description="A name for this input: added again with changes, it replaces what came to nothing.",
        ),
    ] = ""


class AddedView(Struct):
    added: list[int]
    existing: list[int]
    retried: list[int]
    warnings: list[str]
    replaced: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)


@table.post("/jobs", "add_jobs", body=NewJobs, answer=AddedView, status=201, body_max=_ADD_MAX)
async def add_jobs(request: ApiRequest) -> AddedView:
    """Add jobs: all of them, or none if one cannot be accepted."""
    new: NewJobs = request.body
    if "cwd" not in new.defaults and not all(isinstance(job, dict) and "cwd" in job for job in new.jobs):
        raise BadInput("the field 'cwd' is missing", hint="give it in 'defaults'").about("cwd")
    # In a thread, because it may take seconds, and complete before a connection is taken.
    batches, options = await asyncio.to_thread(_prepared, new)
    async with request.services.connections.client(request.credential.token) as client:
        made = await client.submit(new.submission or submission.new_id(), batches, options)
    return AddedView(
        made.added, made.existing, made.retried, made.warnings, made.replaced, made.changed, made.kept
    )


def _prepared(new: NewJobs) -> tuple[list[UploadBatch], AddOptions]:
    batches, options = submission.prepare(new.jobs, new.defaults, check=new.dry_run, input=new.input, most=_MOST)
    return list(batches), options


@table.get("/jobs/{id}", "show_job", place=OneJob, answer=JobView)
async def show_job(request: ApiRequest) -> JobView:
    """Everything about one job, with its attempts and its history."""
    return await request.call(calls.show(request.path.id))


@table.get("/jobs/{id}/why", "why_job", place=OneJob, answer=WhyView)
async def why_job(request: ApiRequest) -> WhyView:
    """Why a job is not running, what blocks it, and its expected start."""
    return await request.call(calls.why(request.path.id))


@table.get("/jobs/{id}/graph", "job_graph", place=OneJob, answer=GraphView)
async def job_graph(request: ApiRequest) -> GraphView:
    """The dependencies and dependents of a job."""
    return await request.call(calls.graph(request.path.id))


class Action(Struct, forbid_unknown_fields=True):
    action: Literal[
        "kill", "retry", "remove", "hold", "release", "confirm-dead", "suspend", "resume", "signal", "checkpoint"
    ]
    select: Annotated[list[Annotated[str, Meta(max_length=4096)]], Meta(min_length=1, max_length=10_000)]
    cascade: Annotated[bool, Meta(description="Only for remove: with everything that depends on them.")] = False
    waiting: Annotated[bool, Meta(description="Only for remove: also jobs that wait.")] = False
    lenient: Annotated[
        bool,
        Meta(description="Only for remove: jobs named by id that cannot go are kept and counted, not refused."),
    ] = False
    keep: Annotated[bool, Meta(description="Only for suspend: they give up nothing.")] = False
    signal: Annotated[str, Meta(max_length=16, description="Only for signal: its name, such as USR1.")] = ""
    check: Annotated[bool, Meta(description="Change nothing: only say which jobs would be changed now.")] = False


class ActedView(Struct):
    changed: int
    unchanged: int
    jobs: Annotated[list[int], Meta(description="The first thousand changed jobs.")]
    kept: Annotated[
        int, Meta(description="Jobs not removed because they have not ended or others depend on them.")
    ] = 0
    warnings: Annotated[list[str], Meta(description="What was asked for and not given.")] = field(
        default_factory=list
    )


@table.post("/jobs/actions", "act_on_jobs", body=Action, answer=ActedView)
async def act_on_jobs(request: ApiRequest) -> ActedView:
    """Kill, retry, remove, hold, release, suspend or resume jobs, send them a signal, request a checkpoint, or
    confirm that lost ones are dead.

    When a selection is removed, its unfinished jobs are kept; an unfinished job named by its id is refused.
    """
    action: Action = request.body
    signal = signal_name(action.signal) if action.action == "signal" else ""
    acted = await request.call(
        calls.act(
            action.action,
            action.select,
            cascade=action.cascade,
            keep=action.keep,
            signal=signal,
            waiting=action.waiting,
            lenient=action.lenient,
            check=action.check,
        )
    )
    return ActedView(len(acted.changed), len(acted.unchanged), acted.changed[:_TOLD], acted.kept)


class Walltime(Struct, forbid_unknown_fields=True):
    change: Annotated[str, Meta(max_length=64, description="A time such as 2h, or +1h or -30m.")]
    force: Annotated[bool, Meta(description="Even if that breaks promises to others; for administrators.")] = False


class WalltimeView(Struct):
    id: int
    walltime_s: float
    pending_s: Annotated[float, Meta(description="Asked for, and granted as soon as no promise is broken.")]


@table.post("/jobs/{id}/walltime", "change_walltime", place=OneJob, body=Walltime, answer=WalltimeView)
async def change_walltime(request: ApiRequest) -> WalltimeView:
    """Change the walltime of a running job."""
    wanted: Walltime = request.body
    done = await request.call(calls.walltime(request.path.id, wanted.change, force=wanted.force))
    return WalltimeView(done.job, done.walltime_s, done.pending_s)


class Change(Struct, forbid_unknown_fields=True):
    select: Annotated[list[Annotated[str, Meta(max_length=4096)]], Meta(min_length=1, max_length=10_000)]
    change: Annotated[dict[str, Any], Meta(min_length=1, description="Fields as for 'rota modify'.")]


@table.patch("/jobs", "modify_jobs", body=Change, answer=ActedView)
async def modify_jobs(request: ApiRequest) -> ActedView:
    """Change jobs that are not running."""
    change: Change = request.body
    cwd = change.change.get("cwd", "/")
    if isinstance(cwd, str) and not cwd.startswith("/"):
        raise BadInput("must be absolute here", field="cwd", hint="give the whole path")
    acted = await request.call(calls.modify(change.select, spec_change(change.change)))
    return ActedView(len(acted.changed), len(acted.unchanged), acted.changed[:_TOLD], warnings=acted.warnings)
