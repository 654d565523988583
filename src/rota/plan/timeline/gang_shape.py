"""The shape of a gang: what its members ask for together, and which of them takes which free resources.

Members take different hosts, all within one value of a property if the gang says so. Where each asks for hosts, or
for cores of hosts, the choice is an exact matching of seats (a member that asks for k hosts has k) to hosts. Other
requests, and members that may share hosts, are tried one after another, up to `TRIES`.

Of several choices: most preferences met, then each member in input order has the lowest resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from msgspec import Struct

from rota.plan.language.expression import Value
from rota.plan.language.request import Alternative
from rota.plan.matching.best_matching import best
from rota.plan.site.bitset import lowest, positions
from rota.plan.site.resources import Site
from rota.plan.timeline.shapes import TRIES, GroupFit, Shape, Short, whole_host_levels

#: Given members that would be there together and resources: the subset whose hosts have too little for them.
Lacking = Callable[[tuple[int, ...], int], int]
#: What each member takes; None: they do not fit.
Parts = tuple[int, ...] | None


class MemberTerms(Struct, frozen=True, gc=False):
    """What one member asks for, and where it may be."""

    alternative: Alternative
    prefer: str = ""  #: of several hosts, those that match this expression
    within: int = -1  #: the resources that it may have


class GangTerms(Struct, frozen=True, gc=False):
    """What the members ask for together. Gangs with equal terms have equal shapes."""

    members: tuple[MemberTerms, ...]
    same: str = ""  #: a property that has one value on all resources of the gang
    share: bool = False  #: may members share hosts?


class _Seats(NamedTuple):
    """The hosts that one member could have, as bits that all members have in common."""

    candidates: int
    preferred: int
    #: of the member's own blocks: all that fit, and those that fit with preferred resources only
    found: list[int]
    liked: list[int]


class _MemberFit:
    """One member on one site."""

    def __init__(self, terms: MemberTerms, site: Site, usable: int) -> None:
        within = usable & terms.within
        self._site = site
        self.fits = [GroupFit(group, site, within=within) for group in terms.alternative.groups]
        self.prefers = site.still_matching(terms.prefer) if terms.prefer else site.everything
        self.picky = bool(terms.prefer)
        fit = self.fits[0]
        levels = [site.level(level.name) for level in terms.alternative.groups[0].levels]
        #: it asks for a number of hosts, or of cores of each
        self.by_host = (
            len(self.fits) == 1 and levels[0] == "host" and all(isinstance(each, int) for each in fit.numbers)
        )
        self.number = fit.numbers[0] if isinstance(fit.numbers[0], int) else 1
        self.seats_wanted = self.number if self.by_host else 1  #: it has at least so many hosts
        self.eligible = self.least = 0
        for each in self.fits:
            self.eligible |= each.eligible
            self.least += each.least
        self._host_of: dict[int, int] = {}  #: mark of a block → the lowest bit of its host
        self._mark_of: dict[int, int] = {}
        if self.by_host:
            blocks = fit.tree.levels[0]
            for block in blocks.blocks:
                host = site.hosts[str(site.resources[block[0]].values["host"])]
                mark = blocks.mark(block).bit_length() - 1
                bit = (host & -host).bit_length() - 1
                self._host_of[mark], self._mark_of[bit] = bit, mark

    def may_fit(self, free: int) -> bool:
        return all(fit.fits(free) for fit in self.fits)

    def seats(self, free: int, number: int, short: Short | None) -> _Seats | None:
        """The first hosts that it could have; None: they are too few. No more than `number` of either kind matter,
        because others take fewer than that."""
        fit = self.fits[0]
        found, wanted = fit.candidates(free)
        if found[0].bit_count() < wanted:
            return None
        liked = fit.candidates(free & self.prefers)[0] if self.picky else found
        preferred = self._first(liked[0], number, short)
        others = self._first(found[0] & ~liked[0], number, short) if self.picky else 0
        if (preferred | others).bit_count() < wanted:
            return None
        return _Seats(preferred | others, preferred, found, liked)

    def hosts(self, free: int, short: Short | None) -> int:
        """All hosts that it could have one of; of other requests than for hosts, all that it could have at all."""
        if not self.by_host:
            lowest_bits = 0
            for host in self._site.hosts_of(self.eligible & free) if self.may_fit(free) else ():
                mask = self._site.hosts[host]
                lowest_bits |= mask & -mask
            return lowest_bits
        return self._first(self.fits[0].candidates(free)[0][0], self._site.count, short)

    def _first(self, marks: int, number: int, short: Short | None) -> int:
        """The first of these blocks whose hosts lack nothing, as hosts."""
        blocks = self.fits[0].tree.levels[0]
        good = 0
        while marks and (missing := number - good.bit_count()) > 0:
            some = lowest(marks, min(missing, marks.bit_count()))
            marks ^= some
            if short is not None and (lacking := short(blocks.expand(some))):
                for position in positions(some):
                    if blocks.of[1 << position] & lacking:
                        some ^= 1 << position
            good |= some
        hosts = 0
        for position in positions(good):
            hosts |= 1 << self._host_of[position]
        return hosts

    def take(self, seats: _Seats, hosts: Sequence[int]) -> int:
        """The resources to take of these hosts."""
        taken = 0
        for host in hosts:
            found = seats.liked if seats.preferred >> host & 1 else seats.found
            taken |= self.fits[0].take(found, 1 << self._mark_of[host])
        return taken


class GangShape(Shape):
    """The requests of all members of a gang on one site."""

    def __init__(self, terms: GangTerms, site: Site, *, within: int) -> None:
        self.terms = terms
        alike = {each: _MemberFit(each, site, within) for each in dict.fromkeys(terms.members)}
        self.members = [alike[each] for each in terms.members]
        self.fits = [fit for member in self.members for fit in member.fits]
        self.eligible = self.least = 0
        for member in self.members:
            self.eligible |= member.eligible
            self.least += member.least
        self.site = site
        self._within = list(blocks_of(site, terms.same).values()) if terms.same else [site.everything]
        self._exact = not terms.share and all(member.by_host for member in self.members)
        self.plain = self.bounded = self.ordered = False
        self.family, self.number = self, 1
        self.even = all(isinstance(fit.number, int) and fit.even for fit in self.fits)
        self.greedy = False
        self.whole_hosts = any(fit.last in whole_host_levels(site) for fit in self.fits)
        self.possible = bool(self.choose(within))

    def may_fit(self, free: int) -> bool:
        """Does each member fit alone?"""
        return any(all(member.may_fit(free & block) for member in self.members) for block in self._within)

    def choose(self, free: int, short: Short | None = None) -> int:
        lacking: Lacking | None = None
        if short is not None:
            only = short

            def lacking(_members: tuple[int, ...], mask: int) -> int:
                return only(mask)

        return union(self.parts(free, lacking))

    def parts(self, free: int, lacking: Lacking | None = None) -> Parts:
        """The free resources that each member takes; None: they are not enough."""
        found: tuple[tuple[int, ...], tuple[int, ...]] | None = None  #: its key, and the parts
        for block in self._within:
            here = free & block & self.eligible
            if here.bit_count() < self.least:
                continue
            parts = self._by_matching(here, lacking) if self._exact else self._by_trial(here, lacking)
            if parts is None:
                continue
            if len(self._within) == 1:
                return parts
            key = (-self._met(parts), *(part & -part for part in parts))
            if found is None or key < found[0]:
                found = (key, parts)
        return found[1] if found is not None else None

    def _met(self, parts: tuple[int, ...]) -> int:
        """How many hosts, of all members, meet the preference of their member."""
        pairs = zip(self.members, parts, strict=True)
        return sum(self.met_by(member, part) for member, part in pairs if member.picky)

    def met_by(self, member: _MemberFit, part: int) -> int:
        """How many of these hosts meet the preference of this member."""
        hosts = (part & self.site.hosts[host] for host in self.site.hosts_of(part))
        return sum(1 for each in hosts if not each & ~member.prefers)

    # -- by matching

    def members_of_seats(self) -> list[int]:
        """Whose seat each is."""
        return [at for at, member in enumerate(self.members) for _seat in range(member.seats_wanted)]

    def all_seats(self, free: int, lacking: Lacking | None) -> list[int]:
        """The hosts that each seat could have of these resources, if no other were filled."""
        found = []
        for at, member in enumerate(self.members):
            short = None if lacking is None else _of_member(lacking, at)
            found += [member.hosts(free & self.eligible, short)] * member.seats_wanted
        return found

    def _by_matching(self, free: int, lacking: Lacking | None) -> Parts:
        number = sum(member.number for member in self.members)
        seats: list[_Seats] = []
        of_equal: dict[int, _Seats] = {}  #: where nothing is lacking, equal members could have the same
        for at, member in enumerate(self.members):
            found = of_equal.get(id(member)) if lacking is None else None
            if found is None:
                found = member.seats(free, number, None if lacking is None else _of_member(lacking, at))
            if found is None:
                return None
            of_equal[id(member)] = found
            seats.append(found)
        candidates, preferred = [], []
        for member, its in zip(self.members, seats, strict=True):
            candidates += [its.candidates] * member.number
            preferred += [its.preferred] * member.number
        given = best(candidates, preferred)
        if given is None:
            return None
        parts, at = [], 0
        for member, its in zip(self.members, seats, strict=True):
            parts.append(member.take(its, given[at : at + member.number]))
            at += member.number
        return tuple(parts)

    # -- by trial

    def _by_trial(self, free: int, lacking: Lacking | None) -> Parts:
        if not all(member.may_fit(free) for member in self.members):
            return None
        picky = sum(member.number for member in self.members if member.picky)
        trial = _Trial(self, lacking)
        for target in range(picky, -1, -1):
            found = trial.parts(free, target)
            if found is not None:
                return found
            if trial.left <= 0:
                self.bounded = True
                return None
        return None


class _Choice(NamedTuple):
    """What is to be taken next: the ways of one group of a member's request, after those before it have theirs."""

    member: int
    group: int
    free: int
    parts: tuple[int, ...]
    target: int  #: so many preferences are still to be met
    ways: Iterator[int]


