"""Points at which members of a gang wait for each other: `rota gang wait POINT` inside a member.

A point may be used again: the n-th arrival of a member is answered when all members have come n times, or when one
has ended before. Arrivals are stored, so a restart neither lets a member through too early nor leaves one waiting.
Callers are in memory only: they ask again with the same `wait`.
"""

from __future__ import annotations

from typing import Final

from rota.core.effects import EndMeeting
from rota.core.events import MemberArrived, MemberLeft
from rota.core.gangs.gang_state import Arrivals, Caller, Gang, find_gang, gang_of, open_members, store
from rota.core.jobs.job import Job
from rota.core.turn import Turn
from rota.core.world import World
from rota.errors import BadInput

#: Different points of one gang.
MOST_POINTS: Final = 1000
#: Exit codes of `rota gang wait`.
MET, ENDED, REFUSED = 0, 1, 2


def on_member_arrived(world: World, turn: Turn, event: MemberArrived) -> None:
    """A process of a member waits at a point. The answer comes when all are there."""
    job = world.jobs.get(event.job)
    try:
        _arrive(world, turn, job, event)
    except BadInput as error:
        turn.effects.append(EndMeeting(event.by, REFUSED, str(error)))


def _arrive(world: World, turn: Turn, job: Job | None, event: MemberArrived) -> None:
    if job is None or job.lease is None or not job.spec.gang:
        raise BadInput("this job is not a running member of a gang", hint="add it with --gang NAME")
    gang = gang_of(world, job)
    if event.point not in gang.arrived and len(gang.arrived) >= MOST_POINTS:
        raise BadInput(f"gang '{gang.name}' has {MOST_POINTS} points already", hint="use one of them again")
    mine = gang.arrived.setdefault(event.point, {}).setdefault(job.id, Arrivals())
    if mine.wait != event.wait:
        mine.times, mine.wait = mine.times + 1, event.wait
        store(world, turn)
    gang.callers[event.by.connection, event.by.n] = Caller(event.by, job.id, event.point, mine.times)
    answer_callers(world, turn, gang)


def on_member_left(world: World, turn: Turn, event: MemberLeft) -> None:
    """A process of a member no longer waits: it was ended, or its time is over."""
    gang = find_gang(world, event.job)
    if gang is None or gang.callers.pop((event.by.connection, event.by.n), None) is None:
        return
    mine = gang.arrived.get(event.point, {}).get(event.job)
    if mine is not None and mine.wait == event.wait and not event.lost:
        mine.times, mine.wait = mine.times - 1, ""
        store(world, turn)


def answer_callers(world: World, turn: Turn, gang: Gang) -> None:
    """Answer callers whose point all members have reached, and callers that wait for a member that has ended."""
    if not gang.callers:
        return
    going = {job.id for job in open_members(world, gang)}
    for key, caller in list(gang.callers.items()):
        came = gang.arrived.get(caller.point, {})
        missing = [id for id in gang.members if came.get(id, _NEVER).times < caller.times]
        ended = [id for id in missing if id not in going]
        if not missing or ended:
            del gang.callers[key]
            text = f"member {gang.roles[ended[0]]} (job {ended[0]}) has ended" if ended else ""
            turn.effects.append(EndMeeting(caller.by, ENDED if ended else MET, text))


_NEVER: Final = Arrivals()
