"""What the members of a gang that begins are given: all of them are leased in one decision, or none is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rota.plan.dispatch.allocation import given, only_held
from rota.plan.need import LimitUse, Need
from rota.plan.placement.explanation import Planned
from rota.plan.placement.given import Given
from rota.plan.placement.queue import GangOffer
from rota.plan.policy.gang_limits import taken_together
from rota.plan.policy.limits import Limits
from rota.plan.schedule import waiting_gang
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import Begin, PlanEntry


class MemberGrant(NamedTuple):
    """What one member is given."""

    job: int
    host: str | None  #: that it begins on; None: its resources are on no host
    at: str | None  #: the host that its command runs on instead; empty: it has none to run
    gives: Given
    need: Need  #: what it takes of that host


def grants_of(
    plan: Plan, begin: Begin, offer: GangOffer, runs_at: Callable[[int], str | None]
) -> list[MemberGrant]:
    """What each member is given, in input order. Raises `NotFound` as `runs_at` does."""
    found = []
    for entry, member in zip(begin.members, offer.members, strict=True):
        need = member.need
        gives, host = given(plan, entry, need)
        at = runs_at(entry.id)
        if at is not None:
            gives, host = only_held(gives), at or host
        takes = Need(gives.size, need.limits, need.terms, need.pool, need.walltime_s)
        found.append(MemberGrant(entry.id, host, at, gives, takes))
    return found


def is_stopped(limits: Limits, offer: GangOffer) -> bool:
    """Does a limit keep the members back in a way that no end of a job can change?"""
    return limits.stopped(uses_of(limits, offer)) is not None


def uses_of(limits: Limits, offer: GangOffer) -> tuple[LimitUse, ...]:
    """What the members take of limits together."""
    return taken_together(limits, (member.need.limits for member in offer.members))


def is_kept(limits: Limits, offer: GangOffer) -> bool:
    """Do limits of the site keep the members from beginning together now?"""
    return is_stopped(limits, offer) or _lack(limits, [(member.need.limits, "") for member in offer.members])


def are_kept(limits: Limits, grants: list[MemberGrant]) -> bool:
    """Do limits keep them from beginning together on these hosts now?"""
    if any(limits.stopped(each.need.limits) is not None for each in grants):
        return True
    return _lack(limits, [(each.need.limits, each.host or "") for each in grants])


def _lack(limits: Limits, uses: list[tuple[tuple[LimitUse, ...], str]]) -> bool:
    """Have limits too few units for all of these together?"""
    taken: list[tuple[tuple[LimitUse, ...], str]] = []
    for each in uses:
        if limits.missing(*each):
            break
        limits.take(*each)
        taken.append(each)
    for each in taken:
        limits.give(*each)
    return len(taken) < len(uses)


def planned_member(plan: Plan, entry: PlanEntry, job: int) -> Planned:
    """What is planned for one member of a waiting gang."""
    if entry.start is None or not entry.parts or entry.ask.gang is None:
        return Planned(entry.start, entry.end, "")
    at = entry.jobs.index(job)
    ask = entry.ask.gang.members[at].ask
    alternative = ask.alternatives[waiting_gang.chosen(entry.ask.gang, entry.alternative)[at]]
    walltime = alternative.walltime_s or plan.queue(ask.queue).walltime_s
    length = ask.before_s + (walltime or ask.time_s) + ask.after_s
    return Planned(entry.start, entry.start + length, plan.site.spans(entry.parts[at]))
