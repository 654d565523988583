"""Groups of a request on small sites, against every way to take them.

Sites are drawn with levels that lie apart or interleave, properties that some resources lack, and resources that
may not be used.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.plan.language.request import ALL, BEST, HALF_BEST, Alternative, Level, ResourceGroup
from rota.plan.site.resources import Resource, Site
from rota.plan.timeline.shapes import Blocks, Shape
from tests.dose import dose, half
from tests.plan.brute import WHERE, Naive

P32 = [
    Resource(id, {"host": f"n{(id - 1) // 8}", "h0": (id - 1) // 16, "h2": (id - 1) // 4}) for id in range(1, 33)
]


@st.composite
def sites(draw: st.DrawFn, most: int = 12) -> list[Resource]:
    number = draw(st.integers(1, most))
    found = []
    for id in range(1, number + 1):
        values: dict[str, object] = {"host": draw(st.sampled_from("abc"))}
        values["gpu"] = draw(st.booleans())
        if draw(st.integers(0, 4)):
            values["switch"] = draw(st.sampled_from("xy"))
        if draw(st.booleans()):
            values["speed"] = draw(st.integers(1, 3))
        found.append(Resource(id, values))
    if draw(st.booleans()):  # side by side, as sites mostly are
        hosts = sorted(str(each.values["host"]) for each in found)
        found = [Resource(each.id, {**each.values, "host": host}) for each, host in zip(found, hosts, strict=True)]
    return found


@st.composite
def groups(draw: st.DrawFn) -> ResourceGroup:
    where = draw(st.sampled_from(sorted(WHERE)))
    names = draw(
        st.sampled_from(
            (
                ("core",), ("host",), ("nodes",), ("switch",), ("host", "core"), ("switch", "host"),
                ("host", "switch"), ("switch", "core"), ("switch", "host", "core"), ("speed",), ("gpu", "host"),
            )
        )
    )  # fmt: skip
    numbers: list[int | str] = [draw(st.integers(1, 3)) for _name in names]
    if len(names) == 1 and draw(st.integers(0, 3)) == 0:
        numbers = [draw(st.sampled_from((ALL, BEST, HALF_BEST)))]
    return ResourceGroup(tuple(Level(name, number) for name, number in zip(names, numbers, strict=True)), where)


@st.composite
def cases(draw: st.DrawFn, *, most: int = 12, least: int = 1, groups_most: int = 1) -> tuple:
    resources = draw(sites(most))
    ids = [each.id for each in resources]
    usable = draw(st.sets(st.sampled_from(ids))) if draw(st.integers(0, 2)) == 0 else set(ids)
    free = draw(st.sets(st.sampled_from(ids))) if draw(st.booleans()) else set(ids)
    some = draw(st.lists(groups(), min_size=least, max_size=groups_most))
    return resources, usable, free, Alternative(tuple(some))


def made(resources: list[Resource], usable: set[int], alternative: Alternative) -> tuple[Site, Shape, Naive]:
    kinds = {"host": "text", "switch": "text", "gpu": "yesno", "speed": "integer"}
    site = Site(resources, levels=("switch", "host", "core"), kinds=kinds, usable=usable)
    return site, Shape(alternative, site, within=site.usable), Naive(resources, usable)


@dose(half(150))
@given(cases())
def test_one_group_takes_the_preferred_of_all_ways(case: tuple) -> None:
    resources, usable, free, alternative = case
    site, shape, naive = made(resources, usable, alternative)
    taken = site.ids(shape.choose(site.mask(free)))
    assert taken == sorted(naive.first(alternative.groups[0], frozenset(free)))


@dose(half(150))
@given(cases())
def test_what_does_not_fit_is_known_not_to_fit(case: tuple) -> None:
    resources, usable, free, alternative = case
    site, shape, naive = made(resources, usable, alternative)
    fits = bool(naive.first(alternative.groups[0], frozenset(free)))
    if fits:
        assert shape.may_fit(site.mask(free))
        assert shape.possible
        assert len(naive.first(alternative.groups[0], frozenset(free))) >= shape.least
    if shape.possible:
        everything = naive.first(alternative.groups[0], frozenset(usable))
        assert everything
        assert not everything & set(site.ids(site.everything & ~shape.eligible))


@dose(half(150))
@given(cases(least=2, groups_most=3))
def test_groups_that_take_different_resources_are_found_whenever_they_can_be(case: tuple) -> None:
    resources, usable, free, alternative = case
    site, shape, naive = made(resources, usable, alternative)
    taken = frozenset(site.ids(shape.choose(site.mask(free))))
    if any(level.number in (BEST, HALF_BEST) for group in alternative.groups for level in group.levels):
        return  # how much these take depends on what the others leave
    possible = bool(naive.search(alternative.groups, frozenset(free)))
    assert bool(taken) == possible or shape.bounded
    assert taken <= set(free) & set(usable)
    if taken:
        assert naive.search(alternative.groups, taken) == taken or _covers(naive, alternative, taken)


def test_all_of_nothing_cannot_be_had_beside_other_groups() -> None:
    resources = [Resource(id, {"host": "a", "gpu": False}) for id in (1, 2)]
    one = ResourceGroup((Level("core", 1),))
    none = ResourceGroup((Level("core", ALL),), where="gpu = true")
    _site, shape, _naive = made(resources, {1, 2}, Alternative((one, none, one)))
    assert not shape.possible


def _covers(naive: Naive, alternative: Alternative, taken: frozenset[int]) -> bool:
    """Is there a way to give all that was taken, and nothing else, to the groups?"""

    def rest(index: int, left: frozenset[int]) -> bool:
        if index == len(alternative.groups):
            return not left
        return any(rest(index + 1, left - some) for some in naive.ways(alternative.groups[index], left))

    return rest(0, taken)


@dose(half(150))
@given(cases(), st.data())
def test_hosts_that_lack_something_are_as_if_they_were_not_free(case: tuple, data: st.DataObject) -> None:
    resources, usable, free, alternative = case
    site, shape, naive = made(resources, usable, alternative)
    lacking = data.draw(st.sets(st.sampled_from("abc")))
    without = {each.id for each in resources if each.values["host"] in lacking}
    short = site.mask(without)
    taken = site.ids(shape.choose(site.mask(free), lambda mask: mask & short))
    assert taken == sorted(naive.first(alternative.groups[0], frozenset(free - without)))


@dose(half(150))
@given(st.data())
def test_blocks_answer_as_a_loop_over_them_would(data: st.DataObject) -> None:
    owner = data.draw(st.lists(st.integers(0, 5), max_size=24))
    if data.draw(st.booleans()):
        owner.sort()
    members: dict[int, list[int]] = {}
    for position, block in enumerate(owner):
        if block:  # those of block 0 are in none
            members.setdefault(block, []).append(position)
    blocks = Blocks(sorted(members.values()))
    masks = [sum(1 << position for position in each) for each in sorted(members.values())]
    free = data.draw(st.integers(0, (1 << len(owner)) - 1))
    number = data.draw(st.integers(1, 6))
    by_mark = {blocks.of[mark]: mark for mark in blocks.of}
    assert sorted(by_mark) == sorted(masks)
    assert blocks.whole(free) == sum(by_mark[mask] for mask in masks if free & mask == mask)
    enough = [mask for mask in masks if (free & mask).bit_count() >= number]
    assert blocks.with_at_least(free & blocks.union, number) == sum(by_mark[mask] for mask in enough)
    chosen = [mask for mask in masks if data.draw(st.booleans())]
    assert blocks.expand(sum(by_mark[mask] for mask in chosen)) == sum(chosen)


def test_upper_levels_need_not_be_whole() -> None:
    site = Site(P32, levels=("h0", "host", "h2", "core"))

    def take(*levels: tuple[str, int]) -> str:
        group = ResourceGroup(tuple(Level(name, number) for name, number in levels))
        return site.spans(Shape(Alternative((group,)), site, within=site.usable).choose(site.everything))

    assert take(("h0", 2), ("host", 1)) == "1-8,17-24"
    assert take(("h0", 2), ("host", 1), ("h2", 1)) == "1-4,17-20"
    assert take(("h0", 2), ("host", 2), ("h2", 1)) == "1-4,9-12,17-20,25-28"
    assert take(("h0", 1), ("host", 3)) == ""


@pytest.mark.parametrize(("word", "taken"), [(ALL, ""), (BEST, "9-32"), (HALF_BEST, "9-16")])
def test_words_instead_of_a_number_of_hosts(word: str, taken: str) -> None:
    site = Site(P32)
    shape = Shape(Alternative((ResourceGroup((Level("nodes", word),)),)), site, within=site.usable)
    assert site.spans(shape.choose(site.everything & ~1)) == taken
