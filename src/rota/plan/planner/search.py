"""The search for a place: which alternative of a job ends first, beside all that is held and within every rule."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nextafter
from typing import Final

from rota.plan.ask import Ask
from rota.plan.planner import choosy_jobs
from rota.plan.planner.sleeping_hosts import ready_times
from rota.plan.policy.quota_rules import quota_subject
from rota.plan.policy.quotas import Refusal
from rota.plan.reasons import Waits
from rota.plan.schedule import waiting_gang
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import WAITING, Option, PlanEntry
from rota.plan.schedule.suspended_job import prepare
from rota.plan.schedule.timesharing import WHOLE, full_cores, may_overlap, may_share
from rota.plan.timeline.gang_shape import as_gang, union
from rota.plan.timeline.search_bounds import Bounds
from rota.plan.timeline.shapes import Shape
from rota.plan.timeline.slots import Choosing, Pick, Slots

_NOWHERE: Final = (0,)


# ------------------------------------------------------------------ what a request means here


def ready(plan: Plan, entry: PlanEntry) -> None:
    """Work out what the job's request means on the present site."""
    ask = entry.ask
    usable = plan.site.everything if plan.counted else plan.site.usable
    queue = plan.queue(ask.queue)
    entry.trouble = None
    options: Sequence[Option]
    if ask.is_choosy:
        options = choosy_jobs.options(plan, entry, usable)
    else:
        options = []
        for alternative in ask.alternatives:
            shape = plan.shapes.get(alternative.groups)
            if shape is None:
                shape = plan.shapes[alternative.groups] = Shape(alternative, plan.site, within=usable)
            walltime = alternative.walltime_s or queue.walltime_s
            length = ask.before_s + (walltime or ask.time_s) + ask.after_s
            options.append(Option(shape, length, walltime is not None))
    entry.options = tuple(options)
    entry.least = min([option.shape.least for option in options], default=0)
    entry.shortest = min([option.length for option in options], default=0.0)
    entry.even = all(option.shape.even for option in options)
    if ask.gang is not None:
        waiting_gang.team_up(entry, plan.ledger, plan.quotas)
        entry.trouble = None if choosy_jobs.fits_empty(plan, entry) else _never(plan, entry, usable)
        return
    entry.taking = plan.ledger.taking(ask)
    entry.everywhere = plan.ledger.everywhere(ask)
    if entry.state == WAITING:
        entry.trouble = _impossible(plan, entry, usable)
    entry.counted = None
    if plan.quotas is not None and not ask.types.container:
        entry.counted = plan.quotas.counted(quota_subject(ask))
    if (pinned := plan.suspended.get(entry.id)) is not None:
        entry.trouble = None
        prepare(pinned)


def _impossible(plan: Plan, entry: PlanEntry, usable: int) -> Waits | None:
    """Why it would not fit even if all resources were free; None: it would."""
    if plan.counted:
        if entry.least <= plan.site.count:
            return None
        return Waits("unsatisfiable", f"never fits: asked {entry.least}, there are {plan.site.count}")
    short = None
    if entry.taking is not None:
        taking = entry.taking

        def short(mask: int) -> int:
            return plan.ledger.never(taking, mask)

    if short is None and any(option.shape.possible for option in entry.options):
        return None
    everything = plan.site.everything if entry.ask.is_choosy else usable
    if any(option.shape.choose(everything, short) for option in entry.options):
        return None
    return _never(plan, entry, usable)


def _never(plan: Plan, entry: PlanEntry, usable: int) -> Waits:
    """The reason of a job that would not fit even if all resources were free."""
    if any(option.shape.bounded for option in entry.options):
        return Waits("unsatisfiable", "no way to take its groups was found among the first 10,000 tried")
    if misfit := _misfit(plan, entry.ask):
        return Waits("unsatisfiable", f"never fits: {misfit}")
    if not usable:
        return Waits("no_resources", "no resource may be used now")
    return Waits("unsatisfiable", "never fits: no set of the resources that may be used has what it asks for")


def _misfit(plan: Plan, ask: Ask) -> str:
    """What the site no longer has of the words of a job that was taken in before; empty: it has all."""
    gang, asks = ask.gang, [ask]
    if gang is not None:
        if gang.same and not plan.site.is_level(gang.same):
            return f"there is no property '{gang.same}'"
        asks = [member.ask for member in gang.members]
    groups = (group for each in asks for alternative in each.alternatives for group in alternative.groups)
    return next((misfit for group in groups if (misfit := plan.site.misfit(group.where))), "")


def shapes_of(plan: Plan, ask: Ask) -> list[Shape]:
    """What each of a job's alternatives means on this site."""
    entry = PlanEntry(0, ask, plan.now)
    ready(plan, entry)
    return [option.shape for option in entry.options]


