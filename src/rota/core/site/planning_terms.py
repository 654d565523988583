"""The planner's view of jobs and the site: requests from specifications, and the site as it is now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from rota.core.accounts.fair_share_usage import usage_of
from rota.core.attempts import suspension_phases
from rota.core.attempts.parts import all_leased
from rota.core.jobs.job import Job, Spec
from rota.core.machines.hosts import site_now
from rota.core.site.policy import policy_of, quotas_of
from rota.core.site.reservations import granted
from rota.core.world import World
from rota.errors import BadInput, NeverFits, NotFound
from rota.plan.ask import Ask
from rota.plan.language.expression import parse, text
from rota.plan.language.request import Alternative, Level, ResourceGroup
from rota.plan.language.request_parser import check_alternative, parse_request
from rota.plan.language.type_parser import parse_types
from rota.plan.packing.packing_reasons import amount
from rota.plan.placement.leases import Away, Held, Reserved
from rota.plan.policy.decay import Usage
from rota.plan.policy.policy import Policy
from rota.plan.policy.policy_records import decides_plans
from rota.plan.policy.quotas import Quotas
from rota.plan.site.clock import Clock
from rota.plan.site.resources import ALIASES, Site
from rota.plan.size import CORE, Size
from rota.plan.timeline.ledger import Ledger, Taking
from rota.plan.timeline.shapes import Shape

#: Kinds of site records that need a planner.
_RULES = ("quota", "resource")
#: Fields of host records that need a planner; packing handles the others.
_HOST_RULES = ("limits", "available_until", "hours")
_MOST_ASKS = 10_000
#: Types of jobs whose commands run on a host named by the site.
ELSEWHERE = ("deploy", "cosystem")


class WorldTerms:
    """Implements `plan.placement.terms.Terms` on the world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._asks: dict[tuple[int, Size], Ask] = {}
        #: (host records, node records, do they need a plan?): a cache
        self._looked_at: tuple[object, object, bool] = (None, None, False)

    def ask(self, job: int) -> Ask:
        found = self._world.jobs[job]
        if found.lease is not None and found.lease.given is not None and found.lease.given.elsewhere:
            size = found.spec.size  # what it holds, not what it takes where it executes
        elif found.spec.request and found.lease is None:
            size = found.spec.size if found.learned is None else _sized(found)
        else:
            size = found.size
        key = (found.spec_id, size)
        ask = self._asks.get(key)
        if ask is None:
            if len(self._asks) >= _MOST_ASKS:
                self._asks.clear()
            ask = ask_of(found.spec, size)
            if leave_s := self._world.vacate_times.leave_s(found.spec):
                ask = replace(ask, leave_s=leave_s)
            self._asks[key] = ask
        return ask

    def submitted(self, job: int) -> float:
        return self._world.jobs[job].submitted_at

    def group(self, job: int) -> int:
        return self._world.jobs[job].spec_id

    def held(self) -> list[Held]:
        world = self._world
        found = []
        made = {runner.host for runner in world.runners.values() if runner.made_for is not None}
        for job, host in all_leased(world):
            lease = job.lease
            assert lease is not None
            if host in made or (not job.size.cpus and not job.spec.on_terms):
                continue  # it takes none of our cores
            since = lease.started_at if lease.started_at is not None else lease.leased_at
            resources = lease.given.resources if lease.given is not None else ""
            end, gone = suspension_phases.expected_end(job), suspension_phases.away(job)
            found.append(Held(job.id, host, since, resources, job.spec.on_terms, end, gone))
        return found

    def away(self, job: int) -> Away | None:
        found = self._world.jobs.get(job)
        return suspension_phases.away(found) if found is not None else None

    def reserved(self, job: int) -> Reserved | None:
        return granted(self._world, job)

    def runs_at(self, job: int) -> str | None:
        types = self._world.jobs[job].spec.types
        if "noop" in types:
            return ""
        for kind in ELSEWHERE if types else ():
            if kind in types:
                host = self._world.special_hosts.get(kind, "")
                if not host:
                    raise NotFound(f"{kind}_host is not set, and {kind} jobs run there", hint=f"set {kind}_host")
                return host
        return None

    def patience_s(self) -> float:
        return self._world.patience_s

    def wanted(self) -> bool:
        site = self._world.site
        if any(needs(self._world) for needs in self._world.points.needs_plan):
            return True
        if any(site.get(kind) for kind in _RULES):
            return True
        if any(decides_plans(name, record) for name, record in site["queue"].items()):
            return True
        # Asked very often, for thousands of hosts. Changed records are new objects, so identity tells.
        if self._looked_at[0] is not site["host"] or self._looked_at[1] is not site["node"]:
            rules = any(record.get(field) for record in site["host"].values() for field in _HOST_RULES)
            rules = rules or any(record.get("hours") for record in site["node"].values())
            self._looked_at = (site["host"], site["node"], rules)
        return self._looked_at[2]

    def site(self) -> Site:
        return site_now(self._world)

    def policy(self) -> Policy:
        return policy_of(self._world.site)

    def usage(self, wall: float) -> Usage:
        return usage_of(self._world, self.policy(), wall)

    def quotas(self, site: Site) -> Quotas | None:
        zone = self._world.zone
        clock = Clock(zone if isinstance(zone, ZoneInfo) else ZoneInfo("UTC"))
        quotas = quotas_of(self._world.site, site.count, clock)
        if quotas is not None:
            quotas.remember(self._world.spent)
        return quotas


