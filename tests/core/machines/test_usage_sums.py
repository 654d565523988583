"""The time of machines in each state adds up exactly, over any window."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from rota.core.machines.machine_states import UNKNOWN, Condition, MachineState, NodeState, Usage, machine_state
from rota.core.machines.usage_sums import spans, sums, total
from rota.core.rows import MachineRow

DAY = 86_400 * 1_000_000
HOUR = DAY // 24


def at(day: int, hour: int = 0) -> int:
    return int(datetime(2026, 1, day, tzinfo=UTC).timestamp()) * 1_000_000 + hour * HOUR


def test_broken_then_automated_then_used_by_hand_then_a_job_adds_up_to_the_window() -> None:
    rows = [
        MachineRow("a", at(1) - 5 * DAY, "broken", "idle", "alive"),
        MachineRow("a", at(2), "automated", "idle", "alive"),
        MachineRow("a", at(3), "manual", "running", "alive"),
        MachineRow("a", at(3, 12), "automated", "idle", "alive"),
        MachineRow("a", at(4, 12), "automated", "running", "alive"),
    ]
    found = sums(rows, since=at(1), until=at(5))["a"]
    assert found == {
        MachineState("broken", "idle", "alive"): DAY,
        MachineState("automated", "idle", "alive"): 2 * DAY,
        MachineState("manual", "running", "alive"): 12 * HOUR,
        MachineState("automated", "running", "alive"): 12 * HOUR,
    }


def test_before_its_first_row_a_machine_is_unknown() -> None:
    row = MachineRow("a", 70, "automated", "idle", "alive")
    assert sums([row], since=50, until=100, hosts=["a", "b"]) == {
        "a": {UNKNOWN: 20, MachineState("automated", "idle", "alive"): 30},
        "b": {UNKNOWN: 50},
    }
    assert sums([row], since=10, until=70)["a"] == {UNKNOWN: 60}


def test_an_empty_window_has_no_time() -> None:
    assert sums([MachineRow("a", 1, "automated", "idle", "alive")], since=5, until=5, hosts=["b"]) == {}


states = st.builds(machine_state, st.sampled_from(Condition), st.sampled_from(Usage), st.sampled_from(NodeState))
histories = st.dictionaries(
    st.sampled_from("abc"), st.lists(st.tuples(st.integers(0, 1000), states), unique_by=lambda each: each[0])
)


@given(histories, st.lists(st.integers(0, 1000), min_size=3, max_size=3, unique=True))
def test_every_window_is_split_without_gaps_and_parts_add_up_to_the_whole(history, cuts) -> None:
    rows = [MachineRow(host, when, *what) for host in sorted(history) for when, what in sorted(history[host])]
    first, middle, last = sorted(cuts)

    def split(since: int, until: int) -> dict[str, dict[MachineState, int]]:
        return sums(rows, since=since, until=until, hosts="abc")

    whole, one, two = split(first, last), split(first, middle), split(middle, last)
    for host in "abc":
        assert sum(whole[host].values()) == last - first
        assert total([one[host], two[host]]) == whole[host]
        its = [span for span in spans(rows, since=first, until=last, hosts="abc") if span.host == host]
        assert [span.at for span in its] == [first, *(span.until for span in its[:-1])]
        assert its[-1].until == last