def only_wants_room(plan: Plan, entry: PlanEntry) -> bool:
    """Does nothing but occupied resources keep it from beginning, so that it surely begins some time?"""
    types = entry.ask.types
    if entry.trouble is not None or entry.counted is not None or entry.after or entry.everywhere:
        return False
    timed = (types.deadline, types.expire, types.postpone) != (None, None, None)
    return not types.inner and not timed and not plan.closures and not plan.site.asleep


# ------------------------------------------------------------------ finding a place


def place(plan: Plan, entry: PlanEntry, now: float, *, before: float = inf, since: float | None = None) -> bool:
    """Plan a waiting job at its earliest possible end. False if there is none; `reason` says why."""
    resuming = entry.id in plan.suspended
    if resuming:
        plan.ledger.give(~entry.id)  # what it keeps is not in its own way
    found = find(plan, entry, now, before=before, since=since)
    if resuming and found is not None and not _may_keep(plan, entry, found[0]):
        entry.reason = Waits("resuming", "what it keeps was promised to jobs that begin before its cores are free")
        found = None  # later it would have to keep it for even longer
    if found is None:
        entry.start = entry.end = None
        entry.resources = 0
        if resuming:
            plan.hold_ballast(entry)
        return False
    start, resources, at = found
    entry.start, entry.resources, entry.alternative = start, resources, at
    entry.end = start + entry.options[at].length
    plan.hold(entry)
    if entry.ask.types.container:
        plan.open_inside(entry)
    plan.schedule_start(entry)
    return True


def _may_keep(plan: Plan, entry: PlanEntry, start: float) -> bool:
    """May a suspended job keep its ballast until then? It was promised to no other job only until `until`."""
    pinned = plan.suspended[entry.id]
    since = max(pinned.until, plan.now)
    if start <= since:
        return True
    if entry.taking is not None and plan.ledger.short(entry.taking, pinned.mask, since, start):
        return False
    return plan.ledger.again(entry.everywhere, since, start) is None


def find(
    plan: Plan, entry: PlanEntry, now: float, *, before: float, since: float | None
) -> tuple[float, int, int] | None:
    """Start, resources and number of the alternative that ends first."""
    entry.blamed = False
    if entry.trouble is not None:
        entry.reason = entry.trouble
        return None
    types = entry.ask.types
    earliest, waits = not_before(plan, entry, now)
    if waits is not None:
        entry.reason = waits
        entry.blamed = True
        return None
    homes = _homes(plan, entry)
    if isinstance(homes, Waits):
        entry.reason, entry.blamed, entry.home = homes, True, 0
        return None
    earliest = max(earliest, since if since is not None else now)
    best: tuple[float, int, int] | None = None
    best_end, best_home = inf, 0
    entry.reason = None
    for home in homes:
        entry.home = home
        slots = room(plan, entry)
        for at, option in enumerate(entry.options):
            if home and not option.hard:
                continue
            limit = before
            if types.deadline is not None:
                limit = min(limit, nextafter(types.deadline - option.length, inf))
            if types.expire is not None:
                limit = min(limit, nextafter(types.expire, inf))
            if best is not None:
                limit = min(limit, best_end - option.length)
            found = _search(plan, entry, option, slots, after=earliest, before=limit, fresh=since is None)
            if found is not None and found[0] + option.length < best_end:
                best = (*found, at)
                best_end, best_home = found[0] + option.length, home
    entry.home = best_home
    if best is None and entry.reason is None:
        entry.reason = _why_nowhere(plan, entry, before)
    return best


def _search(
    plan: Plan, entry: PlanEntry, option: Option, slots: Slots, *, after: float, before: float, fresh: bool
) -> tuple[float, int] | None:
    shape, length, _hard = option
    choosing = _choosing(plan, entry, option)
    bounds = None
    if choosing is None and slots is plan.slots:
        bounds = plan.bounds.get(shape.family)
        if bounds is None:
            bounds = plan.bounds[shape.family] = Bounds()
        known = bounds.start(shape.number, length)
        if known > after:
            after = known
        elif not fresh or after > plan.now:
            bounds = None  # nothing was proved about earlier starts
    while after < before:
        found = slots.earliest(shape, length, after=after, before=before, choosing=choosing)
        if found is None:
            return None
        start, taken = found
        if bounds is not None:
            bounds.proved(shape.number, length, start)
            bounds = None
        again = _refused(plan, entry, shape, taken, start, start + length)
        if again is None:
            return found
        after = slots.snapped(again)
        if not shape.even:
            # Blocks are uneven: at the next slot it may need fewer resources.
            after = min(again, slots.following(start))
            if entry.counted is not None and plan.quotas is not None:
                after = min(after, plan.quotas.following(entry.counted, start))
    return None