def _sized(job: Job) -> Size:
    """Of a request, only memory, disk and time are learned."""
    return Size(mem=job.size.mem, disk=job.size.disk, time_s=job.size.time_s)


def ask_of(spec: Spec, size: Size) -> Ask:
    """The planner's request for a job of this specification and size."""
    return Ask(
        alternatives=_alternatives(spec, size),
        user=spec.user,
        project=spec.project,
        name=spec.name,
        queue=spec.queue,
        priority=spec.priority,
        time_s=size.time_s,
        mem=size.mem,
        disk=size.disk,
        gpus=size.gpus,
        share=size.cpus if size.cpus < CORE and not spec.request else 0,
        limits=spec.limits,
        types=parse_types(spec.types),
        at=spec.at,
    )


def _alternatives(spec: Spec, size: Size) -> tuple[Alternative, ...]:
    if not spec.request:
        cores = max(1, -(-size.cpus // CORE))
        group = ResourceGroup((Level("host", 1), Level("core", cores)), spec.where)
        return (Alternative((group,), spec.walltime_s),)
    found = []
    for written in spec.request:
        alternative = parse_request(written)
        groups = tuple(ResourceGroup(group.levels, _both(group.where, spec.where)) for group in alternative.groups)
        found.append(Alternative(groups, alternative.walltime_s or spec.walltime_s))
    return tuple(found)


def _both(one: str, other: str) -> str:
    if not one or not other:
        return one or other
    return text(parse(f"({one}) and ({other})"))


def impossible(world: World, spec: Spec) -> str | None:
    """Why no known host could ever run this; None: one could. Raises `BadInput` for unknown words."""
    if not spec.on_terms:
        return world.placement.refusal(spec.size)
    try:
        refuse_unplannable(world, spec)
    except NeverFits as error:
        return error.message
    return None


@contextmanager
def _named_field(name: str) -> Iterator[None]:
    try:
        yield
    except BadInput as error:
        raise error.at(field=name) from None


def _too_little(ledger: Ledger, taking: Taking, site: Site) -> str:
    """Name what the hosts have too little of, besides resources."""
    everything = site.everything
    alone = {
        name: units for name, units in taking.items() if not everything & ~ledger.never({name: units}, everything)
    }
    words = []
    for name, units in (alone or taking).items():
        if name in ("mem", "disk"):
            words.append(f"{amount(units)} {name}")
        else:
            words.append(f"{units} {name}" if name == "gpus" else f"{units} of {name}")
    if alone:
        return f"no host has {' or '.join(words)}"
    return f"too few of the hosts it could use have {' and '.join(words)}"


def refuse_unplannable(world: World, spec: Spec) -> None:
    """Raise `BadInput` for unknown levels and properties, `NeverFits` if no set of resources matches."""
    site = site_now(world)
    levels = {*site.levels, *site.kinds, *ALIASES}
    for written in spec.request:
        with _named_field("request"):
            check_alternative(parse_request(written), written, levels=levels, kinds=site.kinds)
    if spec.where:
        with _named_field("where"):
            site.matching(spec.where)
    if not site.count:
        return
    ask = ask_of(spec, spec.size)
    ledger = Ledger(site)
    taking = ledger.taking(ask)
    short = None if taking is None else lambda mask: ledger.never(taking, mask)
    for alternative in ask.alternatives:
        if Shape(alternative, site, within=site.everything).choose(site.everything, short):
            return
    if taking is not None and any(
        Shape(alternative, site, within=site.everything).choose(site.everything)
        for alternative in ask.alternatives
    ):
        raise NeverFits(f"never fits: {_too_little(ledger, taking, site)}")
    if spec.where and not site.matching(spec.where):
        raise NeverFits(f"never fits: none of the {site.count} resources is {spec.where}")
    cpus = f"{spec.size.cpus / CORE:g}"
    asked = " or ".join(spec.request) if spec.request else f"{cpus} cpu{'s' * (cpus != '1')} on one host"
    like = f", where {spec.where}" if spec.where else ""
    raise NeverFits(f"never fits: no set of the {site.count} resources is {asked}{like}")
