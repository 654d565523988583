"""Client → manager: sessions of pipelines."""

from __future__ import annotations

from rota.wire.greeting import Message
from rota.wire.job_structs import NewSpec


class RunPipeline(Message, frozen=True, tag="pipeline-run"):
    """Start a session, or find the one of this file that is running. Answered by `PipelineBegun`.

    With `watch`, `Item`s with a `PipelineItem` follow instead, as for `WatchPipeline`.
    """

    n: int
    file: str  #: its path: with the user, what a session is known by
    definition: bytes  #: a `Definition` in msgpack
    specs: list[NewSpec]  #: of the jobs of each stage; limits and names are those of the definition
    env: bytes  #: NUL-separated K=V
    only: list[str] = []  #: elements, with all that they need; none: all
    stages: list[str] = []  #: none: all
    on_error: str = "continue"
    restart: bool = False  #: end a session of this file whose definition differs
    watch: bool = False
    answers: bool = False  #: with `watch`: somebody is there to answer questions
    envs: list[bytes] = []  #: of stages that have one of their own; `NewSpec.env` is an index, 0 is `env`
    rerun: bool = False  #: a new session takes nothing for done: only conditions decide


class WatchPipeline(Message, frozen=True, tag="pipeline-watch"):
    """What happens in a session: first an `Item` with its present state, then its events, and the final state as
    the answer."""

    n: int
    session: int
    answers: bool = False


class ShowPipeline(Message, frozen=True, tag="pipeline-show"):
    """The state of the latest session of a file, or of this one. Answered by a `PipelineView`."""

    n: int
    file: str = ""
    session: int = 0


class ListPipelines(Message, frozen=True, tag="pipeline-list"):
    """The sessions that are known. Answered by a list of `PipelineBrief`."""

    n: int


class ActPipeline(Message, frozen=True, tag="pipeline-act"):
    """pause, resume, continue, quit, terminate or retry. Answered by a number: how much was changed."""

    n: int
    verb: str
    file: str = ""
    session: int = 0
    elements: list[str] = []  #: retry: only these


class GetPipelinePicture(Message, frozen=True, tag="pipeline-picture"):
    """A session by stages, of bounded size. Answered by a `PipelinePicture`."""

    n: int
    session: int


class ListElements(Message, frozen=True, tag="pipeline-elements"):
    """Elements of a session, in their order. Answered by an `ElementPage`."""

    n: int
    session: int
    state: str = ""  #: a word of `ElementView.state`; with `stage`: what they are there
    stage: str = ""
    search: str = ""  #: a part of the name
    offset: int = 0
    limit: int = 100


class GetElementGraph(Message, frozen=True, tag="pipeline-graph"):
    """The dependencies between the elements of a session. Answered by a `LayersView`."""

    n: int
    session: int
