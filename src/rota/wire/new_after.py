"""A dependency as clients send it, with a new job or a change of an existing one."""

from __future__ import annotations

from rota.wire.greeting import Message


class NewAfter(Message, frozen=True):
    """A dependency as a client sends it."""

    entry: int  #: index of the dependent entry in the submission; 0 in a change
    parent: int | str  #: a job's id, a dependency group, or, if `local`, the index of another entry
    condition: int = 1
    local: bool = False
    elements: tuple[int, int] | None = None  #: `parent` is an array: its elements from this index to that
    cwd: str | None = None  #: `parent` is the command of a job in this directory; empty: in a scratch directory
