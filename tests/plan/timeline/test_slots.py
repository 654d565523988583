"""Free resources over time against a model that looks at every second.

The model holds, for each second, the set of what is free. Where the planner jumps, it walks.
"""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from rota.plan.language.request import Alternative, Level, ResourceGroup
from rota.plan.site.resources import Resource, Site
from rota.plan.timeline.search_bounds import Bounds
from rota.plan.timeline.shapes import Shape
from rota.plan.timeline.slots import Choosing, CountedSlots, Slots
from tests.dose import dose, half

FAR = 40
SITE = Site([Resource(id, {"host": "aabbbc"[id - 1]}) for id in range(1, 7)])
GROUPS = (
    *(ResourceGroup((Level("core", number),)) for number in (1, 2, 3, 6)),
    ResourceGroup((Level("host", 1),)),
    ResourceGroup((Level("host", 2),)),
    ResourceGroup((Level("host", 2), Level("core", 1))),
)
SHAPES = [Shape(Alternative((group,)), SITE, within=SITE.usable) for group in GROUPS]

spans = st.tuples(st.integers(0, FAR), st.one_of(st.integers(0, FAR), st.just(inf)))


class Seconds:
    """What is free in each second."""

    def __init__(self, everything: int) -> None:
        self.free = [everything] * (2 * FAR)

    def change(self, start: int, end: float, what) -> None:
        for second in range(start, min(2 * FAR, int(min(end, 2 * FAR)))):
            self.free[second] = what(self.free[second])

    def common(self, start: int, end: int) -> int:
        found = self.free[min(start, 2 * FAR - 1)]
        for second in range(start, end):
            found &= self.free[min(second, 2 * FAR - 1)]
        return found

    def earliest(self, shape: Shape, length: int, *, after: int, before: float = inf, ok=lambda _start: -1):
        for start in range(after, 2 * FAR):
            if start >= before:
                return None
            taken = shape.choose(self.common(start, start + length) & ok(start))
            if taken:
                return start, taken
        return None


@st.composite
def histories(draw: st.DrawFn) -> tuple[Slots, Seconds]:
    slots, seconds = Slots(SITE.everything, 0), Seconds(SITE.everything)
    for start, end in draw(st.lists(spans, max_size=8)):
        what = draw(st.integers(1, SITE.everything))
        if draw(st.booleans()):
            slots.cover(what, start, end)
            seconds.change(start, end, lambda free, what=what: free & ~what)
        else:
            slots.uncover(what, start, end)
            seconds.change(start, end, lambda free, what=what: free | what)
    for start, end in draw(st.lists(spans, max_size=8)):
        if start >= end:
            continue
        what = slots.common(start, end) & draw(st.integers(1, SITE.everything))
        slots.take(what, start, end)
        seconds.change(start, end, lambda free, what=what: free & ~what)
        if draw(st.integers(0, 2)) == 0:
            slots.give(what, start, end)
            seconds.change(start, end, lambda free, what=what: free | what)
    return slots, seconds


@dose(half(200))
@given(histories())
def test_what_is_free_is_what_was_not_taken(history: tuple[Slots, Seconds]) -> None:
    slots, seconds = history
    assert [slots.free[slots.index(second)] for second in range(2 * FAR)] == seconds.free
    assert slots.counts == [free.bit_count() for free in slots.free]
    assert all(one < other for one, other in zip(slots.times, slots.times[1:], strict=False))
    copy = slots.copy()
    copy.cover(SITE.everything, 0, inf)
    assert [slots.free[slots.index(second)] for second in range(2 * FAR)] == seconds.free


@dose(half(200))
@given(histories(), st.integers(0, FAR), st.integers(1, FAR))
def test_what_is_common_is_free_in_every_second(history: tuple[Slots, Seconds], start: int, length: int) -> None:
    slots, seconds = history
    assert slots.common(start, start + length) == seconds.common(start, start + length)


@dose(half(200))
@given(
    histories(),
    st.sampled_from(SHAPES),
    st.integers(1, 20),
    st.integers(0, FAR),
    st.one_of(st.just(inf), st.integers(0, FAR)),
)
def test_the_earliest_start_is_the_first_second_that_does(
    history: tuple[Slots, Seconds], shape: Shape, length: int, after: int, before: float
) -> None:
    slots, seconds = history
    found = slots.earliest(shape, length, after=after, before=before)
    assert found == seconds.earliest(shape, length, after=after, before=before)


