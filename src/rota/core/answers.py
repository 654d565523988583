"""What the engine answers to those who asked. These records travel on the wire as they are."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

#: So many warnings go with an answer.
MOST_WARNINGS: Final = 10


class Added(Struct, frozen=True, array_like=True, gc=False):
    """What became of a submission: ids in order of the input, each in exactly one of three lists; and what it did
    to jobs that were there before."""

    added: list[int]
    existing: list[int]
    retried: list[int]
    warnings: list[str] = []
    complete: list[int] = []  #: those of `existing` that were complete already: nothing to wait for
    replaced: list[int] = []  #: jobs whose place others took, or that their input has no more
    changed: list[int] = []  #: those of `existing` and `retried` that wait for something else now, or ask for it
    kept: list[int] = []  #: jobs that the input had before, has no more, and that stay


class Acted(Struct, frozen=True, array_like=True, gc=False):
    """Which jobs an action changed, and which it left as they were."""

    changed: list[int]
    unchanged: list[int]
    missing: list[int] = []
    kept: int = 0  #: of a selection to be removed, those that have not ended or that others wait for
    warnings: list[str] = []  #: what was asked for and not given


class WalltimeSet(Struct, frozen=True, array_like=True, gc=False):
    """The walltime of a running job, and how much more was asked for than could be granted yet."""

    job: int
    walltime_s: float
    pending_s: float = 0.0
    before_s: float | None = None  #: what it was


def compact_answer(answer: Added, entries: list[int] | None = None) -> str:
    """The answer as it is kept, ids as ranges: a million in a row are two numbers.

    `entries`: the jobs in the order of the input, where that is to be known.
    """
    parts = {"added": answer.added, "existing": answer.existing, "retried": answer.retried}
    rare = {"replaced": answer.replaced, "changed": answer.changed, "kept": answer.kept}
    parts |= {name: ids for name, ids in rare.items() if ids}
    if entries is not None and entries != answer.added:
        parts["entries"] = entries
    return msgspec.json.encode({name: ranges(ids) for name, ids in parts.items()}).decode()


def expand_answer(text: str) -> Added:
    """The opposite of `compact_answer`."""
    parts = msgspec.json.decode(text, type=dict[str, list[tuple[int, int]]])
    lists = {name: [id for low, high in spans for id in range(low, high + 1)] for name, spans in parts.items()}
    replaced, changed, kept = (lists.get(name, []) for name in ("replaced", "changed", "kept"))
    return Added(
        lists["added"], lists["existing"], lists["retried"], replaced=replaced, changed=changed, kept=kept
    )


def entries_of(text: str) -> list[int]:
    """The jobs of a submission in the order of its input, from its answer as it is kept."""
    parts = msgspec.json.decode(text, type=dict[str, list[tuple[int, int]]])
    return [id for low, high in parts.get("entries", parts["added"]) for id in range(low, high + 1)]


def kept_of(text: str) -> list[int]:
    """The jobs that stayed although the input had them no more, from the answer as it is kept."""
    parts = msgspec.json.decode(text, type=dict[str, list[tuple[int, int]]])
    return [id for low, high in parts.get("kept", ()) for id in range(low, high + 1)]


def ranges(ids: list[int]) -> list[tuple[int, int]]:
    """Runs of consecutive numbers, in the order given."""
    spans: list[tuple[int, int]] = []
    for id in ids:
        if spans and spans[-1][1] == id - 1:
            spans[-1] = (spans[-1][0], id)
        else:
            spans.append((id, id))
    return spans
