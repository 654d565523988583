"""What calls of functions returned, as clients see it."""

from __future__ import annotations

from msgspec import Struct

from rota.wire.greeting import Message


class GetResults(Message, frozen=True, tag="results"):
    """The results of these jobs. Answered by a list of `ResultView`: the first of them, as many as fit."""

    n: int
    jobs: list[int]


class ErrorView(Struct, gc=False):
    """Why a call has no result: the type of an exception with its message and traceback, or a reason code."""

    type: str
    message: str
    traceback: str


class ResultView(Struct, gc=False):
    """The result of one call."""

    id: int
    state: str
    result: str | None  #: as JSON; null: it has none
    error: ErrorView | None
    attempt: int = 0
    typed: bool = False  #: its arguments were converted as the function is annotated
    warm: bool = False  #: it was a fork of a template
    note: str = ""
