"""What the planner knows of a job: its alternatives, its user, its queue and its types. Made from its request."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from rota.plan.language.expression import parse, text
from rota.plan.language.request import Alternative, Level, ResourceGroup
from rota.plan.language.request_parser import parse_request
from rota.plan.language.type_parser import parse_types
from rota.plan.language.types import Types
from rota.plan.need import LimitUse
from rota.plan.size import CORE, Size


class Ask(Struct, frozen=True, kw_only=True, gc=False):
    """One job, to the planner."""

    alternatives: tuple[Alternative, ...]
    user: str = ""
    project: str = ""
    name: str = ""
    queue: str = "default"
    priority: int = 0
    time_s: float = 3600.0  #: how long it is expected to run where there is no walltime
    mem: int = 0  #: bytes on each host
    disk: int = 0  #: bytes on each host
    gpus: int = 0  #: on each host
    share: int = 0  #: of its one core, in hundredths; 0: whole cores
    limits: tuple[LimitUse, ...] = ()
    types: Types = Types()
    at: float | None = None  #: an advance reservation for this moment
    leave_s: float = 0.0  #: after a preemption notice it has ended within this time


class Request(Protocol):
    """The record that all jobs of one specification share: what they ask for. It never changes."""

    @property
    def user(self) -> str: ...
    @property
    def project(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def size(self) -> Size: ...
    @property
    def given(self) -> tuple[str, ...]:
        """Which of mem, disk and time the user gave."""

    @property
    def override(self) -> str:
        """Whether learned values replace those; empty: higher ones do."""

    @property
    def walltime_s(self) -> float | None: ...
    @property
    def limits(self) -> tuple[LimitUse, ...]: ...
    @property
    def request(self) -> tuple[str, ...]: ...
    @property
    def where(self) -> str: ...
    @property
    def types(self) -> tuple[str, ...]: ...
    @property
    def at(self) -> float | None: ...
    @property
    def checkpoint_s(self) -> float | None: ...
    @property
    def signal(self) -> str: ...
    @property
    def on_success(self) -> tuple[str, ...]: ...
    @property
    def on_failure(self) -> tuple[str, ...]: ...
    @property
    def on_exit(self) -> tuple[str, ...]: ...
    @property
    def on_terms(self) -> bool:
        """Does it ask for more than a size, so that it needs a plan?"""


def ask_of(request: Request, size: Size, *, leave_s: float = 0.0) -> Ask:
    """What a job with this request and size asks of the planner."""
    return Ask(
        alternatives=_alternatives(request, size),
        user=request.user,
        project=request.project,
        name=request.name,
        queue=request.queue,
        priority=request.priority,
        time_s=size.time_s,
        mem=size.mem,
        disk=size.disk,
        gpus=size.gpus,
        share=size.cpus if size.cpus < CORE and not request.request else 0,
        limits=request.limits,
        types=parse_types(request.types),
        at=request.at,
        leave_s=leave_s,
    )


def size_asked(request: Request, size: Size) -> Size:
    """The size by which a waiting job is planned. Of a request only memory, disk and time are learned."""
    if not request.request or size == request.size:
        return size
    return Size(mem=size.mem, disk=size.disk, time_s=size.time_s)


def _alternatives(request: Request, size: Size) -> tuple[Alternative, ...]:
    if not request.request:
        cores = max(1, -(-size.cpus // CORE))
        group = ResourceGroup((Level("host", 1), Level("core", cores)), request.where)
        return (Alternative((group,), request.walltime_s),)
    found = []
    for written in request.request:
        alternative = parse_request(written)
        groups = tuple(
            ResourceGroup(group.levels, _both(group.where, request.where)) for group in alternative.groups
        )
        found.append(Alternative(groups, alternative.walltime_s or request.walltime_s))
    return tuple(found)


def _both(one: str, other: str) -> str:
    if not one or not other:
        return one or other
    return text(parse(f"({one}) and ({other})"))
