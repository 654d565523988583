"""What the planner asks about jobs and the site: requests made of specifications, and the site as it is now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from zoneinfo import ZoneInfo

from rota.core.job import Job, Spec
from rota.core.policing import policy_of, quotas_of
from rota.core.siting import site_now
from rota.core.world import World
from rota.errors import BadInput, NeverFits
from rota.plan.ask import Ask
from rota.plan.clock import Clock
from rota.plan.expression import parse, text
from rota.plan.grammar import check_alternative, parse_request
from rota.plan.ledger import Ledger, Taking
from rota.plan.placement import Held, Reserved
from rota.plan.policy import Policy
from rota.plan.quotas import Quotas
from rota.plan.reasons import amount
from rota.plan.request import Alternative, Group, Level
from rota.plan.resources import ALIASES, Site
from rota.plan.shapes import Shape
from rota.plan.size import CORE, Size
from rota.plan.types import parse_types

#: Kinds of site records that only the planner knows how to keep.
_RULES = ("queue", "quota", "host", "resource")
_MOST_ASKS = 10_000


class WorldTerms:
    """`plan.placement.Terms`, answered out of the world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._asks: dict[tuple[int, Size], Ask] = {}

    def ask(self, job: int) -> Ask:
        found = self._world.jobs[job]
        if found.spec.request and found.lease is None:
            size = found.spec.size if found.learned is None else _sized(found)
        else:
            size = found.size
        key = (found.spec_id, size)
        ask = self._asks.get(key)
        if ask is None:
            if len(self._asks) >= _MOST_ASKS:
                self._asks.clear()
            ask = self._asks[key] = ask_of(found.spec, size)
        return ask

    def submitted(self, job: int) -> float:
        return self._world.jobs[job].submitted_at

    def group(self, job: int) -> int:
        return self._world.jobs[job].spec_id

    def held(self) -> list[Held]:
        world = self._world
        found = []
        for runner in world.runners.values():
            if runner.made_for is None:
                for id in runner.leases:
                    job = world.jobs[id]
                    lease = job.lease
                    assert lease is not None
                    if not job.size.cpus and not job.spec.on_terms:
                        continue  # it takes no core
                    since = lease.started_at if lease.started_at is not None else lease.leased_at
                    resources = lease.given.resources if lease.given is not None else ""
                    found.append(Held(id, runner.host, since, resources, job.spec.on_terms))
        return found

    def reserved(self, job: int) -> Reserved | None:
        return self._world.reserved.get(job)

    def wanted(self) -> bool:
        return any(self._world.site.get(kind) for kind in _RULES)

    def site(self) -> Site:
        return site_now(self._world)

    def policy(self) -> Policy:
        return policy_of(self._world.site)

    def quotas(self, site: Site) -> Quotas | None:
        zone = self._world.zone
        clock = Clock(zone if isinstance(zone, ZoneInfo) else ZoneInfo("UTC"))
        quotas = quotas_of(self._world.site, site.count, clock)
        if quotas is not None:
            quotas.remember(self._world.spent)
        return quotas


def _sized(job: Job) -> Size:
    """Of a request only memory, disk and time are learned."""
    return Size(mem=job.size.mem, disk=job.size.disk, time_s=job.size.time_s)


def ask_of(spec: Spec, size: Size) -> Ask:
    """What a job with this specification asks of the planner when it takes this much."""
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
        group = Group((Level("host", 1), Level("core", cores)), spec.where)
        return (Alternative((group,), spec.walltime_s),)
    found = []
    for written in spec.request:
        alternative = parse_request(written)
        groups = tuple(Group(group.levels, _both(group.where, spec.where)) for group in alternative.groups)
        found.append(Alternative(groups, alternative.walltime_s or spec.walltime_s))
    return tuple(found)


def _both(one: str, other: str) -> str:
    if not one or not other:
        return one or other
    return text(parse(f"({one}) and ({other})"))


def impossible(world: World, spec: Spec) -> str | None:
    """Why no machine that is known could ever run this; None if one could. Raises `BadInput` for unknown words."""
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
        raise BadInput(f"field '{name}': {error.message}", hint=error.hint) from None


def _too_little(ledger: Ledger, taking: Taking, site: Site) -> str:
    """Of what beside resources the hosts have too little."""
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
    """Raise `BadInput` for unknown levels and properties, `NeverFits` for what no resources could do."""
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
    asked = " or ".join(spec.request) if spec.request else f"{spec.size.cpus / CORE:g} cpus on one host"
    raise NeverFits(f"never fits: no set of the {site.count} resources is {asked}")
