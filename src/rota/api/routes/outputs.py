"""Output of jobs: the kept part, and live output."""

from __future__ import annotations

import asyncio
import base64
import codecs
import re
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from rota.api.operations import EVENTS, TEXT, ApiRequest, OperationTable
from rota.api.routes.jobs import OneJob
from rota.client import calls
from rota.client.printed import Absent, Marking
from rota.client.results import results
from rota.errors import BadInput, RotaError
from rota.wire import client_messages as m
from rota.wire.results import ErrorView

table = OperationTable("jobs")

_PART: Final = 1 << 20
_FAR: Final = 1 << 62
#: A silent job's stream sends a sign of life at this interval, which also detects readers that have gone.
_PING_S: Final = 15.0
#: Chunks of live output queued for a slow reader; beyond that the manager waits.
_WAITING: Final = 4
_SEEN: Final = re.compile(r"(\d{1,10})-(\d{1,19})-(\d{1,19})")

_Stream = Literal["out", "err"]
_Attempt = Annotated[int, Meta(ge=0, le=1 << 31, description="0: the newest.")]
_Offset = Annotated[int, Meta(ge=0, le=_FAR)]
_Marks = Annotated[bool, Meta(description="Say in the text where bytes are missing.")]
_NUMBER: Final[dict[str, int]] = {"out": 1, "err": 2}


class OutputQuery(Struct, forbid_unknown_fields=True):
    stream: _Stream = "out"
    attempt: _Attempt = 0
    offset: _Offset = 0
    limit: Annotated[int, Meta(ge=1, le=_PART)] = 1 << 18
    tail: Annotated[int, Meta(ge=0, le=_PART, description="Instead of `offset`: the last so many bytes.")] = 0
    before: Annotated[_Offset | None, Meta(description="With `tail`: the last ones before this offset.")] = None
    marks: _Marks = True


class OutputView(Struct):
    """A part of a stream: what is kept from `offset` up to `next`. `text` is null where that is not valid UTF-8;
    then `data` has it in base64. `kept` is the end of the kept stream; `written` is its full length, including
    what was left out of its middle. Where bytes are missing, a line in the text says so, and `missing` lists
    them."""

    attempt: int
    offset: int
    next: int
    kept: int
    written: int
    done: bool
    text: str | None = None
    data: str | None = None
    missing: list[Absent] = []


@table.get("/jobs/{id}/output", "job_output", place=OneJob, query=OutputQuery, answer=OutputView)
async def job_output(request: ApiRequest) -> OutputView:
    """A part of an attempt's output.

    It begins and ends between two characters, even if `tail` or `limit` fall within one. Output is kept when the
    attempt ends, up to the setting `keep_output`; until then, see `output/live`.
    """
    query: OutputQuery = request.query
    if query.before is not None and not query.tail:
        raise BadInput("'before' says where a tail ends", hint="give 'tail' as well")
    attempt, begin, end = query.attempt, query.offset, query.offset + query.limit
    if query.tail:
        whole = await _part(request, query.stream, attempt, _FAR, 1)  # only the end position
        attempt, end = whole.attempt, whole.total if query.before is None else min(query.before, whole.total)
        begin = max(0, end - query.tail)
    parts = [part async for part in _parts(request, query.stream, attempt, begin, end)]
    last = parts[-1]
    cut = _partial_start(parts[0].data) if query.tail and begin and not parts[0].gap else 0
    if sum(len(part.data) for part in parts) == cut:
        cut = 0  # less than one character
    parts[0] = replace(parts[0], data=parts[0].data[cut:])
    if end < last.total and not last.code and (more := last.data[: len(last.data) - _partial_end(last.data)]):
        parts[-1] = replace(last, data=more)
    begin = min(begin, last.total) + cut
    marking = Marking(begin, marks=query.marks)
    data = b"".join([marking.took(part) for part in parts]) + marking.finish()
    view = OutputView(
        attempt=last.attempt,
        offset=begin,
        next=min(marking.offset, last.total),
        kept=last.total,
        written=last.written,
        done=last.done and marking.offset >= last.total,
        missing=marking.absent,
    )
    try:
        view.text = data.decode() if not marking.absent else _whole_characters(parts, begin, marks=query.marks)
    except UnicodeDecodeError:
        view.data = base64.b64encode(data).decode()
    return view


def _whole_characters(parts: list[m.OutputPart], begin: int, *, marks: bool) -> str:
    """The text of parts with bytes missing between them, perhaps within a character. May raise
    `UnicodeDecodeError`."""
    marking = Marking(begin, marks=marks)
    text = ""
    for part in parts:
        first = _partial_start(part.data)
        last = _partial_end(part.data[first:])
        inner = part.data[first : len(part.data) - last]
        fitting = (b"\xef\xbf\xbd" if first else b"") + inner + (b"\xef\xbf\xbd" if last else b"")
        text += marking.took(replace(part, data=fitting)).decode()
    return text + marking.finish().decode()


