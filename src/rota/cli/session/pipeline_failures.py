"""What is said about a job of a pipeline that failed: why, and the end of what it printed.

Only for the first of many failures: each takes questions to the manager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rota.cli.render.pipeline_text import output_lines
from rota.cli.render.text import brief_command, cut, harmless
from rota.errors import NoManager, RotaError

if TYPE_CHECKING:
    from rota.client.blocking import Client
    from rota.wire.pipeline_views import PipelineEvent

_TOLD: Final = 20
_LINES: Final = 10
_COMMAND: Final = 200
_BYTES: Final = 8192
_CONDITION: Final = "a condition could not be run, was ended by a signal, or took longer than 60 s"


class Failures:
    """Asks about failures."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._told = 0

    def lines(self, event: PipelineEvent) -> list[str]:
        """Indented lines about an event; none unless it is a failure."""
        failed = event.event == "ended" and (event.outcome or "").startswith("failed")
        if not failed:
            return []
        self._told += 1
        if self._told > _TOLD:
            return []
        if event.job is None:
            return [f"    {_CONDITION}"]
        try:
            said = [*self._why(event.job), *self._printed(event.job)]
        except NoManager:
            raise
        except RotaError as error:  # for example a job that was removed
            said = [harmless(error.message)]
        if self._told == _TOLD:
            said.append("(what further failures print is not shown; see 'rota logs ID')")
        return [f"    {line}" for line in said]

    def _why(self, job: int) -> list[str]:
        from rota.core.jobs.reason_texts import sentence

        found = self._client.job(job)
        if found.reason is None:
            return []
        plain = found.reason.code == "exit" and found.exit_code
        why = f"exit {found.exit_code}" if plain else sentence(found.reason.code, found.reason.message)
        command = cut(brief_command(found.cmd), _COMMAND)
        return [f"{harmless(why)}: {command}" if why else command]

    def _printed(self, job: int) -> list[str]:
        """The last lines of its stdout, then of its stderr."""
        lines = []
        for stream in (1, 2):
            printed, whole = self._end_of(job, stream)
            lines += [f"| {line}" for line in output_lines(printed, most=_LINES, whole=whole)]
        return lines

    def _end_of(self, job: int, stream: int) -> tuple[bytes, bool]:
        """The last bytes of an output, and whether they are all of it."""
        from rota.client.calls import output

        part = self._client.ask(output(job, attempt=0, stream=stream, offset=0, limit=_BYTES))
        if part.total <= len(part.data) or part.gap:
            return part.data, True
        begin = max(0, part.total - _BYTES)
        return self._client.ask(output(job, attempt=0, stream=stream, offset=begin, limit=_BYTES)).data, False
