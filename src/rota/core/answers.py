"""The engine's answers to requests. These records go onto the wire as they are."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

#: Warnings per answer.
MOST_WARNINGS: Final = 10


class Added(Struct, frozen=True, array_like=True, gc=False):
    """The result of a submission.

    Job ids in input order, each in exactly one of `added`, `existing` and `retried`; then the effects on earlier
    jobs.
    """

    added: list[int]
    existing: list[int]
    retried: list[int]
    warnings: list[str] = []
    complete: list[int] = []  #: jobs of `existing` that are complete already
    replaced: list[int] = []  #: jobs that were replaced, or whose line is gone from the input
    changed: list[int] = []  #: jobs of `existing` and `retried` that got new dependencies or settings
    kept: list[int] = []  #: jobs whose line is gone from the input and that stay


class Acted(Struct, frozen=True, array_like=True, gc=False):
    """Which jobs an action changed and which it did not."""

    changed: list[int]
    unchanged: list[int]
    missing: list[int] = []
    kept: int = 0  #: jobs of a selection that were not removed: they have not ended, or other jobs wait for them
    warnings: list[str] = []  #: what was asked for and not granted


class WalltimeSet(Struct, frozen=True, array_like=True, gc=False):
    """The walltime of a running job, and how much of the requested time could not be granted yet."""

    job: int
    walltime_s: float
    pending_s: float = 0.0
    before_s: float | None = None  #: the walltime before
    #: The job has ended and keeps its machines; these are the times for which it does so.
    keeps: bool = False


def compact_answer(answer: Added, entries: list[int] | None = None) -> str:
    """Encode an answer for storage, ids as ranges: a million in a row are two numbers.

    `entries`: the jobs in input order, if they must be stored.
    """
    parts = {"added": answer.added, "existing": answer.existing, "retried": answer.retried}
    rare = {"replaced": answer.replaced, "changed": answer.changed, "kept": answer.kept}
    parts |= {name: ids for name, ids in rare.items() if ids}
    if entries is not None and entries != answer.added:
        parts["entries"] = entries
    return msgspec.json.encode({name: ranges(ids) for name, ids in parts.items()}).decode()


def expand_answer(text: str) -> Added:
    """Decode what `compact_answer` encoded."""
    parts = msgspec.json.decode(text, type=dict[str, list[tuple[int, int]]])
    lists = {name: [id for low, high in spans for id in range(low, high + 1)] for name, spans in parts.items()}
    replaced, changed, kept = (lists.get(name, []) for name in ("replaced", "changed", "kept"))
    return Added(
        lists["added"], lists["existing"], lists["retried"], replaced=replaced, changed=changed, kept=kept
    )


def entries_of(text: str) -> list[int]:
    """The jobs of a stored answer in input order."""
    parts = msgspec.json.decode(text, type=dict[str, list[tuple[int, int]]])
    return [id for low, high in parts.get("entries", parts["added"]) for id in range(low, high + 1)]


def kept_of(text: str) -> list[int]:
    """The jobs of a stored answer that stayed although their line was gone."""
    parts = msgspec.json.decode(text, type=dict[str, list[tuple[int, int]]])
    return [id for low, high in parts.get("kept", ()) for id in range(low, high + 1)]


def ranges(ids: list[int]) -> list[tuple[int, int]]:
    """Group consecutive numbers into (first, last) pairs, in the order given."""
    spans: list[tuple[int, int]] = []
    for id in ids:
        if spans and spans[-1][1] == id - 1:
            spans[-1] = (spans[-1][0], id)
        else:
            spans.append((id, id))
    return spans
