"""The place of a job in an array."""

from __future__ import annotations

from msgspec import Struct


class Element(Struct, frozen=True, array_like=True, gc=False):
    """A job's position in an array. The array is named by the id of its first job."""

    array: int
    index: int
