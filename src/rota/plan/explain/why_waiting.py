"""Why a job that is in the plan does not run yet: what holds it up, who, and until when. Changes nothing."""

from __future__ import annotations

from math import inf

from rota.plan.explain import causes
from rota.plan.explain.cause_texts import MOST, away_hosts, held, told
from rota.plan.explain.rivals import is_its_turn, rivals, with_rivals
from rota.plan.language.hostlist import fold
from rota.plan.language.request import Alternative
from rota.plan.planner import waking
from rota.plan.planner.endangered import danger
from rota.plan.planner.entry import Entry
from rota.plan.planner.planner import Planner
from rota.plan.planner.shortfall import count_missing, missing_now
from rota.plan.reasons import Cause, Waits
from rota.plan.site.bitset import positions
from rota.plan.timeline.shapes import Shape
from rota.units import about_duration


def why(planner: Planner, entry: Entry) -> list[Waits]:
    """What keeps a waiting job from beginning now, the strongest reason first."""
    if entry.fixed:
        return [_reserved(planner, entry)]
    if _is_tried(planner, entry) and (found := _causes(planner, entry)):
        return found
    if entry.start is None:
        return [_unplanned(planner, entry)]
    return _planned(planner, entry)


def _reserved(planner: Planner, entry: Entry) -> Waits:
    """Its time has not come or, if it has, something of what it was granted is missing."""
    due = entry.start is not None and entry.start <= planner.now and not planner.counted
    site = planner.site
    away = site.hosts_of(entry.resources & ~site.usable & ~site.asleep)
    hint = (away_hosts(site, away).hint if away else "") or "rota node list"
    if due and (lacks := count_missing(planner, entry)):
        left = (entry.start or 0.0) + planner.patience_s - planner.now
        then = f"it begins with the others in {about_duration(left)}"
        if entry.end is not None and entry.end <= planner.now + max(0.0, left):
            then = f"if they do not come back it fails in {about_duration(max(0.0, entry.end - planner.now))}"
        elif left <= 0:
            then = "it waits for one of them"
        elif missing_now(planner, entry) == entry.resources:
            then = f"it waits for them, and after {about_duration(left)} one of them is enough"
        return Waits("reservation", f"its time has come, but {lacks}; {then}", hint=hint)
    said = f"reserved: {_when(planner, entry)}{_where(planner, entry)}"
    if not (missing := danger(planner, entry)):
        return Waits("reservation", said)
    return Waits("reservation", f"{said}; in danger: {missing}", hint=hint)


def _is_tried(planner: Planner, entry: Entry) -> bool:
    """Is it found out by trial what keeps it? Not where it is plain."""
    if entry.trouble is not None or (entry.start is not None and entry.start <= planner.now):
        return False
    return causes.may_try(planner, entry)


def _causes(planner: Planner, entry: Entry) -> list[Waits]:
    """All without which it would begin earlier."""
    looked = causes.Causes(planner, entry)
    beyond = entry.start is None and _ahead(planner, entry) and not is_its_turn(planner, entry)
    if beyond and looked.start < inf:
        return [_not_its_turn(planner, entry)]
    blamed, together = looked.blamed()
    then = "" if entry.start is None else f"; {_when(planner, entry)}{_where(planner, entry)}"
    found: list[Waits] = []
    for each in blamed:
        found += told(looked, each, then)
        then = ""
    if beyond and found:
        found.append(_not_its_turn(planner, entry))
        together = True
    if together:
        found[1:] = [_with(each, f"also: {each.message}") for each in found[1:]]
        first = rivals(planner, entry, [cause for each in found for cause in each.causes])
        return [*found, *first]
    return [with_rivals(planner, entry, each) for each in found]


def _planned(planner: Planner, entry: Entry) -> list[Waits]:
    """The same, as far as it can be seen without a trial."""
    when = _when(planner, entry)
    found = [] if entry.reason is None else [_with(entry.reason, f"{entry.reason.message}; {when}")]
    for parent in sorted(entry.after):
        found.append(Waits("dependency", f"it waits for job {parent}; {when}", blockers=(parent,)))
    postpone = entry.ask.types.postpone
    if postpone is not None and postpone > planner.now:
        found.append(Waits("delayed", f"postponed; {when}"))
    if not found or (postpone is not None and (entry.start or 0.0) > postpone > planner.now):
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
    reason = entry.trouble or entry.reason
    if reason is None:
        return _not_its_turn(planner, entry)
    if reason.code in ("unsatisfiable", "no_resources"):
        return nowhere(planner, entry, reason)
    if reason.code == "dependency" and entry.after:
        return reason._replace(blockers=tuple(sorted(entry.after)))
    if reason.code == "container":
        homes = [each.id for each in planner.containers(entry.ask.types.inner) if each is not entry]
        return reason._replace(blockers=tuple(sorted(homes))[:MOST]) if homes else reason
    if reason.code == "reservation" and planner.reserved:
        return reason._replace(blockers=tuple(sorted(planner.reserved))[:MOST])
    return reason


def _not_its_turn(planner: Planner, entry: Entry) -> Waits:
    """Where not everybody has a planned start."""
    if entry.ask.types.besteffort or planner.everybody_planned(entry):
        return Waits("resources", "no start was found for it")
    queue = entry.ask.queue
    ahead = _ahead(planner, entry)
    before = f"{len(ahead):,} {'job is' if len(ahead) == 1 else 'jobs are'} before it; " if ahead else ""
    how = planner.queue(queue).backfill
    return Waits(
        "beyond_plan",
        f"{before}queue '{queue}' (backfill {how}) plans no further than its first waiting job",
        blockers=tuple(ahead[:MOST]),
        causes=tuple(Cause("job", str(id)) for id in ahead),
    )


def _ahead(planner: Planner, entry: Entry) -> list[int]:
    """Who goes first, where not everybody has a planned start."""
    if entry.ask.types.besteffort or planner.everybody_planned(entry):
        return []
    return [each.id for klass in planner.classes for each in klass.line if each.rank < entry.rank]


def nowhere(planner: Planner, entry: Entry, reason: Waits) -> Waits:
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
    return held(entry, holders, f"; {when}{where}")


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