def _refused(plan: Plan, entry: PlanEntry, shape: Shape, taken: int, start: float, end: float) -> float | None:
    """When to look again, if a quota or a limit forbids this; None if nothing does."""
    if entry.counted is not None and plan.quotas is not None:
        if entry.team is not None:
            refusal = waiting_gang.refusal(entry, plan.quotas, as_gang(shape), taken, start, end)
        else:
            number = taken if plan.counted else taken.bit_count()
            refusal = plan.quotas.refusal(entry.counted, number, start, end)
        if refusal is not None:
            entry.blamed = True
            if entry.reason is None:
                entry.reason = quota_reason(refusal)
            return refusal.again
    if entry.everywhere:
        short = plan.ledger.again(entry.everywhere, start, end, low=entry.ask.types.besteffort)
        if short is not None:
            entry.blamed = True
            if entry.reason is None:
                entry.reason = _limit_reason(plan, entry, short[0])
            return short[1]
    return None


def _choosing(plan: Plan, entry: PlanEntry, option: Option) -> Choosing | None:
    """How to choose resources where more matters than what is free; None: nothing does."""
    if plan.counted:
        return None
    shape, hard = option.shape, option.hard
    taking = entry.taking
    # A suspended job holds memory and the like without a core.
    crowded = bool(plan.sharing or plan.suspended)
    if taking is not None and not crowded and not plan.ledger.may_lack(taking):
        taking = None
    blocking = [] if hard or entry.ask.at is not None else obstacles(plan)
    split = 0  #: cores that are shared already; they are preferred to whole ones
    for each in plan.sharing.values() if entry.ask.share else ():
        split |= each.resources if each.ask.share else 0
    asleep = plan.site.asleep & shape.eligible
    waking = ready_times(plan.site, plan.now) if asleep else []
    within = entry.within
    if taking is None and not blocking and not split and not asleep and within == -1:
        return None
    ledger, low = plan.ledger, entry.ask.types.besteffort
    entry.blamed = entry.blamed or bool(blocking) or bool(asleep)

    def pick(free: int, start: float, end: float) -> int:
        free &= within
        for until, mask in blocking:
            if until > start:
                free &= ~mask
        for ready, mask in waking:
            if ready > start:
                free &= ~mask
        if entry.team is not None:
            lacking = None if taking is None else waiting_gang.lacking(entry, ledger, start, end)
            awake = union(as_gang(shape).parts(free & ~asleep, lacking)) if asleep else 0
            return awake or union(as_gang(shape).parts(free, lacking))
        short = None
        if taking is not None:

            def short(mask: int) -> int:
                return ledger.short(taking, mask, start, end, low=low)

        if split and (taken := shape.choose(free & split, short)):
            return taken
        if asleep and (taken := shape.choose(free & ~asleep, short)):
            return taken
        return shape.choose(free, short)

    also = sorted({moment for moment, _mask in (*blocking, *waking) if moment != inf})
    if taking is not None:
        also = sorted({*also, *ledger.ends()}) if also else ledger.ends()
    return Choosing(pick, also)


def picking(plan: Plan, entry: PlanEntry) -> Pick:
    """How to choose resources for the alternative that it was planned with."""
    option = entry.options[entry.alternative]
    choosing = _choosing(plan, entry, option)
    return choosing.pick if choosing is not None else lambda free, _start, _end: option.shape.choose(free)


def obstacles(plan: Plan) -> list[tuple[float, int]]:
    """Reservations and closures, which only a job with a walltime may run before: (until when, resources)."""
    found = [*plan.closing]
    if (gang := plan.patient) is not None and gang.end is not None:
        found.append((gang.end, gang.resources))
    found += [(entry.end or inf, entry.resources) for entry in plan.reserved.values()]
    return found


def not_before(plan: Plan, entry: PlanEntry, now: float) -> tuple[float, Waits | None]:
    """The earliest start that its parents and types allow, or why there is none."""
    earliest = now
    postpone = entry.ask.types.postpone
    if postpone is not None:
        earliest = max(earliest, postpone)
    for parent in entry.after:
        found = plan.entry_of(parent)
        if found is None or found.end is None:
            return inf, Waits("dependency", f"job {parent}, which it waits for, has no planned start")
        if found.ask.types.besteffort and found.state == WAITING and not entry.ask.types.besteffort:
            return inf, Waits("dependency", f"job {parent}, which it waits for, is besteffort and has not begun")
        earliest = max(earliest, found.end)
    return earliest, None


