"""Jobs whose groups do not say all about where they may be: gangs, and jobs that prefer or force hosts."""

from __future__ import annotations

from rota.plan.ask import Ask
from rota.plan.language.request import Alternative, ResourceGroup
from rota.plan.schedule import waiting_gang
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import Option, PlanEntry
from rota.plan.site.resources import Site
from rota.plan.timeline.gang_shape import GangShape, GangTerms, MemberTerms


def options(plan: Plan, entry: PlanEntry, usable: int) -> tuple[Option, ...]:
    """What such a job, or gang, may have on the present site."""
    ask, gang = entry.ask, entry.ask.gang
    if gang is None:
        return tuple(_option(plan, [(ask, at)], usable) for at in range(len(ask.alternatives)))
    asks = [member.ask for member in gang.members]
    numbers = tuple(len(each.alternatives) for each in asks)
    return tuple(
        _option(plan, list(zip(asks, some, strict=True)), usable, same=gang.same, share=gang.share)
        for some in waiting_gang.combinations_of(numbers)
    )


def _option(
    plan: Plan, chosen: list[tuple[Ask, int]], usable: int, *, same: str = "", share: bool = False
) -> Option:
    """The option in which each of these has this alternative."""
    members = tuple(member_terms(plan.site, ask, at, usable) for ask, at in chosen)
    terms = GangTerms(members, same, share)
    shape = plan.choosy_shapes.get(terms)
    if shape is None:
        shape = plan.choosy_shapes[terms] = GangShape(terms, plan.site, within=plan.site.everything)
    length, hard = 0.0, True
    for ask, at in chosen:
        walltime = ask.alternatives[at].walltime_s or plan.queue(ask.queue).walltime_s
        length = max(length, ask.before_s + (walltime or ask.time_s) + ask.after_s)
        hard = hard and walltime is not None
    return Option(shape, length, hard)


def member_terms(
    site: Site, ask: Ask, alternative: int, usable: int, *, forceable: int | None = None
) -> MemberTerms:
    """What one job asks for, and which resources it may have: of all, or of a host that it forces."""
    groups = ask.alternatives[alternative].groups
    within = usable
    if ask.force_host:
        groups = tuple(ResourceGroup(group.levels, host_cores=group.host_cores) for group in groups)
        within = site.hosts.get(ask.force_host, 0) & (site.forceable if forceable is None else forceable)
    return MemberTerms(Alternative(groups), ask.prefer, within)


def fits_empty(plan: Plan, entry: PlanEntry) -> bool:
    """Would a gang fit if all resources were free?"""
    assert entry.team is not None
    shapes = [option.shape for option in entry.options]
    if entry.taking is None:
        return any(shape.possible for shape in shapes)
    takings, ledger = entry.team.takings, plan.ledger

    def never(members: tuple[int, ...], mask: int) -> int:
        together: dict[str, int] = {}
        for at in members:
            for name, amount in (takings[at] or {}).items():
                together[name] = together.get(name, 0) + amount
        return ledger.never(together, mask) if together else 0

    everything = plan.site.everything
    return any(isinstance(shape, GangShape) and shape.parts(everything, never) for shape in shapes)