class _Trial:
    """Members are given resources one after another, lowest first; at a dead end, the last one takes the next."""

    def __init__(self, shape: GangShape, lacking: Lacking | None) -> None:
        self._shape, self._lacking = shape, lacking
        self.left = TRIES

    def parts(self, free: int, target: int) -> Parts:
        """Parts for all members, of which at least so many hosts meet the preference of their member."""
        shape = self._shape
        left_to_meet = [each.number if each.picky else 0 for each in shape.members]
        for place in range(len(left_to_meet) - 2, -1, -1):
            left_to_meet[place] += left_to_meet[place + 1]
        if target > sum(left_to_meet[:1]):
            return None
        path = [_Choice(0, 0, free, (), target, _ways(shape.members[0], 0, free))]
        while path:  # gangs may have many members
            at = path[-1]
            taken = next(at.ways, None)
            if taken is None:
                path.pop()
                continue
            if self.left <= 0:
                return None
            self.left -= 1
            its = shape.members[at.member]
            mine = taken | at.parts[at.member] if len(at.parts) > at.member else taken
            parts = (*at.parts[: at.member], mine)
            left, target = at.free & ~taken, at.target
            if at.group + 1 < len(its.fits):
                member, group = at.member, at.group + 1
            elif self._lacks(at.member, mine, at.parts[: at.member]):
                continue
            else:
                member, group = at.member + 1, 0
                target -= shape.met_by(its, mine) if its.picky else 0
                if member == len(shape.members):
                    if target <= 0:
                        return parts
                    continue
                if target > left_to_meet[member]:
                    continue
                if not shape.terms.share:
                    for host in shape.site.hosts_of(mine):
                        left &= ~shape.site.hosts[host]
            path.append(_Choice(member, group, left, parts, target, _ways(shape.members[member], group, left)))
        return None

    def _lacks(self, member: int, mine: int, before: tuple[int, ...]) -> bool:
        """Has a host too little for this member, beside those that are there already?"""
        if self._lacking is None:
            return False
        site = self._shape.site
        for name in site.hosts_of(mine):
            host = site.hosts[name]
            there = tuple(at for at, part in enumerate(before) if part & host)
            if self._lacking((*there, member), host):
                return True
        return False