@dose(half(200))
@given(
    histories(),
    st.sampled_from(SHAPES),
    st.integers(1, 20),
    st.integers(0, FAR),
    st.lists(st.tuples(st.integers(1, FAR), st.integers(1, SITE.everything)), max_size=3),
)
def test_moments_at_which_more_may_be_chosen_are_tried_as_well(
    history: tuple[Slots, Seconds], shape: Shape, length: int, after: int, obstacles: list[tuple[int, int]]
) -> None:
    slots, seconds = history

    def allowed(start: float) -> int:
        found = SITE.everything
        for until, mask in obstacles:
            if until > start:
                found &= ~mask
        return found

    found = slots.earliest(
        shape,
        length,
        after=after,
        choosing=Choosing(
            lambda free, start, _end: shape.choose(free & allowed(start)),
            also=sorted({until for until, _mask in obstacles}),
        ),
    )
    assert found == seconds.earliest(shape, length, after=after, ok=allowed)


@dose(half(200))
@given(st.data(), st.integers(1, 6), st.integers(1, 20), st.integers(0, FAR))
def test_numbers_alone_are_counted_second_by_second(
    data: st.DataObject, number: int, length: int, after: int
) -> None:
    slots, seconds = CountedSlots(6, 0), [6] * (2 * FAR)
    for start, end in data.draw(st.lists(spans, max_size=8)):
        if start >= end:
            continue
        some = data.draw(st.integers(0, max(0, slots.common(start, end))))
        slots.take(some, start, end)
        for second in range(start, int(min(end, 2 * FAR))):
            seconds[second] -= some
    assert [slots.free[slots.index(second)] for second in range(2 * FAR)] == seconds
    shape = Shape(Alternative((ResourceGroup((Level("core", number),)),)), SITE, within=SITE.usable)
    expected = None
    for start in range(after, 2 * FAR):
        window = seconds[start : start + length] + [seconds[-1]] * max(0, start + length - 2 * FAR)
        if min(window) >= number:
            expected = (start, number)
            break
    assert slots.earliest(shape, length, after=after) == expected


@dose(half(200))
@given(st.data())
def test_a_bound_never_skips_a_start_that_is_possible(data: st.DataObject) -> None:
    """Only taking goes on, as it must for what was proved to stay true."""
    slots, bounds = Slots(SITE.everything, 0), Bounds()
    for _ in range(data.draw(st.integers(1, 15))):
        number = data.draw(st.integers(1, 6))
        length = data.draw(
            st.one_of(st.integers(1, 30), st.floats(0.25, 30).map(lambda each: round(each * 4) / 4))
        )
        shape = Shape(Alternative((ResourceGroup((Level("core", number),)),)), SITE, within=SITE.usable)
        found = slots.earliest(shape, length, after=0)
        assert found is not None
        assert bounds.start(number, length) <= found[0]
        bounds.proved(number, length, found[0])
        if data.draw(st.booleans()):
            slots.take(found[1], found[0], found[0] + length)


@given(
    st.lists(st.tuples(spans, st.integers(0, SITE.everything)), max_size=8),
    st.integers(0, FAR // 2),
    st.booleans(),
)
def test_slots_in_which_some_hold_resources_are_the_same_in_one_pass(
    held: list[tuple[tuple[int, float], int]], now: int, apart: bool
) -> None:
    """With overlaps and without."""
    model = Seconds(SITE.everything)
    kept = []
    for (start, end), mask in held:
        if apart and any(
            model.free[second] & mask != mask for second in range(start, min(2 * FAR, int(min(end, 99))))
        ):
            continue
        kept.append((float(start), float(end), mask))
        model.change(start, end, lambda free, mask=mask: free & ~mask)
    slots = Slots.holding(SITE.everything, float(now), kept)
    for second in range(now, 2 * FAR):
        assert slots.common(second, second + 0.5) == model.free[second]
        assert slots.counts[slots.index(second)] == model.free[second].bit_count()
