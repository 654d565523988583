"""Why a job that is in the plan does not run yet: what holds it up, who, and until when. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from rota.plan import waking
from rota.plan.bits import positions
from rota.plan.entry import RUNNING, Entry
from rota.plan.hostlist import fold
from rota.plan.placement import Waits
from rota.plan.request import Alternative
from rota.plan.resources import ASLEEP, DRAINED, LEAVING, Site
from rota.plan.shapes import Shape
from rota.units import about_duration

if TYPE_CHECKING:
    from rota.plan.planner import Planner

#: Of many blockers, and of many names, only so many are named.
_MOST: Final = 100
_NAMED: Final = 5


def why(planner: Planner, entry: Entry) -> list[Waits]:
    """What keeps a waiting job from beginning now, the strongest reason first."""
    if entry.start is None:
        return [_unplanned(planner, entry)]
    when = _when(planner, entry)
    if entry.fixed:
        return [Waits("reservation", f"reserved: {when}{_where(planner, entry)}")]
    found = [] if entry.reason is None else [_with(entry.reason, f"{entry.reason.message}; {when}")]
    for parent in sorted(entry.after):
        found.append(Waits("dependency", f"it waits for job {parent}; {when}", blockers=(parent,)))
    postpone = entry.ask.types.postpone
    if postpone is not None and postpone > planner.now:
        found.append(Waits("delayed", f"postponed; {when}"))
    if not found or (postpone is not None and entry.start > postpone > planner.now):
        found.append(_held_up(planner, entry, when))
    return found


def _when(planner: Planner, entry: Entry) -> str:
    assert entry.start is not None
    left = entry.start - planner.now
    return f"planned to begin in {about_duration(left)}" if left > 0 else "it is about to begin"


def _where(planner: Planner, entry: Entry) -> str:
    return "" if planner.counted or not entry.resources else f" on resources {planner.site.spans(entry.resources)}"


def _with(reason: Waits, message: str) -> Waits:
    return reason._replace(message=message)


# ------------------------------------------------------------------ no planned start


def _unplanned(planner: Planner, entry: Entry) -> Waits:
    reason = entry.reason
    if reason is None:
        return _not_its_turn(planner, entry)
    if reason.code in ("unsatisfiable", "no_resources"):
        return _nowhere(planner, entry, reason)
    if reason.code == "dependency" and entry.after:
        return reason._replace(blockers=tuple(sorted(entry.after)))
    if reason.code == "container":
        homes = [each.id for each in planner.containers(entry.ask.types.inner) if each is not entry]
        return reason._replace(blockers=tuple(sorted(homes))[:_MOST]) if homes else reason
    if reason.code == "reservation" and planner.reserved:
        return reason._replace(blockers=tuple(sorted(planner.reserved))[:_MOST])
    return reason


def _not_its_turn(planner: Planner, entry: Entry) -> Waits:
    """Where not everybody has a planned start."""
    if entry.ask.types.besteffort or planner.everybody_planned(entry):
        return Waits("resources", "no start was found for it")
    queue = entry.ask.queue
    ahead = [each.id for klass in planner.classes for each in klass.line if each.rank < entry.rank]
    before = f"{len(ahead):,} {'job is' if len(ahead) == 1 else 'jobs are'} before it; " if ahead else ""
    how = planner.queue(queue).backfill
    return Waits(
        "beyond_plan",
        f"{before}queue '{queue}' (backfill {how}) plans no further than its first waiting job",
        blockers=tuple(ahead[:_MOST]),
    )


def _nowhere(planner: Planner, entry: Entry, reason: Waits) -> Waits:
    """It may only be that too many hosts cannot be used now."""
    site = planner.site
    away = site.everything & ~site.usable
    if planner.counted or not away:
        return reason
    taking, short = entry.taking, None
    if taking is not None:

        def short(mask: int) -> int:
            return planner.ledger.never(taking, mask)

    for alternative in entry.ask.alternatives:
        if _fits(planner, alternative, short):
            asked = 0
            for group in alternative.groups:
                asked |= site.matching(group.where)
            return away_hosts(site, site.hosts_of(away & asked or away))
    return reason


def away_hosts(site: Site, hosts: list[str]) -> Waits:
    """These hosts may not be used now: why, and what would change that."""
    words = {host: site.away.get(host, "") for host in hosts}
    named = ", ".join(
        (f"{host} is {why}" if why else f"{host} may not")
        + (f" ({said})" if (said := site.reasons.get(host)) else "")
        for host, why in list(words.items())[:_NAMED]
    )
    more = f" and {len(hosts) - _NAMED} more may not" if len(hosts) > _NAMED else ""
    hint = _undone(site, {host: why for host, why in words.items() if why not in ("", ASLEEP)})
    return Waits("no_resources", f"too few of the resources it asks for may be used now: {named}{more}", hint=hint)


def _undone(site: Site, words: dict[str, str]) -> str:
    """What would let hosts be used: first those about which somebody decided, then those that miss their agent."""
    recorded = {host: why for host, why in words.items() if host not in site.silent}
    if recorded:
        said = next(iter(recorded.values()))
        alike = _quoted(host for host, why in recorded.items() if why == said)
        return f"rota node set {alike} {'--no-drain' if said == DRAINED else '--state alive'}"
    startable = [host for host, why in words.items() if site.silent[host] and why != LEAVING]
    if startable:
        return f"rota node add {_quoted(startable)}, or see 'rota node show {startable[0]}'"
    return f"rota node show {next(iter(words))}" if words else ""


def _quoted(hosts: Iterable[str]) -> str:
    """These hosts as a word of a shell."""
    names = fold(hosts)
    return f"'{names}'" if "[" in names else names


def _fits(planner: Planner, alternative: Alternative, short: object) -> bool:
    shape = Shape(alternative, planner.site, within=planner.site.everything)
    return bool(shape.choose(planner.site.everything, short))  # type: ignore[arg-type]


# ------------------------------------------------------------------ a planned start, but not now


def _held_up(planner: Planner, entry: Entry, when: str) -> Waits:
    """Who holds, until it begins, what it will be given."""
    assert entry.start is not None
    if (asleep := waking.why(planner, entry)) is not None:
        return asleep
    before = [other for other in planner.entries.values() if _goes_before(planner, entry, other)]
    holders = [other for other in before if planner.counted or other.resources & entry.resources]
    holders = holders or [other for other in before if _same_hosts(planner, entry, other)]
    holders.sort(key=lambda other: (-(other.end or 0.0), other.id))  # who stays longest first
    where = _where(planner, entry)
    if not holders and (closed := planner.site.hosts_of(planner.closed_at(planner.now) & entry.resources)):
        return Waits("window", f"outside the hours of {fold(closed)}; {when}{where}")
    if not holders:
        return Waits("container" if entry.home else "resources", f"{when}{where}")
    last = [other for other in holders if other.end == holders[0].end]
    code, what = _kind(entry, last[0])
    ids = sorted(other.id for other in last)
    shown = ", ".join(map(str, ids[:_NAMED])) + (f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else "")
    end = f"{'job' if len(ids) == 1 else 'jobs'} {shown} {'ends' if len(ids) == 1 else 'end'}"
    blockers = [*ids, *(other.id for other in holders if other not in last)]
    return Waits(code, f"waits for {what} until {end}; {when}{where}", blockers=tuple(blockers[:_MOST]))


def _goes_before(planner: Planner, entry: Entry, other: Entry) -> bool:
    """Does it hold anything until this one begins, or less long?"""
    assert entry.start is not None
    if other is entry or other.id == entry.home or other.start is None or (other.end or 0.0) <= planner.now:
        return False
    if other.start >= entry.start or (other.end or 0.0) > entry.start:
        return False
    return not other.ask.types.besteffort or entry.ask.types.besteffort


def _same_hosts(planner: Planner, entry: Entry, other: Entry) -> bool:
    """Do both take of the same hosts' memory and the like?"""
    if entry.taking is None or other.taking is None or not entry.taking.keys() & other.taking.keys():
        return False
    hosts = {planner.site.resources[bit].values.get("host") for bit in positions(entry.resources)}
    return any(host in hosts for host in planner.site.hosts_of(other.resources))


def _kind(entry: Entry, other: Entry) -> tuple[str, str]:
    """Code, and in words what it is that another one has."""
    if entry.home:
        return "container", f"resources in container {entry.home}"
    if other.ask.types.placeholder:
        return "placeholder", f"resources that placeholder '{other.ask.types.placeholder}' keeps"
    if other.fixed and other.state != RUNNING:
        return "reservation", "reserved resources"
    return "resources", "resources"