def _why_nowhere(plan: Plan, entry: PlanEntry, before: float) -> Waits | None:
    if before != inf:
        return None  # only an early start was searched for
    types = entry.ask.types
    if types.inner:
        number = len(plan.containers(types.inner))
        if number > 1:
            return Waits("container", f"it fits in none of the {number} containers named {types.inner}")
        return Waits("container", f"it does not fit in its container {types.inner}")
    if types.deadline is not None:
        return Waits("resources", "no start lets it end before its deadline")
    if types.expire is not None:
        return Waits("resources", "no start is possible before it expires")
    soft = any(not option.hard for option in entry.options)
    if plan.site.hours and plan.closing and not (soft and plan.reserved):
        said = "without a walltime it cannot be placed" if soft else "no start was found"
        return Waits("window", f"{said} within the hours of hosts", hint=_hint_walltime(entry) if soft else "")
    if soft and obstacles(plan):
        return Waits("reservation", "without a walltime it cannot be placed before a reservation")
    return Waits("resources", "no start was found for it")


# ------------------------------------------------------------------ what is free for a job


def _homes(plan: Plan, entry: PlanEntry) -> Sequence[int] | Waits:
    """The containers that it may be placed in, the earliest first; 0: it asks for none."""
    inner = entry.ask.types.inner
    if not inner:
        return _NOWHERE
    found = [each for each in plan.containers(inner) if each is not entry]
    if not found:
        return Waits(
            "container",
            f"its container {inner} is not there: no container of this id or name waits or runs",
        )
    homes = [each.id for each in found if each.id in plan.inside]
    if not homes:
        return Waits("container", f"its container {inner} has no planned start")
    if not any(option.hard for option in entry.options):
        return Waits("container", f"without a walltime it cannot be placed in container {inner}")
    return homes


def room(plan: Plan, entry: PlanEntry) -> Slots:
    """What is free for this job, inside its container if it has one."""
    slots = plan.inside[entry.home] if entry.home else plan.slots
    return _shared(plan, entry, slots) if entry.special else slots


def room_beside(plan: Plan, entry: PlanEntry) -> Slots:
    """What is free for a job that holds resources already and may share them."""
    return _shared(plan, entry, plan.slots_of(entry) or plan.slots)


def _shared(plan: Plan, entry: PlanEntry, slots: Slots) -> Slots:
    """The free resources, and the held ones that this job may share."""
    if not plan.sharing and not plan.placed_besteffort:
        return slots
    view = slots.copy()
    here = [each for each in plan.sharing.values() if each.home == entry.home and each is not entry]
    for each in here:
        view.uncover(each.resources, max(each.start or 0.0, plan.now), each.end or inf)
    for each in here:
        if not may_share(entry.ask, each.ask):
            view.cover(each.resources, max(each.start or 0.0, plan.now), each.end or inf)
    if entry.ask.share:
        for core, start, end in full_cores(here, WHOLE - entry.ask.share):
            view.cover(core, max(start, plan.now), end)
    # A job that has overrun may hold what others hold too, or hold it beyond the end of its container.
    for each in (*plan.running.values(), *plan.reserved.values()) if plan.overlapping else ():
        if each.home == entry.home and not each.special and not each.ask.types.besteffort:
            view.cover(each.resources, max(each.start or 0.0, plan.now), each.end or inf)
    for each in plan.placed_besteffort:
        if each.home == entry.home and not may_overlap(entry.ask, each.ask):
            view.cover(each.resources, max(each.start or 0.0, plan.now), each.end or inf)
    if entry.home:
        view.cover(plan.entries[entry.home].resources, plan.entries[entry.home].end or inf, inf)
    plan.close(view)
    return view


def _hint_walltime(entry: PlanEntry) -> str:
    return f"rota modify {entry.id} --walltime TIME"


def _limit_reason(plan: Plan, entry: PlanEntry, name: str) -> Waits:
    capacity, takes = plan.limits[name], entry.everywhere[name]
    if takes > capacity:
        who = "its members take" if entry.team is not None else "it takes"
        return Waits("limit", f"limit '{name}' has {capacity} units, {who} {takes}", name)
    return Waits("limit", f"limit '{name}' is in use, or planned for others before it", name)


def quota_reason(refusal: Refusal) -> Waits:
    code = "calendar" if refusal.calendar else "quota"
    holders = refusal.holders
    held = f", held by {', '.join(f'job {id}' for id in holders[:5])}" if holders else ""
    more = f" and {len(holders) - 5} more" if len(holders) > 5 else ""
    message = f"quota {refusal.rule}: {refusal.limit:g} {refusal.what}{held}{more}"
    return Waits(code, message, refusal.rule, blockers=tuple(holders[:100]))
