"""What every store tells of attempts that have ended, and that none of them is overlooked."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from rows import SPEC, an_add, attempt_row, changes, end_row
from tests.dose import dose

from rota.core.changes import Changes
from rota.plan.placement.given import Given, Pause
from rota.plan.size import Size
from rota.store.memory.store import MemoryStore
from rota.store.past import hours_of, id_ranges, place_of
from rota.store.sqlite import past
from rota.store.sqlite.store import SqliteStore

HOUR = 3600.0
_SIZE = Size(cpus=200, mem=1, disk=0, time_s=60.0)
_GIVENS = (
    None,
    Given(_SIZE, nodes=()),
    Given(_SIZE, "1-2", "0-1", (("h", 2),), 60.0, ("0-1",)),
    Given(_SIZE, "1,5", "0", (("h", 1), ("i", 1)), 60.0, ("0", "0")),
    Given(_SIZE, "1,5", "0", (("h", 1),), 60.0, ("0",), elsewhere=True),
    Given(_SIZE, "1-2", "0-1", (("h", 2),), 60.0, ("0-1",), pause=Pause(before_s=700.0)),
)


def ended(job: int, started_at: float | None, ended_at: float, **more: object) -> Changes:
    """An attempt that has ended, of a job of its own."""
    its = more.pop("given", None)
    made = an_add(job, submission=f"s{job}", spec_id=1)
    made.attempts = [
        attempt_row(
            job,
            host=more.pop("host", "h"),
            given=None if its is None else msgspec.json.encode(its).decode(),
            size=more.pop("size", None),
        )
    ]
    made.ends = [end_row(job, started_at=started_at, ended_at=ended_at, **more)]
    return made


def with_spec(store):
    store.commit(changes(specs=[(1, SPEC)]))
    return store


def test_what_lies_in_a_window_even_in_part_is_found(store, reopen):
    with_spec(store)
    for made in (
        ended(1, 100.0, 200.0),
        ended(2, 150.0, 5 * 86_400.0, outcome="failed"),
        ended(5000, 300.0, 400.0),
        ended(9000, None, 350.0),
        ended(9001, 300.0, 350.0, outcome="void"),
    ):
        store.commit(made)
    store = reopen(store)

    def found(since: float, until: float) -> list[int]:
        return [row.job for row in store.past(since=since, until=until, limit=10)]

    assert found(0.0, 1000.0) == [1, 2, 5000]
    assert found(199.0, 201.0) == [1, 2]
    assert found(200.0, 300.0) == [2], "a bar that ends where a window begins is not in it"
    assert found(86_400.0, 2 * 86_400.0) == [2]
    assert found(6 * 86_400.0, 7 * 86_400.0) == []
    (row,) = store.past(since=0.0, until=149.0, limit=10)
    assert (row.host, row.started_at, row.ended_at, row.outcome, row.spec) == ("h", 100.0, 200.0, "complete", 1)
    assert len(store.past(since=0.0, until=1000.0, limit=2)) == 2
    assert store.past_hosts(since=0.0, until=1000.0, limit=2) == (2, {"h"})
    assert store.past_hosts(since=0.0, until=1000.0, limit=9) == (3, {"h"})
    assert store.ended_between(since=200.0, until=400.0) == 2, "from the first moment on, and before the second"
    assert store.ended_between(since=0.0, until=HOUR) == 3
    assert store.ended_between(since=HOUR, until=500 * HOUR) == 1


def test_attempts_are_read_page_by_page_and_none_twice(store, monkeypatch):
    monkeypatch.setattr(past, "_PAGE", 2)
    with_spec(store)
    for job in (1, 2, 3, 9000):
        store.commit(ended(job, 100.0, 200.0))
    more = changes(attempts=[attempt_row(2, 2, host="i")], ends=[end_row(2, 2, started_at=300.0, ended_at=400.0)])
    store.commit(more)
    for limit in range(7):
        found = [(row.job, row.number) for row in store.past(since=0.0, until=1000.0, limit=limit)]
        assert found == [(1, 1), (2, 1), (2, 2), (3, 1), (9000, 1)][:limit]


def test_attempts_of_removed_jobs_are_gone(store):
    with_spec(store)
    store.commit(ended(1, 100.0, 200.0))
    store.commit(changes(removed=[1]))
    assert store.past(since=0.0, until=1000.0, limit=10) == []
    assert store.ended_between(since=0.0, until=HOUR) == 0


@given(st.floats(0, 1e9), st.floats(0, 1e6), st.integers(1, 1 << 40), st.floats(-1e6, 1e6), st.floats(0.001, 1e6))
def test_no_attempt_is_looked_for_in_the_wrong_place(
    started_at: float, lasted: float, job: int, before: float, length: float
) -> None:
    ended_at = started_at + lasted
    since = started_at - before
    until = since + length
    if not (started_at < until and ended_at > since and ended_at > 0):
        return
    place = place_of(job, started_at, ended_at)
    assert place is not None
    span, hour, block = place
    assert any(span == each and first <= hour <= last for each, first, last in hours_of(since, until))
    ((low, high),) = id_ranges([block])
    assert low <= job <= high


_attempts = st.lists(
    st.tuples(st.integers(1, 20_000), st.integers(0, 50_000), st.integers(0, 40_000), st.sampled_from(_GIVENS),
              st.sampled_from(["complete", "failed", "cancelled"]), st.booleans()),
    max_size=8, unique_by=lambda each: each[0],
)  # fmt: skip


@dose(25)
@given(_attempts, st.integers(0, 50_000), st.integers(1, 50_000), st.integers(1, 7))
def test_both_stores_say_the_same(attempts, since, length, slices):
    """Of rows and of sums, whatever was given and whenever it was."""
    with TemporaryDirectory() as directory:
        stores = [MemoryStore(), SqliteStore(Path(directory) / "home", reserve=0)]
        for store in stores:
            with_spec(store)
            for job, start, lasted, gives, outcome, sized in attempts:
                size = msgspec.json.encode(_SIZE).decode() if sized else None
                store.commit(
                    ended(job, float(start), float(start + lasted), given=gives, outcome=outcome, size=size)
                )
        window = {"since": float(since), "until": float(since + length)}
        rows = [store.past(**window, limit=100) for store in stores]
        assert rows[0] == rows[1]
        sums = [_added_up(store.past_sums(**window, slices=slices)) for store in stores]
        assert sums[0].keys() == sums[1].keys()
        for key, (counts, seconds) in sums[0].items():
            assert counts == sums[1][key][0]
            assert all(abs(a - b) < 1e-3 for a, b in zip(seconds, sums[1][key][1], strict=True))
        for store in stores:
            store.close()


def _added_up(sums):
    found = {}
    for row in sums:
        nodes = msgspec.json.decode(row.place) if row.place.startswith("[") else row.place
        counts, seconds = found.setdefault(
            (str(nodes), row.first, row.last, row.spec), ([0, 0, 0], [0.0, 0.0, 0.0])
        )
        counts[0] += row.attempts
        counts[1] += row.failed
        counts[2] += row.ended
        for at, more in enumerate((row.cpus, row.begin_s, row.end_s)):
            seconds[at] += more
    return found