def _ways(member: _MemberFit, group: int, free: int) -> Iterator[int]:
    """The choices of one group of a member's request, lowest first. Cores of one host are all alike."""
    fit = member.fits[group]
    if not member.by_host:
        yield from fit.choices(free)
        return
    found, wanted = fit.candidates(free)
    marks = [1 << position for position in positions(found[0])]
    for some in combinations(marks, wanted):
        taken = 0
        for mark in some:
            block = fit.tree.levels[0].of[mark]
            liked = fit.candidates(free & block & member.prefers)[0] if member.picky else found
            taken |= fit.take(liked if member.picky and liked[0] & mark else found, mark)
        yield taken


def _of_member(lacking: Lacking, member: int) -> Short:
    return lambda mask: lacking((member,), mask)


def blocks_of(site: Site, same: str) -> dict[Value, int]:
    """The resources with each value of a property, in order of their lowest bits."""
    key = ("same", same)
    found = site.made.get(key)
    if not isinstance(found, dict):
        found = dict[Value, int]()
        for bit, value in enumerate(site.column(same)):
            if value is not None:
                found[value] = found.get(value, 0) | 1 << bit
        site.made[key] = found
    return found


def union(parts: Parts) -> int:
    """All resources of a gang; 0: none."""
    found = 0
    for part in parts or ():
        found |= part
    return found


def as_gang(shape: Shape) -> GangShape:
    """The shape of a gang's entry, which is always one of these."""
    assert isinstance(shape, GangShape)
    return shape
