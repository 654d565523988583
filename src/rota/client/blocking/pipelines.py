# Derived from rota/client/aio/pipelines.py by `make client`: change it there.
"""Operations on sessions of pipelines."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rota.client.blocking.watching import Watching, WatchOperations

if TYPE_CHECKING:
    from rota.core.pipelines.definition import Definition
    from rota.wire.client_messages import RunPipeline
    from rota.wire.pipeline_views import PipelineBegun, PipelineBrief, PipelineItem, PipelineView


class PipelineOperations(WatchOperations):
    """What can be asked of pipelines."""

    def start_pipeline(
        self,
        definition: Definition,
        *,
        file: str,
        cwd: str | None = None,
        only: Iterable[str] = (),
        stages: Iterable[str] = (),
        on_error: str = "continue",
        restart: bool = False,
        rerun: bool = False,
    ) -> PipelineBegun:
        """Run a pipeline in the background. `file` names it: while its session runs, it is not started again."""
        from rota.client import pipelines

        return self.ask(
            pipelines.start(
                pipelines.request(
                    definition,
                    file=file,
                    cwd=cwd or os.getcwd(),
                    only=only,
                    stages=stages,
                    on_error=on_error,
                    restart=restart,
                    rerun=rerun,
                )
            )
        )

    def run_pipeline(self, request: RunPipeline, *, answers: bool = False) -> Watching[PipelineItem, PipelineView]:
        """Start the session of such a request (`rota.client.pipelines.request`), or find the one that runs, and
        watch it. `answers`: somebody is there to answer its questions."""
        from rota.client import pipelines

        return self._stream(pipelines.run(request, answers=answers))

    def watch_pipeline(self, session: int, *, answers: bool = False) -> Watching[PipelineItem, PipelineView]:
        """What happens in a session until it ends. Its `settled` is the final state."""
        from rota.client import pipelines

        return self._stream(pipelines.watch(session, answers=answers), again=True)

    def pipeline(self, file: str = "", *, session: int = 0) -> PipelineView:
        """The latest session of a file, or this one."""
        from rota.client import pipelines

        return self.ask(pipelines.show(file, session))

    def pipelines(self) -> list[PipelineBrief]:
        """All sessions that are known."""
        from rota.client import pipelines

        return self.ask(pipelines.sessions())

    def act_on_pipeline(self, verb: str, *, file: str = "", session: int = 0, elements: Iterable[str] = ()) -> int:
        """pause, resume, continue, quit, terminate or retry; how much was changed."""
        from rota.client import pipelines

        return self.ask(pipelines.act(verb, file=file, session=session, elements=elements))
