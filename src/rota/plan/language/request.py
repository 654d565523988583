"""What a request is once it has been read: alternatives, each a sum of groups of resources and a walltime.

`plan.language.request_parser` reads the text; `plan.timeline.shapes` fits groups to resources. A request knows
names of levels and the text of expressions, never which resources exist.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

#: Instead of a number: every block or nothing, all that are free, half of those that are free.
ALL: Final = "ALL"
BEST: Final = "BEST"
HALF_BEST: Final = "HALF_BEST"


class Level(Struct, frozen=True, array_like=True, gc=False):
    """So many blocks of resources that have one value of this property."""

    name: str
    number: int | str  #: or `ALL`, `BEST`, `HALF_BEST`


class ResourceGroup(Struct, frozen=True, array_like=True, gc=False):
    """Nested blocks: ``/a=2/b=3`` is two a-blocks, in each three whole b-blocks."""

    levels: tuple[Level, ...]
    where: str = ""  #: a property expression; empty: any resource


class Alternative(Struct, frozen=True, array_like=True, gc=False):
    """Groups that take different resources, together, for so long."""

    groups: tuple[ResourceGroup, ...]
    walltime_s: float | None = None
