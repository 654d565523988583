"""Hosts that may not be used now: how they are named to users, and the command that brings them back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from rota.plan.ask import Gang
from rota.plan.language.hostlist import fold
from rota.plan.language.request import Alternative
from rota.plan.reasons import Waits
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import PlanEntry
from rota.plan.site.resources import ASLEEP, DRAINED, LEAVING, Site
from rota.plan.timeline.gang_shape import GangShape, as_gang
from rota.plan.timeline.shapes import Shape

#: How many hosts or jobs are listed by name.
NAMED: Final = 5
#: Words of `Site.away` for machines that their condition keeps jobs from.
CONDITIONS: Final = frozenset({"manual", "broken", "removed"})


def away_hosts(site: Site, hosts: list[str]) -> Waits:
    """These hosts may not be used now: why, and what would change that."""
    words = {host: site.away.get(host, "") for host in hosts}
    more = f" and {len(hosts) - NAMED} more may not" if len(hosts) > NAMED else ""
    hint = _undone(site, {host: why for host, why in words.items() if why not in ("", ASLEEP)})
    if words and all(why in CONDITIONS for why in words.values()):
        said = f"no machine that it could use is automated: {away_text(site, hosts[:NAMED])}{more}"
        return Waits("condition", said, hint=hint)
    said = f"too few of the resources it asks for may be used now: {away_text(site, hosts[:NAMED])}{more}"
    return Waits("no_resources", said, hint=hint)


def away_text(site: Site, hosts: Iterable[str]) -> str:
    """Why each of these hosts may not be used."""
    return ", ".join(
        (f"{host} is {why}" if (why := site.away.get(host, "")) else f"{host} may not")
        + (f" ({said})" if (said := site.reasons.get(host)) else "")
        for host in hosts
    )


def _undone(site: Site, words: dict[str, str]) -> str:
    """The command that brings hosts back: first for hosts that were drained or marked, then for missing agents."""
    recorded = {host: why for host, why in words.items() if host not in site.silent}
    if recorded:
        said = next(iter(recorded.values()))
        alike = quoted(host for host, why in recorded.items() if why == said)
        if said in CONDITIONS:
            return f"rota node set {alike} --condition automated"
        return f"rota node set {alike} {'--no-drain' if said == DRAINED else '--state alive'}"
    startable = [host for host, why in words.items() if site.silent[host] and why != LEAVING]
    if startable:
        return f"rota node add {quoted(startable)}, or see 'rota node show {startable[0]}'"
    return f"rota node show {next(iter(words))}" if words else ""


def quoted(hosts: Iterable[str]) -> str:
    """These hosts as one shell word."""
    names = fold(hosts)
    return f"'{names}'" if "[" in names else names


def listed(hosts: Sequence[str]) -> str:
    """These hosts, folded if they are many."""
    return ", ".join(hosts) if len(hosts) <= NAMED else fold(hosts)


def nowhere(plan: Plan, entry: PlanEntry, reason: Waits) -> Waits:
    """Why a job fits nowhere: if it would fit with all hosts usable, those hosts; otherwise this reason."""
    site = plan.site
    away = site.everything & ~site.usable
    if plan.counted or not away:
        return reason
    if entry.ask.gang is not None:
        asked = _gang_would_have(plan, entry, entry.ask.gang)
        return away_hosts(site, site.hosts_of(away & asked)) if away & asked else reason
    taking, short = entry.taking, None
    if taking is not None:

        def short(mask: int) -> int:
            return plan.ledger.never(taking, mask)

    for alternative in entry.ask.alternatives:
        if _fits(plan, alternative, short):
            asked = 0
            for group in alternative.groups:
                asked |= site.still_matching(group.where, group.pool)
            return away_hosts(site, site.hosts_of(away & asked or away))
    return reason


def _gang_would_have(plan: Plan, entry: PlanEntry, gang: Gang) -> int:
    """The resources that a gang could have if all hosts were usable; 0: it would not fit even then."""
    everything = plan.site.everything
    for option in entry.options:
        terms = as_gang(option.shape).terms
        members = tuple(
            replace(its, within=plan.site.hosts.get(member.ask.force_host, everything))
            for its, member in zip(terms.members, gang.members, strict=True)
        )
        shape = GangShape(replace(terms, members=members), plan.site, within=everything)
        if shape.possible:
            return shape.eligible
    return 0


def _fits(plan: Plan, alternative: Alternative, short: object) -> bool:
    shape = Shape(alternative, plan.site, within=plan.site.everything)
    return bool(shape.choose(plan.site.everything, short))  # type: ignore[arg-type]
