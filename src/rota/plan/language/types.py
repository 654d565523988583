"""The types of a job, which change how it is planned and run. `plan.language.type_parser` parses them."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

#: Types that only hold resources, for as long as their walltime: reaching it is their normal end.
HOLDERS: Final = frozenset(("noop", "cosystem", "deploy", "container"))


class Types(Struct, frozen=True, kw_only=True, gc=False):
    """The types of a job, as given with `-t`. Times are those of the planner's clock."""

    besteffort: bool = False
    idempotent: bool = False
    container: bool = False
    inner: str = ""  #: id or name of the container it lies in
    timesharing: tuple[str, str] | None = None  #: ("user" or "*", "name" or "*")
    placeholder: str = ""  #: its resources are closed to all jobs but …
    allowed: str = ""  #: … the jobs with this `allowed`
    deploy: bool = False
    cosystem: bool = False
    noop: bool = False
    deadline: float | None = None  #: it must have ended by then
    postpone: float | None = None  #: it may not start before
    expire: float | None = None  #: it gives up if it has not started by then
    no_quotas: bool = False  #: no quota counts it
    free: tuple[str, ...] = ()  #: the site's own types, such as "type:yop", sorted

    @property
    def done_at_walltime(self) -> bool:
        """Is the end of its walltime its normal end?"""
        return any(getattr(self, name) for name in HOLDERS)
