"""Requests about sessions of pipelines, and how to read the answers.

No I/O, but the environment of this process is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from rota.client.calls import Call, StreamCall
from rota.client.fields.new_spec import new_spec
from rota.client.submission import base_wanted
from rota.client.submit_environment import captured_environment
from rota.core.pipelines.definition import Definition
from rota.wire import client_messages as m
from rota.wire.graph_views import LayersView
from rota.wire.pipeline_pictures import ElementPage, PipelinePicture
from rota.wire.pipeline_views import PipelineBegun, PipelineBrief, PipelineItem, PipelineView

#: Fields of a stage whose defaults differ from those of `add`.
_DEFAULTS: Final[Mapping[str, object]] = {"backoff": "0s", "retries": 0}


def request(
    definition: Definition,
    *,
    file: str,
    cwd: str,
    only: Iterable[str] = (),
    stages: Iterable[str] = (),
    on_error: str = "continue",
    restart: bool = False,
    rerun: bool = False,
    mem: int | None = None,
) -> m.RunPipeline:
    """The request to run a pipeline. `file`: its path, by which the session is known."""
    envs = [captured_environment()]
    specs = []
    group = os.path.basename(file)
    for stage in definition.stages:
        fields = {**_DEFAULTS, **stage.fields}
        wanted = replace(base_wanted(fields, group=group, mem=mem), cwd=cwd)
        number = 0
        if wanted.env:
            number = len(envs)
            envs.append(captured_environment(dict(wanted.env)))
        specs.append(new_spec(wanted, number))
    return m.RunPipeline(
        n=0, file=file, definition=msgspec.msgpack.encode(definition), specs=specs, env=envs[0], envs=envs[1:],
        only=[*only], stages=[*stages], on_error=on_error, restart=restart, rerun=rerun,
    )  # fmt: skip


def start(request: m.RunPipeline) -> Call[PipelineBegun]:
    return Call(lambda n: replace(request, n=n), PipelineBegun)


def run(request: m.RunPipeline, *, answers: bool) -> StreamCall[PipelineItem, PipelineView]:
    return StreamCall(lambda n: replace(request, n=n, watch=True, answers=answers), PipelineItem, PipelineView)


def watch(session: int, *, answers: bool) -> StreamCall[PipelineItem, PipelineView]:
    return StreamCall(lambda n: m.WatchPipeline(n, session, answers), PipelineItem, PipelineView)


def show(file: str = "", session: int = 0) -> Call[PipelineView]:
    return Call(lambda n: m.ShowPipeline(n, file, session), PipelineView)


def sessions() -> Call[list[PipelineBrief]]:
    return Call(m.ListPipelines, list[PipelineBrief])


def picture(session: int) -> Call[PipelinePicture]:
    return Call(lambda n: m.GetPipelinePicture(n, session), PipelinePicture)


def elements(
    session: int, *, state: str = "", stage: str = "", search: str = "", offset: int = 0, limit: int = 100
) -> Call[ElementPage]:
    return Call(lambda n: m.ListElements(n, session, state, stage, search, offset, limit), ElementPage)


def graph(session: int) -> Call[LayersView]:
    return Call(lambda n: m.GetElementGraph(n, session), LayersView)


def act(verb: str, *, file: str = "", session: int = 0, elements: Iterable[str] = ()) -> Call[int]:
    return Call(lambda n: m.ActPipeline(n, verb, file, session, [*elements]), int)
