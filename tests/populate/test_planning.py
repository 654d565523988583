"""Which keys go into which batch, and which batches are dead."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.populate.batch import Batch
from rota.populate.config.configuration import Bin, Table
from rota.populate.cycle.planning import claimed, pause_s, plan, wanted_of
from rota.populate.cycle.reconciling import Reconciler
from rota.populate.source.base import Key, Look, text_of
from rota.populate.transport.base import ENDED, LOST, QUEUED, RUNNING, UNKNOWN


def table(serial: int, parallel: int, bins: int = 1) -> Table:
    found = (*(Bin(where=f"hours <= {n}") for n in range(bins - 1)), Bin())
    return Table(name="lab.Trace", ttl_s=60, job_timeout_s=60, serial=serial, parallel=parallel, bins=found)


def keys(*numbers: int) -> list[Key]:
    return [{"recording": number} for number in numbers]


def planned(of: Table, *free: list[Key]) -> list[Batch]:
    tokens = (f"t{n}" for n in itertools.count())
    return plan(of, Look(free=list(free)), new_token=lambda: next(tokens))


def sizes(batches: list[Batch]) -> list[int]:
    return [len(batch.keys) for batch in batches]


def test_a_hundred_keys_of_serial_10_and_parallel_3_are_three_batches_of_ten() -> None:
    """Case 1."""
    found = planned(table(10, 3), keys(*range(100)))
    assert sizes(found) == [10, 10, 10]
    assert [key for batch in found for key in batch.keys] == keys(*range(30))


def test_batches_are_filled_one_after_the_other() -> None:
    """Case 1: 25 keys, parallel 5."""
    assert sizes(planned(table(10, 5), keys(*range(25)))) == [10, 10, 5]


def test_serial_and_parallel_hold_for_each_bin() -> None:
    found = planned(table(2, 1, bins=2), keys(1, 2, 3), keys(11, 12, 13))
    assert [(batch.bin.where, len(batch.keys)) for batch in found] == [("hours <= 0", 2), (None, 2)]


@given(
    serial=st.integers(1, 7),
    parallel=st.integers(1, 7),
    free=st.lists(st.lists(st.integers(0, 60), max_size=60), min_size=1, max_size=3),
)
def test_no_key_is_in_two_batches_of_a_cycle_and_quotas_hold(
    serial: int, parallel: int, free: list[list[int]]
) -> None:
    of = table(serial, parallel, bins=len(free))
    found = planned(of, *(keys(*each) for each in free))
    sent = [text_of(key) for batch in found for key in batch.keys]
    assert len(sent) == len(set(sent))
    assert len({batch.token for batch in found}) == len(found)
    seen: set[int] = set()
    for bin_, numbers in zip(of.bins, free, strict=True):
        mine = [batch for batch in found if batch.bin is bin_]
        expected = [number for number in dict.fromkeys(numbers) if number not in seen][: serial * parallel]
        seen.update(expected)
        # In their order, each batch full before the next begins, and no free key left out that has room.
        assert [key for batch in mine for key in batch.keys] == keys(*expected)
        assert all(len(batch.keys) == serial for batch in mine[:-1])
        assert len(mine) <= parallel


@given(began=st.floats(0, 1e6), took=st.floats(0, 1e4), target=st.floats(0, 1e4))
def test_a_cycle_starts_after_the_target_time_and_at_once_after_an_overrun(
    began: float, took: float, target: float
) -> None:
    pause = pause_s(began=began, ended=began + took, target_s=target)
    assert pause >= 0
    if took >= target:
        assert pause == pytest.approx(0, abs=1e-6)
    else:
        assert began + took + pause == pytest.approx(began + target)


@given(serial=st.integers(1, 1000), parallel=st.integers(1, 1000), bins=st.integers(1, 4))
def test_as_many_keys_are_asked_for_as_a_cycle_may_hand_out(serial: int, parallel: int, bins: int) -> None:
    of = table(serial, parallel, bins=bins)
    assert [(each.where, each.quota) for each in wanted_of(of)] == [
        (bin_.where, serial * parallel) for bin_ in of.bins
    ]


@given(got=st.sets(st.integers(0, 20)), serial=st.integers(1, 5))
def test_a_batch_is_sent_with_the_keys_that_it_got(got: set[int], serial: int) -> None:
    batches = planned(table(serial, 4), keys(*range(20)))
    theirs = {batch.token: [key for key in batch.keys if key["recording"] in got] for batch in batches}
    sent = claimed(batches, theirs)
    assert {batch.token: list(batch.keys) for batch in sent} == {
        token: found for token, found in theirs.items() if found
    }


def test_an_end_is_believed_at_once_and_silence_in_the_second_cycle() -> None:
    reconciler = Reconciler()
    held = ["ended", "lost", "queued", "running", "unknown", "unsaid"]
    signs = {"ended": ENDED, "lost": LOST, "queued": QUEUED, "running": RUNNING, "unknown": UNKNOWN}
    assert set(reconciler.dead(held, signs)) == {"ended", "lost"}
    assert set(reconciler.dead(["queued", "unknown", "unsaid"], signs)) == {"unknown", "unsaid"}


def test_a_batch_that_is_seen_again_is_alive() -> None:
    reconciler = Reconciler()
    assert reconciler.dead(["a"], {}) == {}
    assert reconciler.dead(["a"], {"a": RUNNING}) == {}
    assert reconciler.dead(["a"], {}) == {}
    assert set(reconciler.dead(["a"], {})) == {"a"}
