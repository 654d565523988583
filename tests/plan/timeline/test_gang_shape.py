"""The members of a gang get hosts exactly when there is a way, and the best way there is."""

from __future__ import annotations

import inspect
import sys
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from rota.plan.language.request_parser import parse_request
from rota.plan.site.resources import Resource, Site
from rota.plan.timeline.gang_shape import GangShape, GangTerms, MemberTerms

HOSTS = 6
CORES = 2


class Wanted:
    """A member: so many hosts, of some, with all or one of their cores, and preferably these."""

    def __init__(self, number: int, hosts: frozenset[int], liked: frozenset[int] | None, cores: int) -> None:
        self.number, self.hosts, self.liked, self.cores = number, hosts, liked, cores

    def terms(self) -> MemberTerms:
        core = f"/core={self.cores}" if self.cores < CORES else ""
        request = f"{{{_among(self.hosts)}}}/host={self.number}{core}"
        prefer = _among(self.liked) if self.liked is not None else ""
        return MemberTerms(parse_request(request), prefer)


def _among(hosts: frozenset[int]) -> str:
    return " or ".join(f"host = 'h{host}'" for host in sorted(hosts)) or "host = 'none'"


def site(labs: list[int]) -> Site:
    return Site(
        [
            Resource(host * CORES + core + 1, {"host": f"h{host}", "lab": f"l{labs[host]}"})
            for host in range(HOSTS)
            for core in range(CORES)
        ],
        levels=("host", "core"),
    )


some_hosts = st.frozensets(st.integers(0, HOSTS - 1), min_size=1)


def some_members(draw: st.DrawFn) -> list[Wanted]:
    """Up to five members, of which one may ask for several hosts: there are few enough ways to try them all."""
    number = draw(st.integers(1, 5))
    several = draw(st.integers(0, number - 1))
    return [
        Wanted(
            draw(st.integers(1, 3)) if at == several else 1,
            draw(some_hosts),
            draw(st.none() | some_hosts),
            draw(st.integers(1, CORES)),
        )
        for at in range(number)
    ]


members = st.composite(some_members)()


def brute(
    wanted: list[Wanted], free: list[int], labs: list[int], *, same: bool, share: bool
) -> list[tuple[tuple[int, ...], ...]]:
    """All ways to give hosts to all members; `free`: so many cores of each host are."""
    found: list[tuple[tuple[int, ...], ...]] = []

    def rest(at: int, left: list[int], taken: frozenset[int], way: tuple[tuple[int, ...], ...]) -> None:
        if at == len(wanted):
            found.append(way)
            return
        member = wanted[at]
        may = [
            host for host in sorted(member.hosts) if left[host] >= member.cores and (share or host not in taken)
        ]
        for some in combinations(may, member.number):
            used = [labs[host] for each in (*way, some) for host in each]
            if same and len(set(used)) > 1:
                continue
            after = left[:]
            for host in some:
                after[host] -= member.cores
            rest(at + 1, after, taken | set(some), (*way, some))

    rest(0, free, frozenset(), ())
    return found


def met(wanted: list[Wanted], way: tuple[tuple[int, ...], ...]) -> int:
    return sum(
        1 for member, hosts in zip(wanted, way, strict=True) for host in hosts if host in (member.liked or ())
    )


@settings(max_examples=60)
@given(
    wanted=members,
    free=st.lists(st.integers(0, CORES), min_size=HOSTS, max_size=HOSTS),
    labs=st.lists(st.integers(0, 1), min_size=HOSTS, max_size=HOSTS),
    same=st.booleans(),
    share=st.booleans(),
)
def test_members_get_the_best_hosts_exactly_when_there_are_enough(
    wanted: list[Wanted], free: list[int], labs: list[int], same: bool, share: bool
) -> None:
    here = site(labs)
    shape = GangShape(
        GangTerms(tuple(each.terms() for each in wanted), "lab" if same else "", share),
        here,
        within=here.everything,
    )
    mask = here.mask(host * CORES + core + 1 for host in range(HOSTS) for core in range(free[host]))
    parts = shape.parts(mask)
    ways = brute(wanted, free, labs, same=same, share=share)
    assert (parts is not None) == bool(ways)
    if parts is None:
        return
    taken = 0
    for member, part in zip(wanted, parts, strict=True):
        assert not part & taken
        assert part.bit_count() == member.number * member.cores
        taken |= part
    assert not taken & ~mask
    way = tuple(tuple(int(name[1:]) for name in here.hosts_of(part)) for part in parts)
    best = max(met(wanted, each) for each in ways)
    assert met(wanted, way) == best
    assert way == min(each for each in ways if met(wanted, each) == best)
    # What they take divides among them in the same way again.
    assert shape.parts(taken) == parts


def test_a_gang_may_have_more_members_than_calls_may_be_nested() -> None:
    members = (MemberTerms(parse_request("/core=1")),) * 400
    here = Site([Resource(at, {"host": f"h{at}"}) for at in range(1, 401)], levels=("host", "core"))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 200)
    try:
        parts = GangShape(GangTerms(members), here, within=here.everything).parts(here.everything)
    finally:
        sys.setrecursionlimit(limit)
    assert parts == tuple(1 << at for at in range(400))