class CallResult(Struct):
    """What the call of a function returned. `error` says why a call that has ended has no result: the type of an
    exception with its message and traceback, or a reason code."""

    id: int
    state: str
    result: Any
    error: ErrorView | None


@table.get("/jobs/{id}/result", "job_result", place=OneJob, answer=CallResult)
async def job_result(request: ApiRequest) -> CallResult:
    """What the call of a function returned; both `result` and `error` are null while it has not ended."""
    (view,) = await request.call(results([request.path.id]))
    value = msgspec.Raw(b"null" if view.result is None else view.result.encode())
    return CallResult(view.id, view.state, value, view.error)


class RawQuery(Struct, forbid_unknown_fields=True):
    stream: _Stream = "out"
    attempt: _Attempt = 0
    offset: _Offset = 0
    limit: Annotated[int, Meta(ge=1, le=_FAR, description="Without it: all that is kept.")] = _FAR
    marks: _Marks = True


@table.get("/jobs/{id}/output/raw", "job_output_raw", place=OneJob, query=RawQuery, answer=str, kind=TEXT)
async def job_output_raw(request: ApiRequest) -> AsyncIterator[bytes]:
    """All kept output of an attempt, byte for byte; a line marks where bytes are missing."""
    query: RawQuery = request.query
    end = min(query.offset + query.limit, _FAR)
    parts = _parts(request, query.stream, query.attempt, query.offset, end)
    first = await anext(parts)  # report errors before the response begins

    async def texts() -> AsyncIterator[bytes]:
        marking = Marking(query.offset, marks=query.marks)
        yield marking.took(first)
        async for part in parts:
            yield marking.took(part)
        yield marking.finish()

    return texts()


async def _parts(
    request: ApiRequest, stream: _Stream, attempt: int, begin: int, end: int
) -> AsyncIterator[m.OutputPart]:
    """At least one part, and all of them up to `end`."""
    reading = Marking(begin)
    while True:
        part = await _part(request, stream, attempt, reading.offset, max(1, min(end - reading.offset, _PART)))
        if begin >= end:
            lost, code = (0, "") if part.total else (part.lost, part.code)
            part = replace(part, data=b"", gap=0, lost=lost, code=code)
        yield part
        reading.took(part)
        # The newest attempt may change meanwhile.
        attempt = part.attempt
        if not reading.more or reading.offset >= end:
            return


class LiveQuery(Struct, forbid_unknown_fields=True):
    last: Annotated[str, Meta(max_length=64, description="Instead of the header Last-Event-ID.")] = ""


@table.get("/jobs/{id}/output/live", "job_output_live", place=OneJob, query=LiveQuery, kind=EVENTS)
async def job_output_live(request: ApiRequest) -> AsyncIterator[bytes]:
    """The output of a job while it runs, as events `chunk`, until `end`.

    It begins with the first byte, or where a reconnecting reader left off. A chunk has the bytes from `offset` up
    to `next` of its stream. A reader slower than the job does not slow it down: bytes are skipped, and `missing`
    is how many before this chunk (absent if none). Invalid UTF-8 is replaced. Later attempts are reported too.
    """
    pen = Pen(request.headers.get("last-event-id", "") or request.query.last)
    await _part(request, "out", 0, _FAR, 1)  # raises for an unknown job; the stream itself could not
    client = await request.services.connections.connect(request.credential.token)
    try:
        watching = await client.watch(request.path.id, follow=True, paced=True)
    except BaseException:
        await client.close()
        raise

    async def told() -> AsyncIterator[bytes]:
        news: asyncio.Queue[m.Progress | bool] = asyncio.Queue(_WAITING)
        taken: dict[int, list[int]] = {}  #: attempt → how far each stream has been queued

        async def listen() -> None:
            try:
                async for progress in watching:
                    await news.put(progress)
                    reached: dict[tuple[int, int], list[int]] = {}
                    for chunk in progress.chunks:
                        ends = reached.setdefault(
                            (chunk.job, chunk.attempt), taken.setdefault(chunk.attempt, [0, 0])
                        )
                        ends[chunk.stream - 1] = chunk.offset + len(chunk.data)
                    for (job, attempt), (out, err) in reached.items():
                        await watching.took(job, attempt, out=out, err=err)
            except RotaError:
                await news.put(False)
            else:
                await news.put(True)

        listening: asyncio.Task[None] | None = None
        try:
            with request.services.limits.stream(request.credential.token):
                listening = asyncio.create_task(listen())
                yield b": open\n\n"
                while True:
                    try:
                        progress = await asyncio.wait_for(news.get(), _PING_S)
                    except TimeoutError:
                        yield b": ping\n\n"
                        continue
                    if isinstance(progress, bool):
                        if progress:  # a lost connection is not an end: the reader reconnects by itself
                            yield b"event: end\ndata: {}\n\n"
                        return
                    for chunk in progress.chunks:
                        if event := pen.write(chunk):
                            yield event
                    for ended in progress.ended:
                        async for event in _rest(request, pen, ended):
                            yield event
        finally:
            if listening is not None:
                listening.cancel()
            await client.close()

    return told()


