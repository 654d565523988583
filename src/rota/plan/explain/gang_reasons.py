"""Why a gang waits: which members have no machine now, and which jobs hold the ones that they could have."""

from __future__ import annotations

from typing import Final

from rota.plan.matching.hopcroft_karp import match
from rota.plan.reasons import Waits
from rota.plan.schedule import waiting_gang
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import PlanEntry
from rota.units import about_duration

#: How many jobs are named in the sentence, and in all.
_NAMED: Final = 5
_MOST: Final = 100


def missing(plan: Plan, entry: PlanEntry) -> list[int]:
    """The members, by their places, that have no machine now if those before them have one."""
    shape = waiting_gang.shape_of(entry)
    free = plan.slots.free[plan.slots.index(plan.now)]
    lacking = waiting_gang.lacking(entry, plan.ledger, plan.now, plan.now + 1.0)
    seats, filled, found = shape.all_seats(free, lacking), list[int](), list[int]()
    for at, member in enumerate(shape.members):
        own = [seat for seat, whose in zip(seats, shape.members_of_seats(), strict=True) if whose == at]
        if member.may_fit(free) and match([*filled, *own]) is not None:
            filled += own
        else:
            found.append(at)
    return found


def why(plan: Plan, entry: PlanEntry) -> Waits | None:
    """The reason with code `gang`; None: all members could have a machine now, so it waits for something else."""
    gang = entry.ask.gang
    if gang is None or entry.trouble is not None or not (places := missing(plan, entry)):
        return None
    shape = waiting_gang.shape_of(entry)
    wanted = 0
    for at in places:
        wanted |= shape.members[at].eligible
    running = [each for each in plan.running.values() if each.resources & wanted]
    holders = sorted(each.id for each in running if not each.ask.types.besteffort)
    endless = [each.id for each in running if each.options and not each.options[0].hard]
    names = ", ".join(gang.members[at].role for at in places)
    said = f"gang: no machine for {'member' if len(places) == 1 else 'members'} {names}"
    if holders:
        more = f" and {len(holders) - _NAMED} more" if len(holders) > _NAMED else ""
        said += f", held by {', '.join(f'job {id}' for id in holders[:_NAMED])}{more}"
    if endless:
        said += f"; job {min(endless)} has no walltime, so there is no bound"
    if entry.start is not None and entry.start > plan.now:
        said += f"; planned to begin in {about_duration(entry.start - plan.now)}"
    members = tuple(gang.members[at].job for at in places)
    return Waits("gang", said, blockers=tuple(holders[:_MOST]), members=members)
