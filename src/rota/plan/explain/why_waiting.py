"""Why a planned job does not run yet: what it waits for, which jobs hold it, and until when. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from operator import attrgetter
from typing import Final

from rota.plan.explain import causes, gang_reasons
from rota.plan.explain.capped_priority import caps_on_its_machines
from rota.plan.explain.cause_texts import MOST, held, told
from rota.plan.explain.fair_share_order import first_by_share
from rota.plan.explain.rivals import is_its_turn, rivals, with_rivals
from rota.plan.language.hostlist import fold
from rota.plan.planner import sleeping_hosts
from rota.plan.planner.endangered import danger
from rota.plan.planner.shortfall import count_missing, missing_now
from rota.plan.reasons import Cause, Waits
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import PlanEntry
from rota.plan.schedule.unusable_hosts import away_hosts, nowhere
from rota.plan.site.bitset import positions
from rota.units import about_duration

_ID: Final = attrgetter("id")
_END: Final = attrgetter("end")


def why(plan: Plan, entry: PlanEntry) -> list[Waits]:
    """What keeps a waiting job from beginning now, the strongest reason first."""
    return [*_reasons(plan, entry), *caps_on_its_machines(plan, entry), *first_by_share(plan, entry)]


def _reasons(plan: Plan, entry: PlanEntry) -> list[Waits]:
    if entry.fixed:
        return [_reserved(plan, entry)]
    if entry.team is not None:
        first = gang_reasons.why(plan, entry)
        others = [_unplanned(plan, entry)] if entry.start is None else _planned(plan, entry)
        return others if first is None else [first, *others]
    if _is_tried(plan, entry) and (found := _causes(plan, entry)):
        return found
    if entry.start is None:
        return [_unplanned(plan, entry)]
    return _planned(plan, entry)


def _reserved(plan: Plan, entry: PlanEntry) -> Waits:
    """A reservation waits for its time. If that has come, some of its resources are missing."""
    due = entry.start is not None and entry.start <= plan.now and not plan.counted
    site = plan.site
    away = site.hosts_of(entry.resources & ~site.usable & ~site.asleep)
    hint = (away_hosts(site, away).hint if away else "") or "rota node list"
    if due and (lacks := count_missing(plan, entry)):
        left = (entry.start or 0.0) + plan.patience_s - plan.now
        then = f"it begins with the others in {about_duration(left)}"
        if entry.end is not None and entry.end <= plan.now + max(0.0, left):
            then = f"if they do not come back it fails in {about_duration(max(0.0, entry.end - plan.now))}"
        elif left <= 0:
            then = "it waits for one of them"
        elif missing_now(plan, entry) == entry.resources:
            then = f"it waits for them, and after {about_duration(left)} one of them is enough"
        return Waits("reservation", f"its time has come, but {lacks}; {then}", hint=hint)
    said = f"reserved: {_when(plan, entry)}{_where(plan, entry)}"
    if not (missing := danger(plan, entry)):
        return Waits("reservation", said)
    return Waits("reservation", f"{said}; in danger: {missing}", hint=hint)


def _is_tried(plan: Plan, entry: PlanEntry) -> bool:
    """Are trials needed to find what it waits for, and possible?"""
    if entry.trouble is not None or (entry.start is not None and entry.start <= plan.now):
        return False
    return causes.may_try(plan, entry)


def _causes(plan: Plan, entry: PlanEntry) -> list[Waits]:
    """The reasons that trials find."""
    looked = causes.Causes(plan, entry)
    beyond = entry.start is None and _ahead(plan, entry) and not is_its_turn(plan, entry)
    if beyond and looked.start < inf:
        return [_not_its_turn(plan, entry)]
    blamed, together = looked.blamed()
    then = "" if entry.start is None else f"; {_when(plan, entry)}{_where(plan, entry)}"
    found: list[Waits] = []
    for each in blamed:
        found += told(looked, each, then)
        then = ""
    if beyond and found:
        found.append(_not_its_turn(plan, entry))
        together = True
    if together:
        found[1:] = [_with(each, f"also: {each.message}") for each in found[1:]]
        first = rivals(plan, entry, [cause for each in found for cause in each.causes])
        return [*found, *first]
    return [with_rivals(plan, entry, each) for each in found]


def _planned(plan: Plan, entry: PlanEntry) -> list[Waits]:
    """The reasons that are known without a trial, for a job with a planned start."""
    when = _when(plan, entry)
    found = [] if entry.reason is None else [_with(entry.reason, f"{entry.reason.message}; {when}")]
    for parent in sorted(entry.after):
        found.append(Waits("dependency", f"it waits for job {parent}; {when}", blockers=(parent,)))
    postpone = entry.ask.types.postpone
    if postpone is not None and postpone > plan.now:
        found.append(Waits("delayed", f"postponed; {when}"))
    if not found or (postpone is not None and (entry.start or 0.0) > postpone > plan.now):
        found.append(_held_up(plan, entry, when))
    return found


def _when(plan: Plan, entry: PlanEntry) -> str:
    assert entry.start is not None
    left = entry.start - plan.now
    return f"planned to begin in {about_duration(left)}" if left > 0 else "it is about to begin"


def _where(plan: Plan, entry: PlanEntry) -> str:
    return "" if plan.counted or not entry.resources else f" on resources {plan.site.spans(entry.resources)}"


def _with(reason: Waits, message: str) -> Waits:
    return reason._replace(message=message)


# ------------------------------------------------------------------ no planned start


def _unplanned(plan: Plan, entry: PlanEntry) -> Waits:
    reason = entry.trouble or entry.reason
    if reason is None:
        return _not_its_turn(plan, entry)
    if reason.code in ("unsatisfiable", "no_resources"):
        return nowhere(plan, entry, reason)
    if reason.code == "dependency" and entry.after:
        return reason._replace(blockers=tuple(sorted(entry.after)))
    if reason.code == "container":
        homes = [each.id for each in plan.containers(entry.ask.types.inner) if each is not entry]
        return reason._replace(blockers=tuple(sorted(homes))[:MOST]) if homes else reason
    if reason.code == "reservation" and plan.reserved:
        return reason._replace(blockers=tuple(sorted(plan.reserved))[:MOST])
    return reason


def _not_its_turn(plan: Plan, entry: PlanEntry) -> Waits:
    """The reason of a job that its queue does not plan yet."""
    if entry.ask.types.besteffort or plan.plans_all(entry):
        return Waits("resources", "no start was found for it")
    queue = entry.ask.queue
    ahead = _ahead(plan, entry)
    before = f"{len(ahead):,} {'job is' if len(ahead) == 1 else 'jobs are'} before it; " if ahead else ""
    how = plan.queue(queue).backfill
    return Waits(
        "beyond_plan",
        f"{before}queue '{queue}' (backfill {how}) plans no further than its first waiting job",
        blockers=tuple(ahead[:MOST]),
        causes=tuple(Cause("job", str(id)) for id in ahead),
    )


def _ahead(plan: Plan, entry: PlanEntry) -> list[int]:
    """The jobs that go first, if its queue plans only the first; otherwise empty."""
    if entry.ask.types.besteffort or plan.plans_all(entry):
        return []
    return [each.id for klass in plan.classes for each in klass.jobs if each.rank < entry.rank]


# ------------------------------------------------------------------ a planned start, but not now


def _held_up(plan: Plan, entry: PlanEntry, when: str) -> Waits:
    """The jobs that hold its resources until it begins."""
    assert entry.start is not None
    if (asleep := sleeping_hosts.why(plan, entry)) is not None:
        return asleep
    holders = _holders(plan, entry)
    where = _where(plan, entry)
    if not holders and (closed := plan.site.hosts_of(plan.closed_at(plan.now) & entry.resources)):
        return Waits("window", f"outside the hours of {fold(closed)}; {when}{where}")
    if not holders:
        return Waits("container" if entry.home else "resources", f"{when}{where}")
    return held(entry, holders, f"; {when}{where}")


def _holders(plan: Plan, entry: PlanEntry) -> list[PlanEntry]:
    """The jobs that begin before this one and end before it begins, on its resources or else on its hosts: the
    last to end, as many as are named."""
    start, now, counted, resources = entry.start, plan.now, plan.counted, entry.resources
    assert start is not None
    # All jobs of the plan are looked at: nothing is called for each.
    before = [
        other
        for other in plan.entries.values()
        if (begin := other.start) is not None and begin < start and now < (other.end or 0.0) <= start
    ]
    before.sort(key=_ID)
    before.sort(key=_END, reverse=True)
    there = (other for other in before if (counted or other.resources & resources) and _may_hold(entry, other))
    return _named(there) or _named(
        other for other in before if _may_hold(entry, other) and _same_hosts(plan, entry, other)
    )


def _named(holders: Iterator[PlanEntry]) -> list[PlanEntry]:
    """Those that end last, and others up to as many as are named at all."""
    found: list[PlanEntry] = []
    for other in holders:
        if len(found) >= MOST and other.end != found[0].end:
            break
        found.append(other)
    return found


def _may_hold(entry: PlanEntry, other: PlanEntry) -> bool:
    """Is it neither its container nor a besteffort job, which holds up only other besteffort jobs?"""
    return other.id != entry.home and (entry.ask.types.besteffort or not other.ask.types.besteffort)


def _same_hosts(plan: Plan, entry: PlanEntry, other: PlanEntry) -> bool:
    """Do both take memory or the like of the same hosts?"""
    if entry.taking is None or other.taking is None or not entry.taking.keys() & other.taking.keys():
        return False
    hosts = {plan.site.resources[bit].values.get("host") for bit in positions(entry.resources)}
    return any(host in hosts for host in plan.site.hosts_of(other.resources))