class Pen:
    """Writes live output as events: whole characters only, nothing twice.

    The id of an event is the attempt and the offset reached in each stream. A reconnecting reader sends it back.
    """

    def __init__(self, seen: str = "") -> None:
        known = _SEEN.fullmatch(seen)
        self._attempt = int(known[1]) if known else 0
        self._told = {1: int(known[2]), 2: int(known[3])} if known else {1: 0, 2: 0}
        self._begin()

    def write(self, chunk: m.Chunk) -> bytes:
        """The event for a piece; empty if it has nothing new, or less than a character."""
        self._turn_to(chunk.attempt)
        at = self._told[chunk.stream]
        received = at + len(self._decoders[chunk.stream].getstate()[0])
        data = chunk.data[max(0, received - chunk.offset) :]
        if not data:
            return b""
        missing = 0
        if chunk.offset > received:  # the bytes between are lost, and the partial character with them
            self._decoders[chunk.stream].reset()
            missing, at = chunk.offset - at, chunk.offset
        text = self._decoders[chunk.stream].decode(data)
        end = chunk.offset + len(chunk.data)
        told = end - len(self._decoders[chunk.stream].getstate()[0])
        self._told[chunk.stream] = told
        return self._event(chunk.stream, at, text, missing) if text or missing else b""

    def told(self, attempt: int, stream: int) -> int:
        """The offset reached in a stream."""
        if attempt != self._attempt:
            return 0
        return self._told[stream] + len(self._decoders[stream].getstate()[0])

    def end(self, attempt: int, stream: int, end: int) -> bytes:
        """A stream has ended at this offset: bytes that were not sent before it are missing."""
        if end <= self.told(attempt, stream):
            return b""
        self._turn_to(attempt)
        missing, self._told[stream] = end - self._told[stream], end
        return self._event(stream, end, "", missing)

    def _event(self, stream: int, at: int, text: str, missing: int) -> bytes:
        body = {
            "attempt": self._attempt,
            "stream": "err" if stream == 2 else "out",
            "offset": at,
            "next": self._told[stream],
            "text": text,
        }
        if missing:
            body["missing"] = missing
        id = b"%d-%d-%d" % (self._attempt, self._told[1], self._told[2])
        return b"id: %b\nevent: chunk\ndata: %b\n\n" % (id, msgspec.json.encode(body))

    def _turn_to(self, attempt: int) -> None:
        if attempt != self._attempt:
            self._attempt, self._told = attempt, {1: 0, 2: 0}
            self._begin()

    def _begin(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders: dict[int, Any] = {1: decoder("replace"), 2: decoder("replace")}


async def _rest(request: ApiRequest, pen: Pen, ended: m.Ended) -> AsyncIterator[bytes]:
    """The unsent rest of an ended attempt: from the kept output if that is complete, otherwise a mark."""
    streams: tuple[tuple[_Stream, int, int, int], ...] = (
        ("out", ended.live_out, ended.out_len, ended.out_total),
        ("err", ended.live_err, ended.err_len, ended.err_total),
    )
    for name, live, kept, total in streams:
        number = _NUMBER[name]
        if live < 0 and total <= kept:
            while (at := pen.told(ended.attempt, number)) < kept:
                part = await _part(request, name, ended.attempt, at, _PART)
                if not part.data:
                    break
                if event := pen.write(m.Chunk(ended.job, ended.attempt, number, at, part.data)):
                    yield event
        if event := pen.end(ended.attempt, number, max(live, total if live < 0 else 0)):
            yield event


async def _part(request: ApiRequest, stream: str, attempt: int, offset: int, limit: int) -> m.OutputPart:
    number = _NUMBER[stream]
    return await request.call(
        calls.output(request.path.id, attempt=attempt, stream=number, offset=offset, limit=limit)
    )


def _partial_start(data: bytes) -> int:
    """The number of bytes at the start that belong to an earlier character."""
    return next((n for n, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)


def _partial_end(data: bytes) -> int:
    """The number of bytes at the end that belong to an incomplete character."""
    for n in range(1, min(4, len(data)) + 1):
        byte = data[-n]
        if byte & 0xC0 != 0x80:
            length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return n if length > n else 0
    return 0
