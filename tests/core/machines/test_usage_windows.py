"""The time of a machine is split over windows without losing a microsecond."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rota.core.machines.usage_sums import spans, sums, total
from rota.core.machines.usage_windows import window_sums
from tests.core.machines.rows import STATES, machine_row

WORDS = [*STATES, "away", "asleep", "drained"]


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.sampled_from(WORDS)), max_size=20, unique_by=lambda row: row[0]),
    st.lists(st.integers(0, 1100), min_size=2, max_size=8, unique=True),
)
def test_windows_add_up_to_their_length_and_to_the_whole(rows: list[tuple[int, str]], cuts: list[int]) -> None:
    edges = sorted(cuts)
    since, until = edges[0], edges[-1]
    history = [machine_row("a", at, word) for at, word in sorted(rows)]
    before = [row for row in history if row.at <= since][-1:]
    history = [*before, *(row for row in history if since < row.at < until)]
    found = window_sums(spans(history, since=since, until=until, hosts=("a",)), edges)
    assert [sum(each.values()) for each in found] == [b - a for a, b in pairwise(edges)]
    assert total(found) == sums(history, since=since, until=until, hosts=("a",))["a"]
