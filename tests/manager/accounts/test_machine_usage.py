"""How machines spent their time: by host, group and property, in windows that add up."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from rota.core.changes import Changes
from rota.core.rows import MachineRow
from rota.errors import BadInput, NotFound, RotaError
from rota.manager.accounts.machine_usage import machine_usage
from rota.store.memory.store import MemoryStore
from rota.wire import messages as m
from rota.wire.usage_views import MachineUsageView

DAY = 86_400
IDLE, RUNNING = ("automated", "idle", "alive"), ("automated", "running", "alive")
BROKEN, MANUAL, GONE = ("broken", "idle", "alive"), ("manual", "running", "alive"), ("removed", "idle", "unknown")


def at(day: float) -> float:
    return datetime(2026, 1, 1, tzinfo=UTC).timestamp() + (day - 1) * DAY


def stored(*rows: tuple[str, float, tuple[str, str, str]]) -> MemoryStore:
    store = MemoryStore()
    changes = Changes()
    changes.machines = [MachineRow(host, int(at(day) * 1e6), *what) for host, day, what in rows]
    store.commit(changes)
    return store


def ask(store: MemoryStore, groups: dict[str, list[str]] | None = None, **more: Any) -> MachineUsageView:
    """The machines that exist now are those with an entry in `groups`; `lab` is a property of theirs."""
    known = groups or {}
    nodes: Any = [
        SimpleNamespace(host=host, groups=its, properties={"lab": host[0]}) for host, its in known.items()
    ]
    records: Any = {"property": {"lab": {}}}
    more = {"since": at(1), "until": at(5), **more}
    return machine_usage(store, m.GetMachineUsage(1, **more), nodes, records)


def days(view: MachineUsageView) -> dict[tuple[str, str, str], float]:
    found: dict[tuple[str, str, str], float] = {}
    for row in view.rows:
        key = (row.host, row.condition, row.usage)
        found[key] = found.get(key, 0.0) + row.seconds / DAY
    return found


def test_a_repaired_machine_with_manual_use_and_a_job() -> None:
    """Case 11 of the meaning of machines."""
    store = stored(
        ("a", 0, BROKEN), ("a", 2, IDLE), ("a", 3, MANUAL), ("a", 3.5, IDLE), ("a", 4.5, RUNNING), ("a", 5, IDLE)
    )
    assert days(ask(store, {"a": []})) == {
        ("a", "broken", "idle"): 1.0,
        ("a", "automated", "idle"): 2.0,
        ("a", "manual", "running"): 0.5,
        ("a", "automated", "running"): 0.5,
    }


def test_time_before_a_machine_joined_is_unknown() -> None:
    found = ask(stored(("a", 2, IDLE)), {"a": [], "b": []})
    assert days(found) == {
        ("a", "automated", "idle"): 3.0,
        ("a", "unknown", "unknown"): 1.0,
        ("b", "unknown", "unknown"): 4.0,
    }


def test_a_key_of_several_machines_has_the_sum_of_their_times() -> None:
    store = stored(("x1", 0, IDLE), ("x2", 0, RUNNING), ("y1", 0, IDLE))
    known = {"x1": ["red", "blue"], "x2": ["red"], "y1": []}
    by_group = ask(store, known, by="group")
    assert by_group.machines == {"": 1, "blue": 1, "red": 2}
    assert days(by_group)["red", "automated", "running"] == 4.0
    assert days(by_group)["red", "automated", "idle"] == 4.0
    assert days(ask(store, known, by="lab")) == {
        ("x", "automated", "idle"): 4.0,
        ("x", "automated", "running"): 4.0,
        ("y", "automated", "idle"): 4.0,
    }
    assert ask(store, known, by="").machines == {"": 3}


def test_days_are_those_of_the_zone_and_the_ends_are_exact() -> None:
    store = stored(("a", 0, IDLE), ("a", 2.75, RUNNING))
    found = ask(store, {"a": []}, since=at(2.5), until=at(4.25), window="day", zone="Europe/Paris")
    assert [edge.isoformat() for edge in found.edges] == [
        "2026-01-02T12:00:00+00:00", "2026-01-02T23:00:00+00:00", "2026-01-03T23:00:00+00:00",
        "2026-01-04T06:00:00+00:00",
    ]  # fmt: skip
    assert [(row.at, row.usage, row.seconds) for row in found.rows] == [
        (found.edges[0], "idle", 6 * 3600.0), (found.edges[0], "running", 5 * 3600.0),
        (found.edges[1], "running", 24 * 3600.0), (found.edges[2], "running", 7 * 3600.0),
    ]  # fmt: skip


def test_a_removed_machine_is_told_of_the_time_in_which_it_was_there() -> None:
    store = stored(("a", 0, IDLE), ("a", 3, GONE))
    assert days(ask(store)) == {("a", "automated", "idle"): 2.0, ("a", "removed", "idle"): 2.0}
    assert ask(store, since=at(4)).rows == []
    assert len(ask(store, since=at(4), hosts=["a"]).rows) == 1


def test_the_time_to_come_is_cut_off() -> None:
    found = ask(stored(("a", 0, IDLE)), {"a": []}, until=4e9)
    assert found.until <= datetime.now(UTC)
    assert sum(row.seconds for row in found.rows) == pytest.approx((found.until - found.since).total_seconds())


@pytest.mark.parametrize(
    ("more", "kind", "said"),
    [
        ({"since": at(5), "until": at(4)}, BadInput, "'to' is not after 'from'"),
        ({"since": at(5), "until": at(5)}, BadInput, "'to' is not after 'from'"),
        ({"since": float("nan")}, BadInput, "'to' is not after 'from'"),
        ({"since": 4e9, "until": 5e9}, BadInput, "'from' lies in the future"),
        ({"hosts": ["a", "nosuch"]}, NotFound, "there is no host 'nosuch'"),
        ({"by": "nosuch"}, BadInput, "there is no property 'nosuch'"),
        ({"by": "core"}, BadInput, "'core' is a property of cores"),
        ({"window": "fortnight"}, BadInput, "window: "),
        ({"zone": "Europe/Nowhere"}, BadInput, "there is no time zone 'Europe/Nowhere'"),
    ],
)
def test_what_makes_no_sense_is_refused(more: dict[str, Any], kind: type[RotaError], said: str) -> None:
    with pytest.raises(kind, match=said):
        ask(stored(("a", 0, IDLE)), {"a": []}, **more)


def test_too_many_sums_are_refused() -> None:
    store = stored(*((f"n{n}", 0, IDLE) for n in range(600)))
    with pytest.raises(BadInput, match="more than 50,000 sums"):
        ask(store, {f"n{n}": [] for n in range(600)}, window="hour")
