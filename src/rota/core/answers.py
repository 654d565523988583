"""What the engine answers to those who asked. These records travel on the wire as they are."""

from __future__ import annotations

from msgspec import Struct


class Added(Struct, frozen=True, array_like=True, gc=False):
    """What became of a submission: ids in order of the input, each in exactly one of three lists."""

    added: list[int]
    existing: list[int]
    retried: list[int]
    warnings: list[str] = []
    complete: list[int] = []  #: those of `existing` that were complete already: nothing to wait for


class Acted(Struct, frozen=True, array_like=True, gc=False):
    """Which jobs an action changed, and which it left as they were."""

    changed: list[int]
    unchanged: list[int]
    missing: list[int] = []
