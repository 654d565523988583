"""Gangs that could never be placed: which members compete for too few machines, in words.

All machines that jobs are matched to count, as if they were free, awake and within their hours.
"""

from __future__ import annotations

from math import prod
from typing import Final, NamedTuple

from rota.plan.ask import Ask, Gang, Member
from rota.plan.language.hostlist import fold
from rota.plan.matching.hopcroft_karp import Shortage, shortage
from rota.plan.planner.choosy_jobs import member_terms
from rota.plan.schedule.waiting_gang import combinations_of
from rota.plan.site.resources import Site
from rota.plan.timeline.gang_shape import GangShape, GangTerms, Lacking, blocks_of
from rota.plan.timeline.ledger import Ledger

#: How many machines are named.
_NAMED: Final = 5


class GangConflict(NamedTuple):
    """Members that no set of machines could satisfy together."""

    members: tuple[int, ...]  #: the ids of their jobs
    message: str


def gang_conflict(site: Site, ask: Ask) -> GangConflict | None:
    """Why the gang (`plan.ask.gang_ask`) could never be placed; None: it could."""
    gang = ask.gang
    assert gang is not None
    never = _never(site, gang)
    shapes: list[GangShape] = []
    numbers = tuple(len(member.ask.alternatives) for member in gang.members)
    for some in combinations_of(numbers):
        terms = tuple(
            member_terms(site, member.ask, at, site.automated, forceable=site.everything)
            for member, at in zip(gang.members, some, strict=True)
        )
        shape = GangShape(GangTerms(terms, gang.same, gang.share), site, within=site.everything)
        if shape.parts(site.everything, never) is not None:
            return None
        shapes.append(shape)
    if len(shapes) < prod(numbers) and _may_fit(site, gang, shapes, never):
        return None  # other combinations of alternatives were not tried
    return _told(site, gang, shapes, never)


def _never(site: Site, gang: Gang) -> Lacking | None:
    """The hosts that have too little for some members even when they are empty."""
    ledger = Ledger(site)
    takings = [ledger.taking(member.ask) or {} for member in gang.members]
    if not any(takings):
        return None

    def lacking(members: tuple[int, ...], mask: int) -> int:
        together: dict[str, int] = {}
        for at in members:
            for name, amount in takings[at].items():
                together[name] = together.get(name, 0) + amount
        return ledger.never(together, mask) if together else 0

    return lacking


def _may_fit(site: Site, gang: Gang, shapes: list[GangShape], never: Lacking | None) -> bool:
    """Are there hosts enough for all members, whichever of their alternatives they have?"""
    blocks = blocks_of(site, gang.same).values() if gang.same else (site.everything,)
    return any(_shortage(*_any_seats(shapes, block, never), share=gang.share) is None for block in blocks)


def _told(site: Site, gang: Gang, shapes: list[GangShape], never: Lacking | None) -> GangConflict:
    blocks = blocks_of(site, gang.same) if gang.same else {"": site.everything}
    found: tuple[int, str, Shortage] | None = None
    whose: list[int] = []
    for value, block in blocks.items():
        seats, whose = _any_seats(shapes, block, never)
        short = _shortage(seats, whose, share=gang.share)
        if short is None:  # they compete for more than hosts
            continue
        if found is None or len(short.seats) > found[0]:
            found = (len(short.seats), str(value), short)
    if found is None:
        return _unknown(gang)
    _number, value, short = found
    places = sorted({whose[seat] for seat in short.seats})
    members = [gang.members[at] for at in places]
    hosts = site.hosts_of(short.machines)
    words = _words(members, len(short.seats), hosts, lacks=never is not None)
    if gang.same:
        words = f"no value of '{gang.same}' has machines for all members: where it is {value}, {words}"
    return GangConflict(tuple(member.job for member in members), words)


def _any_seats(shapes: list[GangShape], block: int, never: Lacking | None) -> tuple[list[int], list[int]]:
    """The hosts in this block that seats could have in any of these shapes, and whose seat each is: so many of a
    member as its least alternative wants."""
    hosts: dict[int, int] = {}
    wanted: dict[int, int] = {}
    for shape in shapes:
        for at, seat in zip(shape.members_of_seats(), shape.all_seats(block, never), strict=True):
            hosts[at] = hosts.get(at, 0) | seat
        for at, member in enumerate(shape.members):
            wanted[at] = min(member.seats_wanted, wanted.get(at, member.seats_wanted))
    whose = [at for at in sorted(hosts) for _seat in range(wanted[at])]
    return [hosts[at] for at in whose], whose


def _shortage(seats: list[int], members: list[int], *, share: bool) -> Shortage | None:
    """Seats that have too few machines. Where members may share them, only those of one member."""
    if not share:
        return shortage(seats)
    for at in dict.fromkeys(members):
        own = [seat for seat, member in enumerate(members) if member == at]
        if (short := shortage([seats[seat] for seat in own])) is not None:
            return Shortage(tuple(own[seat] for seat in short.seats), short.machines)
    return None


def _words(members: list[Member], number: int, hosts: list[str], *, lacks: bool) -> str:
    """Who needs how many machines of what kind, and which there are."""
    names = [member.role for member in members]
    who = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    kinds = {_kind(member) for member in members}
    kind = next(iter(kinds)) if len(kinds) == 1 else ""
    room = " and room for them" if lacks and kind else " with room for them" if lacks else ""
    needs = f"needs {number} machine" if len(names) == 1 else f"need {number} machine"
    there = "there is none" if not hosts else f"there {'is' if len(hosts) == 1 else 'are'} {len(hosts)}"
    named = f": {fold(hosts[:_NAMED])}" if hosts else ""
    more = f" and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else ""
    title = "member" if len(names) == 1 else "members"
    plural = "" if number == 1 else "s"
    return f"{title} {who} {needs}{plural}{kind}{room}, {there}{named}{more}"


def _kind(member: Member) -> str:
    """What kind of machines a member asks for."""
    ask = member.ask
    if ask.force_host:
        return f" named {ask.force_host}"
    groups = [group for alternative in ask.alternatives for group in alternative.groups]
    wheres = {group.where for group in groups}
    wheres = set() if "" in wheres and len(ask.alternatives) > 1 else wheres - {""}
    pool = f" of pool {groups[0].pool}" if groups[0].pool else ""
    return pool + (f" with {' or '.join(sorted(wheres))}" if wheres else "")


def _unknown(gang: Gang) -> GangConflict:
    names = ", ".join(member.role for member in gang.members)
    within = f" within one value of '{gang.same}'" if gang.same else ""
    said = f"no way was found to place members {names} together{within}, even if all machines were free"
    return GangConflict(tuple(member.job for member in gang.members), said)
