"""A parsed request: alternatives, each a sum of resource groups and a walltime.

`plan.language.request_parser` reads the text; `plan.timeline.shapes` fits groups to resources. A request holds
names of levels and texts of expressions; it does not know which resources exist.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

#: Instead of a number: every block or nothing, all free blocks, half of the free blocks.
ALL: Final = "ALL"
BEST: Final = "BEST"
HALF_BEST: Final = "HALF_BEST"


class Level(Struct, frozen=True, array_like=True, gc=False):
    """A number of blocks; a block is the resources with the same value of this property."""

    name: str
    number: int | str  #: or `ALL`, `BEST`, `HALF_BEST`


class ResourceGroup(Struct, frozen=True, array_like=True, gc=False):
    """Nested blocks: ``/a=2/b=3`` is two a-blocks with three whole b-blocks in each."""

    levels: tuple[Level, ...]
    where: str = ""  #: a property expression; empty: any resource
    pool: str = ""  #: that the resources must belong to; empty: any
    host_cores: int = 0  #: cores that each of its hosts must have at least


class Alternative(Struct, frozen=True, array_like=True, gc=False):
    """Resource groups that are taken together, without overlap, for a walltime."""

    groups: tuple[ResourceGroup, ...]
    walltime_s: float | None = None
