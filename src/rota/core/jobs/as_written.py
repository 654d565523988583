"""What the user of a job asked for, where the rules of the site changed it."""

from __future__ import annotations

from msgspec import Struct

from rota.plan.size import Size


class AsWritten(Struct, frozen=True, array_like=True, gc=False):
    """What the user asked for, if the site's rules changed it. Fields as in `Spec`."""

    size: Size
    walltime_s: float | None
    given: tuple[str, ...]
    request: tuple[str, ...]
    priority: int | None = None  #: None: unchanged
