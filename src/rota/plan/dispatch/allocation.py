"""Allocations: what a job that begins gets of which host, and for how long."""

from __future__ import annotations

from msgspec.structs import replace

from rota.plan.need import Need
from rota.plan.placement.given import Given, Promised
from rota.plan.planner.shortfall import missing_words
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import PlanEntry
from rota.plan.site.bitset import positions, spans_of
from rota.plan.size import CORE, Size


def given(plan: Plan, entry: PlanEntry, need: Need) -> tuple[Given, str | None]:
    """The allocation of a job that begins, and the host that it begins on; None: its resources are on no host."""
    site = plan.site
    nodes: dict[str, int] = {}
    for bit in positions(entry.resources):
        host = str(site.resources[bit].values.get("host"))
        nodes[host] = nodes.get(host, 0) + 1
    first = next(iter(nodes), None)
    resources, walltime_s = site.spans(entry.resources), _walltime(plan, entry)
    if not need.terms or first is None:
        return Given(need.size, resources, walltime_s=walltime_s), first
    mine = set(positions(entry.resources))
    cores = tuple(
        spans_of(at for at, bit in enumerate(positions(site.hosts[host])) if bit in mine) for host in nodes
    )
    size = need.size
    exact = Size(
        cpus=entry.ask.share or CORE * nodes[first],
        mem=size.mem,
        disk=size.disk,
        time_s=size.time_s,
        gpus=size.gpus,
    )
    return Given(exact, resources, cores[0], tuple(nodes.items()), walltime_s, cores), first


def with_promise(plan: Plan, entry: PlanEntry, gives: Given, ids: list[int]) -> Given:
    """The allocation, with what the reservation was granted (`ids`) if that was more."""
    if len(ids) <= entry.resources.bit_count() or plan.counted:
        return gives
    site = plan.site
    known = site.mask(id for id in ids if site.knows(id))
    nodes = tuple(site.hosts_of(known))
    gone = len(ids) - known.bit_count()
    words = missing_words(plan, entry, known & ~entry.resources)
    if gone:
        words.append(f"{gone} {'core is' if gone == 1 else 'cores are'} no longer there")
    return replace(gives, promised=Promised(len(ids), nodes, ", ".join(words)))


def only_held(gives: Given) -> Given:
    """The allocation of a job that runs elsewhere: it takes nothing of the host that it begins on."""
    size = Size(cpus=0, mem=0, disk=0, time_s=gives.size.time_s)
    return Given(
        size,
        gives.resources,
        nodes=gives.nodes,
        walltime_s=gives.walltime_s,
        elsewhere=True,
        promised=gives.promised,
    )


def _walltime(plan: Plan, entry: PlanEntry) -> float | None:
    """The walltime of a job that begins; None: it has none."""
    option, besides = entry.options[entry.alternative], entry.ask.before_s + entry.ask.after_s
    if not option.hard:
        return None
    if entry.fixed and entry.end is not None:
        # A reservation that begins late still ends on time.
        return max(1.0, entry.end - plan.now - besides)
    return option.length - besides
