"""Dependencies as they are sent."""

from __future__ import annotations

from rota.core.fields.after import OfCommand, Span
from rota.wire.client_messages import NewAfter


def sent_parent(parent: int | str | Span | OfCommand) -> NewAfter:
    """A dependency on a job outside this input."""
    if isinstance(parent, OfCommand):
        return NewAfter(entry=0, parent=parent.cmd, cwd=parent.cwd)
    if isinstance(parent, tuple):
        return NewAfter(entry=0, parent=parent[0], elements=parent[1:])
    return NewAfter(entry=0, parent=parent)
