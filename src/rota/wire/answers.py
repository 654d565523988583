"""Manager → client: answers, and the items of streams."""

from __future__ import annotations

from msgspec import Raw

from rota.wire.channels import ChannelCredit, ChannelData, ChannelEnd
from rota.wire.greeting import Chunk, Failure, Message, Welcome


class Reply(Message, frozen=True, tag="reply"):
    n: int
    body: Raw


class Item(Message, frozen=True, tag="item"):
    """One piece of a stream that request `n` opened; a `Reply` ends the stream."""

    n: int
    body: Raw


class Ended(Message, frozen=True):
    """A job that has settled, in `Progress`."""

    job: int
    state: int
    exit_code: int | None
    signal: int | None
    reason: str  #: code
    message: str
    cmd: str
    attempt: int
    out: bytes = b""  #: whole, if it is at most 64 KiB; else ask with `ReadOutput`
    err: bytes = b""
    out_len: int = 0
    err_len: int = 0
    out_total: int = 0  #: bytes that it wrote; more than `out_len` when the middle was left out
    err_total: int = 0
    missing: str = ""  #: a code: its output should be kept and is not
    live_out: int = -1  #: where its stdout ended that came live, all of it; -1: it did not, or not to its end
    live_err: int = -1


class Progress(Message, frozen=True):
    """What has happened to watched jobs since the last item."""

    ended: list[Ended]
    counts: dict[str, int]  #: by state, of all watched jobs
    chunks: list[Chunk] = []


class OutputPart(Message, frozen=True):
    data: bytes
    total: int  #: bytes that are kept
    written: int  #: bytes that the job wrote
    done: bool  #: the attempt has ended and this part reaches its end
    attempt: int = 0
    gap: int = 0  #: so many bytes before `data` were not kept: the middle was left out
    lost: int = 0  #: so many bytes after `data` should be there and are not, …
    code: str = ""  #: … for this reason
    message: str = ""


ToClient = Welcome | Failure | Reply | Item | ChannelData | ChannelCredit | ChannelEnd
