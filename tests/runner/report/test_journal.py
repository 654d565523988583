"""The journal tells the truth about every prefix of itself."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rota.core.attempts.leases import Finished
from rota.core.jobs.outcome import Outcome
from rota.runner.report import journal
from rota.runner.report.journal import Acked, Began, Contained, Ended, Intent, Over, Record, Spawned, Story, Void

BEGAN = Began("runner", "machine", "boot", 1, 2)

ids = st.integers(1, 5)
keys = st.tuples(ids, st.integers(1, 2), st.integers(1, 2**53))
records: st.SearchStrategy[Record] = st.one_of(
    st.builds(lambda key, scratch: Intent(*key, scratch), keys, st.booleans()),
    st.builds(lambda key, pid, at: Spawned(*key, pid, pid * 7, 1, at), keys, ids, st.floats(0, 2e9)),
    st.builds(lambda key, path: Contained(*key, path), keys, st.text(max_size=20)),
    st.builds(lambda key: Void(*key), keys),
    st.builds(lambda key, code: Over(Finished(*key, 1, Outcome(exit_code=code))), keys, ids),
    st.builds(lambda key, goes: Ended(Finished(*key, 1, Outcome(exit_code=1)), goes), keys, st.booleans()),
    st.builds(Acked, st.integers(0, 10)),
)
blocks = st.lists(st.lists(records, max_size=4), max_size=6)


@given(blocks, st.data())
def test_any_prefix_reads_as_the_blocks_that_are_whole(groups: list[list[Record]], data: st.DataObject) -> None:
    encoded = [journal.pack(group) for group in groups]
    whole = b"".join(encoded)
    cut = data.draw(st.integers(0, len(whole)))
    found, intact = journal.unpack(whole[:cut])
    expected: list[Record] = []
    length = 0
    for group, block in zip(groups, encoded, strict=True):
        length += len(block)
        if length > cut:
            break
        expected += group
    assert found == expected
    assert intact, "a torn end is no damage"


@given(blocks.filter(bool), st.data())
def test_damage_is_noticed_and_what_precedes_it_is_read(groups: list[list[Record]], data: st.DataObject) -> None:
    encoded = [journal.pack(group) for group in groups]
    at = data.draw(st.integers(0, sum(map(len, encoded)) - 1))
    whole = bytearray(b"".join(encoded))
    whole[at] ^= data.draw(st.integers(1, 255))
    found, _ = journal.unpack(bytes(whole))
    flat = [record for group in groups for record in group]
    before: list[Record] = []
    length = 0
    for group, block in zip(groups, encoded, strict=True):
        length += len(block)
        if length > at:
            break
        before += group
    assert found[: len(before)] == before
    assert found == flat[: len(found)], "nothing is made up"


@given(st.binary(max_size=200))
def test_garbage_is_never_an_error(data: bytes) -> None:
    journal.unpack(data)


@given(st.lists(records, max_size=30))
def test_a_story_never_fails_and_holds_only_intended_leases(entries: list[Record]) -> None:
    story = Story([BEGAN, *entries])
    intended = {(e.job, e.attempt, e.token) for e in entries if isinstance(e, Intent)}
    assert story.leases.keys() <= intended


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    log = journal.Journal(str(tmp_path), BEGAN)
    log.intend(journal.pack([Intent(1, 1, 11)]))
    log.add(Spawned(1, 1, 11, 4321, 99, 5, 100.0))
    assert journal.read(f"{tmp_path}/journal").leases[1, 1, 11].spawned is None, "buffered"
    log.intend(journal.pack([Intent(2, 1, 22, True)]))
    log.add(Over(Finished(1, 1, 11, 5, Outcome(exit_code=0))))
    log.add(Void(2, 1, 22))
    log.flush()
    story = journal.read(f"{tmp_path}/journal")
    assert story.began == BEGAN
    assert story.leases.keys() == {(1, 1, 11)}
    lease = story.leases[1, 1, 11]
    assert lease.spawned == Spawned(1, 1, 11, 4321, 99, 5, 100.0)
    assert lease.finished is not None


def test_compaction_keeps_what_matters(tmp_path: Path) -> None:
    log = journal.Journal(str(tmp_path), BEGAN)
    for n in range(1000):
        log.intend(journal.pack([Intent(n, 1, n)]))
    before = log.size
    log.compact([Intent(7, 1, 7)])
    log.intend(journal.pack([Intent(8, 1, 8)]))
    assert log.size < before / 100
    story = journal.read(f"{tmp_path}/journal")
    assert story.began == BEGAN
    assert story.leases.keys() == {(7, 1, 7), (8, 1, 8)}


def test_a_lock_can_be_taken_once(tmp_path: Path) -> None:
    assert journal.take_lock(str(tmp_path)) is None, "no lock yet"
    assert journal.take_lock(str(tmp_path), create=True) is not None
    assert journal.take_lock(str(tmp_path)) is None
    assert journal.take_lock(str(tmp_path / "missing"), create=True) is None


def test_a_journal_goes_on_after_its_writer_was_killed_in_the_middle_of_a_block(tmp_path: Path) -> None:
    first = journal.Journal(str(tmp_path), BEGAN)
    first.intend(journal.pack([Intent(1, 1, 7)]))
    first.close()
    with (tmp_path / "journal").open("ab") as file:
        file.write(journal.pack([Intent(2, 1, 8, scratch=True)])[:-3])
    second = journal.Journal(str(tmp_path), BEGAN)
    second.intend(journal.pack([Intent(3, 1, 9)]))
    second.close()
    story = journal.read(str(tmp_path / "journal"))
    assert story.whole
    assert set(story.leases) == {(1, 1, 7), (3, 1, 9)}
