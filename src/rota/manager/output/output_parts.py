"""Answers `ReadOutput`: a part of what is kept of an attempt, verified, and what is missing right there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rota.errors import NotFound
from rota.manager.output.outputs import because, output_kept
from rota.wire import messages as m

if TYPE_CHECKING:
    from rota.manager.loop.service import Manager

_OUTPUT_MAX: Final = 4 << 20


async def read_part(manager: Manager, ask: m.ReadOutput) -> m.OutputPart:
    """The part that is asked for, of a job that exists. Raises `NotFound` if it has no such attempt."""
    attempts = await manager.read(lambda: manager.store.attempts(ask.job))
    executed = [each for each in attempts if each.outcome != "void"]
    number = ask.attempt or (executed[-1].number if executed else 0)
    found = next((each for each in executed if each.number == number), None)
    if found is None:
        if ask.attempt:
            raise NotFound(f"job {ask.job} has no attempt {ask.attempt}", hint=f"see 'rota show {ask.job}'")
        return m.OutputPart(b"", 0, 0, done=False)
    output = output_kept(found)
    kept, head, left_out = output.length(ask.stream), output.head(ask.stream), output.left_out(ask.stream)
    limit = min(ask.limit, _OUTPUT_MAX)
    if left_out and ask.offset < head:
        limit = min(limit, head - ask.offset)  # no part goes across what was left out
    span = manager.outputs.span(output, ask.stream, offset=ask.offset, limit=limit)
    code = message = ""
    if span.missing is not None:
        missing = span.missing
        code, message = await manager.read(lambda: because(missing, output, manager.store))
    end = ask.offset + len(span.data) + span.lost
    return m.OutputPart(
        data=span.data,
        total=kept,
        written=output.total(ask.stream),
        done=found.outcome is not None and end >= kept,
        attempt=number,
        gap=left_out if ask.offset == head else 0,
        lost=span.lost,
        code=code,
        message=message,
    )
