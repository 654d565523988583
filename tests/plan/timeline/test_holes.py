"""Runs through spans that became free, against a plain look at every span."""

from __future__ import annotations

from math import inf
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from rota.plan.timeline.holes import Holes
from rota.plan.timeline.slots import Slots
from tests.dose import dose


def plainly(slots: Slots, holes: list[tuple[float, float]], number: int, length: float, now: float) -> float:
    """The start of the first run with so many free resources that is long enough and meets a hole."""
    begin: float | None = None
    for at, count in enumerate([*slots.counts, -1]):
        time = slots.times[at] if at < len(slots.times) else inf
        if count >= number:
            begin = max(time, now) if begin is None else begin
        elif begin is not None:
            if time - begin >= length and any(begin < end and start < time for start, end in holes):
                return begin
            begin = None
    return inf


@dose(100)
@given(data=st.data())
def test_a_search_for_something_better_begins_where_the_first_long_enough_run_does(data: st.DataObject) -> None:
    spans = data.draw(st.integers(1, 300), label="spans")  # runs may be longer than what is compared at once
    low = data.draw(st.integers(0, 2), label="low")
    random = Random(data.draw(st.integers(0, 2**32), label="seed"))
    slots = Slots(8)
    slots.times = [10.0 * each for each in range(spans)]
    slots.counts = [low if random.random() < 0.02 else random.randint(2, 8) for _ in range(spans)]
    now = float(random.randrange(10 * spans))
    number, length = data.draw(st.integers(1, 8), label="number"), float(random.randrange(1, 10 * spans))
    freed = [(at, at + random.randrange(1, 200)) for at in (float(random.randrange(10 * spans)) for _ in range(3))]
    ahead = [(max(start, now), end) for start, end in freed if end > now]
    holes = Holes(slots, now, list(freed))
    for _ in range(2):  # the second time from what is known of the first
        first = plainly(slots, ahead, number, length, now)
        assert holes.may_improve(number, length, inf) == (first if first < inf else None)
