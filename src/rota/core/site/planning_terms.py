"""Requests that no known host could ever satisfy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rota.core.jobs.job import Spec
from rota.core.machines.hosts import site_now
from rota.core.pools.registry import could_delegate, refuse_limits_of_hosts
from rota.core.world import World
from rota.errors import BadInput, NeverFits
from rota.plan.ask import ask_of
from rota.plan.language.request_parser import check_alternative, parse_request
from rota.plan.packing.packing_reasons import amount
from rota.plan.site.resources import ALIASES, Site
from rota.plan.size import CORE
from rota.plan.timeline.ledger import Ledger, Taking
from rota.plan.timeline.shapes import Shape
from rota.pool_names import LOCAL, is_delegated


def impossible(world: World, spec: Spec) -> str | None:
    """Why no pool could ever run this; None: one could. Raises `BadInput` for unknown words, and for what a named
    pool has not."""
    if is_delegated(spec.pool):
        refuse_limits_of_hosts(world, spec)
        if could_delegate(world, spec):
            return None
        return f"never fits: the engine of pool '{spec.pool}' starts no runner that large or that long"
    if spec.pool == LOCAL and not world.settings.local:
        hint = "leave it out, or name another pool; see 'rota pool list'"
        raise BadInput(f"pool '{LOCAL}' is off", field="pool", hint=hint)
    if not spec.on_terms:
        why = world.placement.refusal(spec.size, spec.pool)
    else:
        try:
            refuse_unplannable(world, spec)
        except NeverFits as error:
            why = error.message
        else:
            why = None
    if why is None or spec.pool or not world.settings.pools:
        return why
    # The engine of another pool may have larger hosts than any that is known here.
    return None if could_delegate(world, spec) else f"{why}, and no other pool starts a runner for it"


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
    for name in ("where", "prefer"):
        if expression := getattr(spec, name):
            with _named_field(name):
                site.matching(expression)
    if not site.count:
        return
    if spec.gang_same and spec.gang_same not in site.kinds:
        known = ", ".join(sorted(site.kinds))
        raise BadInput(f"there is no property '{spec.gang_same}'", field="gang_same", hint=f"properties: {known}")
    if spec.force_host:
        if spec.force_host not in site.hosts:
            raise BadInput(
                f"there is no host '{spec.force_host}'", field="force_host", hint="see 'rota node list'"
            )
        return  # whatever the request says
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
