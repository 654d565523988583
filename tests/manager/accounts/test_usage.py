"""Seconds of hosts in each state add up exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.changes import Changes
from rota.core.machines.machine_states import WORDS
from rota.errors import BadInput
from rota.manager.accounts import usage
from rota.store.memory.store import MemoryStore
from rota.wire import messages as m
from tests.core.machines.rows import machine_row

S = 1_000_000


def stored(*rows: tuple[str, int, str]) -> MemoryStore:
    store = MemoryStore()
    changes = Changes()
    changes.machines = [machine_row(*row) for row in rows]
    store.commit(changes)
    return store


def test_a_window_is_split_into_seconds_of_each_state() -> None:
    store = stored(
        ("a", 100 * S, "idle"), ("a", 200 * S, "busy"), ("a", 260 * S, "drained"), ("a", 270 * S, "away"),
        ("a", 290 * S, "suspected"), ("a", 300 * S, "busy"), ("b", 150 * S, "busy"),
    )  # fmt: skip
    found = usage.usage(store, m.GetUsage(1, 150.0, 310.0))
    assert [(each.host, each.busy_s, each.idle_s, each.down_s) for each in found.hosts] == [
        ("a", 70.0, 50.0, 40.0),
        ("b", 160.0, 0.0, 0.0),
    ]
    assert (found.since.timestamp(), found.until.timestamp()) == (150.0, 310.0)


def test_nothing_is_said_of_the_time_before_a_host_was_known() -> None:
    (host,) = usage.usage(stored(("a", 100 * S, "idle")), m.GetUsage(1, 50.0, 110.0)).hosts
    assert (host.busy_s, host.idle_s, host.down_s) == (0.0, 10.0, 0.0)


@given(
    st.lists(st.tuples(st.integers(1, 10**12), st.sampled_from(WORDS)), max_size=20, unique_by=lambda row: row[0]),
    st.lists(st.integers(0, 10**12), min_size=3, max_size=3, unique=True),
)
def test_parts_of_a_window_add_up_to_the_whole(rows: list[tuple[int, str]], cuts: list[int]) -> None:
    store = stored(*(("a", at, state) for at, state in rows))
    first, middle, last = sorted(cuts)

    def seconds(since: int, until: int) -> dict[str, int]:
        found = dict.fromkeys(WORDS, 0)
        for span in usage.spans(store.machine_rows(host="", since=since, until=until), since=since, until=until):
            found[span.state] += span.until - span.at
        return found

    whole, one, two = seconds(first, last), seconds(first, middle), seconds(middle, last)
    assert whole == {state: one[state] + two[state] for state in WORDS}
    known = max(0, last - max(first, min((at for at, _ in rows), default=last)))
    assert sum(whole.values()) == known


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    for since, until in [(5.0, 4.0), (float("inf"), None), (9e12, None), (1e10, None)]:
        with pytest.raises(BadInput):
            usage.usage(MemoryStore(), m.GetUsage(1, since, until))


def test_what_is_down_or_not_seen_is_no_capacity_and_what_sleeps_is() -> None:
    store = stored(
        ("a", 0, "busy"), ("a", 30 * S, "idle"), ("a", 60 * S, "drained"), ("a", 70 * S, "closed"),
        ("a", 80 * S, "away"), ("a", 90 * S, "unseen"), ("b", 0, "drained"),
        ("c", 0, "busy"), ("c", 40 * S, "asleep"),
    )  # fmt: skip
    found = usage.usage(store, m.GetUsage(1, 0.0, 100.0))
    assert {each.host: each.utilisation for each in found.hosts} == {"a": 0.5, "b": None, "c": 0.4}
    assert found.utilisation == pytest.approx(70 / 160)
