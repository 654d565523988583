"""The texts for each cause: code, sentence, the jobs in the way, and a command that would help."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rota.plan.explain.causes import Causes, FoundCause
from rota.plan.explain.trials import (
    ASLEEP,
    AWAY,
    DEADLINE,
    DEPENDENCY,
    EXPIRE,
    HOURS,
    POSTPONE,
    UNTIL,
    WALLTIME,
)
from rota.plan.planner import sleeping_hosts
from rota.plan.reasons import Cause, Waits
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import RUNNING, PlanEntry
from rota.plan.schedule.unusable_hosts import NAMED, away_hosts, listed, quoted
from rota.plan.site.resources import Site
from rota.units import about_duration, format_duration

#: How many blockers are listed.
MOST: Final = 100
_MINUTE: Final = 60.0
_HOUR: Final = 3600.0


def told(causes: Causes, each: FoundCause, then: str) -> list[Waits]:
    """The reasons for one cause; `then`: when and where the job is planned to begin."""
    entry = causes.entry
    match each.kind:
        case "dependency":
            said = "it waits for job {}"
            return [
                Waits("dependency", said.format(id) + then, blockers=(id,), causes=(Cause(DEPENDENCY, str(id)),))
                for id in sorted(entry.after)
            ]
        case "postpone":
            left = (entry.ask.types.postpone or 0.0) - causes.plan.now
            said = f"postponed: it may begin in {about_duration(left)} at the earliest (type postpone)"
            return [Waits("delayed", said + then, causes=(Cause(POSTPONE),))]
        case "walltime":
            return [_walltime(causes, each, then)]
        case "quota":
            return [_quota(causes, each, then)]
        case "limit":
            return [_limit(causes, each, then)]
        case "jobs":
            return [held(entry, each.jobs, then)]
        case "asleep":
            found = sleeping_hosts.why(causes.plan, entry)
            if found is None:
                sleep = "sleeps" if len(each.hosts) == 1 else "sleep"
                found = Waits("asleep", f"{listed(each.hosts)} {sleep}, and would wake no sooner{then}")
            return [found._replace(causes=tuple(Cause(ASLEEP, host) for host in each.hosts))]
        case "available_until":
            return [_until(causes, each, then)]
        case "hours":
            return [_hours(causes, each, then)]
        case "away":
            found = away_hosts(causes.plan.site, list(each.hosts))
            return [found._replace(causes=tuple(Cause(AWAY, host) for host in each.hosts))]
        case "deadline":
            said = f"no start lets it end before its deadline{then}"
            return [Waits("resources", said, causes=(Cause(DEADLINE),))]
    return [Waits("resources", f"no start is possible before it expires{then}", causes=(Cause(EXPIRE),))]


# ------------------------------------------------------------------ jobs in the way


def held(entry: PlanEntry, holders: Iterable[PlanEntry], then: str) -> Waits:
    """It waits for these jobs to end; the last of them is named."""
    some = sorted(holders, key=lambda other: (-(other.end or 0.0), other.id))
    last = [other for other in some if other.end == some[0].end]
    code, what = _kind(entry, last[0])
    ids = sorted(other.id for other in last)
    end = f"{'job' if len(ids) == 1 else 'jobs'} {ids_text(ids)} {'ends' if len(ids) == 1 else 'end'}"
    blockers = (*ids, *(other.id for other in some[len(last) :]))  # the last to end are the first of `some`
    causes = tuple(Cause("job", str(id)) for id in blockers)
    return Waits(code, f"waits for {what} until {end}{then}", blockers=blockers[:MOST], causes=causes)


def _kind(entry: PlanEntry, other: PlanEntry) -> tuple[str, str]:
    """The code, and in words what the other job holds."""
    if entry.home:
        return "container", f"resources in container {entry.home}"
    if other.ask.types.placeholder:
        return "placeholder", f"resources that placeholder '{other.ask.types.placeholder}' keeps"
    if other.fixed and other.state != RUNNING:
        return "reservation", "reserved resources"
    return "resources", "resources"


def ids_text(ids: Sequence[int]) -> str:
    """The first of these jobs, and how many more there are."""
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return ", ".join(map(str, ids[:NAMED])) + more


# ------------------------------------------------------------------ no walltime


def _walltime(causes: Causes, each: FoundCause, then: str) -> Waits:
    plan, entry = causes.plan, causes.entry
    begins, end = each.found.start, each.found.start + each.length
    left = about_duration(max(0.0, end - plan.now))
    hint = f"rota modify {entry.id} --walltime {_shorter(each.length)}"
    at_once = "now" if begins <= plan.now else f"in {about_duration(begins - plan.now)}"
    could = f"with a walltime of at most {about_duration(each.length)} it could begin {at_once}"
    ids = sorted(other.id for other in each.jobs)
    if ids:
        code, one = "reservation", len(ids) == 1
        what = (
            f"{'reservation' if one else 'reservations'} {ids_text(ids)} {'begins' if one else 'begin'} in {left}"
        )
    elif each.hosts and _is_until(plan, each.hosts, end):
        code, what = UNTIL, f"{listed(each.hosts)} may not be used any more in {left} (--available-until)"
    elif each.hosts:
        code, what = "window", f"the hours of {listed(each.hosts)} end in {left}"
    else:
        ids = sorted(plan.reserved)
        code, what = "reservation", "what it needs is reserved" if ids else "hosts close"
    said = f"it has no walltime, and {what}: {could}{then}"
    named = (Cause(WALLTIME, f"{each.length:.6f}"),)
    return Waits(code, said, blockers=tuple(ids[:MOST]), hint=hint, causes=named)


def _shorter(length: float) -> str:
    """A walltime that still fits after the time it takes to type the command."""
    step = 5 * _MINUTE if length >= _HOUR else _MINUTE if length >= 10 * _MINUTE else 1.0
    slack = 5.0 if length > _MINUTE else 0.1 * length
    less = (length - slack) // step * step
    return format_duration(max(1.0, less))


def _is_until(plan: Plan, hosts: Iterable[str], moment: float) -> bool:
    site = plan.site
    return any(
        abs(until - moment) < 1e-3 and any(mask & site.hosts.get(host, 0) for host in hosts)
        for until, mask in site.until.items()
    )


# ------------------------------------------------------------------ quotas and limits


def _quota(causes: Causes, each: FoundCause, then: str) -> Waits:
    others = tuple(rule for rule in causes.trial.rules() if rule != each.rule)
    reason = causes.trial.place(rules=others).reason
    if reason is None or reason.code not in ("quota", "calendar"):
        code = "calendar" if each.rule is not None and each.rule.set else "quota"
        reason = Waits(code, f"quota {each.rule}", str(each.rule))
    return reason._replace(message=reason.message + then, causes=(Cause("quota", str(each.rule)),))


def _limit(causes: Causes, each: FoundCause, then: str) -> Waits:
    said = f"limit '{each.limit}' is in use, or planned for others before it{then}"
    holders = sorted(id for id in causes.plan.ledger.holders(each.limit) if id != causes.entry.id)
    return Waits("limit", said, each.limit, blockers=tuple(holders[:MOST]), causes=(Cause("limit", each.limit),))


# ------------------------------------------------------------------ hosts that may not be used


def _until(causes: Causes, each: FoundCause, then: str) -> Waits:
    """Hosts whose --available-until has passed, or comes before the job could end."""
    plan = causes.plan
    hosts = listed(each.hosts)
    left = max((until for until, mask in plan.site.until.items() if _of(plan.site, each.hosts, mask)), default=0.0)
    left -= plan.now
    one = len(each.hosts) == 1
    if left <= 0:
        said = f"{hosts} may not be used any more: {'its' if one else 'their'} --available-until is over"
    else:
        length = max((option.length for option in causes.entry.options), default=0.0)
        said = (
            f"it would take {about_duration(length)}, and {hosts} may not be used any more "
            f"in {about_duration(left)} (--available-until)"
        )
    hint = f"rota node set {quoted(each.hosts)} --available-until never"
    return Waits(UNTIL, said + then, hint=hint, causes=tuple(Cause(UNTIL, host) for host in each.hosts))


def _hours(causes: Causes, each: FoundCause, then: str) -> Waits:
    plan = causes.plan
    closed = plan.closed_at(plan.now)
    hosts = [host for host in each.hosts if plan.site.hosts[host] & closed]
    said = (
        f"outside the hours of {listed(hosts)}"
        if hosts
        else f"it does not fit within the hours of {listed(each.hosts)}"
    )
    return Waits(
        "window", said + then, hint="rota node list", causes=tuple(Cause(HOURS, host) for host in each.hosts)
    )


def _of(site: Site, hosts: Iterable[str], mask: int) -> bool:
    return any(site.hosts[host] & mask for host in hosts)
