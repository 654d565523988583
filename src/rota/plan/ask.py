"""What the planner knows of a job: its alternatives, its user, its queue and its types. Made from its request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

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
    before_s: float = 0.0  #: planned before its execution: its machines are provisioned; no part of its walltime
    after_s: float = 0.0  #: planned after its execution: it keeps its machines
    prefer: str = ""  #: of several hosts, those that match this expression
    force_host: str = ""  #: the one host, whatever its condition and the expressions say
    gang: Gang | None = None  #: not one job, but all members of a gang

    @property
    def is_choosy(self) -> bool:
        """Do not only its groups say where it may be?"""
        return bool(self.gang is not None or self.prefer or self.force_host)


class Member(Struct, frozen=True, gc=False):
    """A member of a gang."""

    job: int
    ask: Ask
    name: str = ""  #: its role

    @property
    def role(self) -> str:
        """Its name in sentences."""
        return self.name or f"job {self.job}"


class Gang(Struct, frozen=True, gc=False):
    """The members of a gang, in input order."""

    members: tuple[Member, ...]
    same: str = ""  #: a property that has one value on all their resources
    share: bool = False  #: may members share hosts?


def gang_ask(
    members: Sequence[Member], *, queues: Mapping[str, int] | None = None, same: str = "", share: bool = False
) -> Ask:
    """What all members ask for together: to be placed at once, or not at all.

    It has the best rank of its members; `queues`: the priorities of their queues, where these differ. Their types
    are equal as far as a plan keeps them; moments in them must suit all.
    """
    asks = [member.ask for member in members]
    first = asks[0]
    found = max(asks, key=lambda ask: ((queues or {}).get(ask.queue, 0), ask.priority))
    types = replace(
        first.types,
        container=False,  # each member is one when it runs
        postpone=_latest(ask.types.postpone for ask in asks),
        expire=_earliest(ask.types.expire for ask in asks),
        deadline=_earliest(ask.types.deadline for ask in asks),
    )
    return Ask(
        alternatives=(),
        user=first.user,
        project=first.project,
        name=first.name,
        queue=found.queue,
        priority=found.priority,
        time_s=max(ask.time_s for ask in asks),
        types=types,
        at=first.at,
        leave_s=max(ask.leave_s for ask in asks),
        gang=Gang(tuple(members), same, share),
    )


def renumbered(ask: Ask, first: int) -> Ask:
    """The same gang with ids from this one on, for members that have none yet."""
    assert ask.gang is not None
    members = tuple(replace(member, job=first + at) for at, member in enumerate(ask.gang.members))
    return replace(ask, gang=replace(ask.gang, members=members))


def _latest(moments: Iterable[float | None]) -> float | None:
    return max((each for each in moments if each is not None), default=None)


def _earliest(moments: Iterable[float | None]) -> float | None:
    return min((each for each in moments if each is not None), default=None)


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
    def pool(self) -> str: ...
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
    def provision(self) -> str:
        """What its machines must be made into before it begins; empty: nothing."""

    @property
    def reserve(self) -> str:
        """When it keeps its machines after the run; empty: never."""

    @property
    def reserve_for_s(self) -> float | None: ...
    @property
    def prefer(self) -> str:
        """Of several hosts, it is given those that match this expression."""

    @property
    def force_host(self) -> str:
        """The one host that it must have; empty: any."""

    @property
    def gang(self) -> str:
        """The name of the gang that it is a member of; empty: none."""

    @property
    def on_terms(self) -> bool:
        """Does it ask for more than a size, so that it needs a plan?"""


#: Job types that say nothing about a plan. So do types that a site made itself.
_UNPLANNED_TYPES: Final = ("idempotent",)
_SITE_TYPE: Final = "type:"


def planned_type(request: Request) -> str:
    """The first of its types that only a plan can keep; empty: it has none."""
    found = (word for word in request.types if word not in _UNPLANNED_TYPES and not word.startswith(_SITE_TYPE))
    return next(found, "")


def unplanned(request: Request) -> bool:
    """Does it ask for nothing but a size, limits and a queue, so that it may run where another engine plans?"""
    kept = request.provision or request.reserve  # of a machine, which must be ours
    kept = kept or request.prefer or request.force_host or request.gang
    return not (request.request or request.where or request.at is not None or planned_type(request) or kept)


def ask_of(
    request: Request,
    size: Size,
    *,
    leave_s: float = 0.0,
    avoid: tuple[str, ...] = (),
    provision_s: float = 0.0,
) -> Ask:
    """What a job with this request and size asks of the planner. `avoid`: hosts that it must not get.
    `provision_s`: how long its machines are expected to be provisioned."""
    return Ask(
        alternatives=_alternatives(request, size, avoid),
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
        before_s=provision_s if request.provision else 0.0,
        after_s=request.reserve_for_s or 0.0 if request.reserve == "always" else 0.0,
        prefer=request.prefer,
        force_host=request.force_host,
    )


def size_asked(request: Request, size: Size) -> Size:
    """The size by which a waiting job is planned. Of a request only memory, disk and time are learned."""
    if not request.request or size == request.size:
        return size
    return Size(mem=size.mem, disk=size.disk, time_s=size.time_s)


def _alternatives(request: Request, size: Size, avoid: tuple[str, ...]) -> tuple[Alternative, ...]:
    where = both(request.where, elsewhere(avoid))
    if not request.request:
        cores = max(1, -(-size.cpus // CORE))
        levels: tuple[Level, ...] = (Level("host", 1), Level("core", cores))
        group = ResourceGroup(levels, where, request.pool)
        return (Alternative((whole_hosts(group) if request.provision else group,), request.walltime_s),)
    found = []
    for written in request.request:
        alternative = parse_request(written)
        groups = tuple(
            ResourceGroup(group.levels, both(group.where, where), request.pool) for group in alternative.groups
        )
        groups = tuple(map(whole_hosts, groups)) if request.provision else groups
        found.append(Alternative(groups, alternative.walltime_s or request.walltime_s))
    return tuple(found)


def elsewhere(avoid: Iterable[str]) -> str:
    """The expression that all resources match but those of these hosts."""
    quoted = (host.replace("'", "''") for host in avoid)
    return " and ".join(f"host <> '{host}'" for host in quoted)


def whole_hosts(group: ResourceGroup) -> ResourceGroup:
    """A group whose hosts are provisioned: nothing below the host is chosen, but each has as many cores."""
    names = [level.name for level in group.levels]
    if "host" not in names:
        return group
    last = names.index("host") + 1
    inside = [level.number for level in group.levels[last:] if isinstance(level.number, int)]
    return replace(group, levels=group.levels[:last], host_cores=prod(inside) if inside else 0)


def both(one: str, other: str) -> str:
    """The expression that is true where both are; an empty one always is."""
    if not one or not other:
        return one or other
    return text(parse(f"({one}) and ({other})"))
