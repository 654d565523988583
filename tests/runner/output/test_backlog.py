"""What a reader has not taken is never lost while it is waited for, whatever is printed and however it reads."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rota import spool as spool_module
from rota.runner.output.audience import Audience, Follower
from rota.runner.output.capture import Capture
from rota.spool import BLOCK, Spool
from tests.dose import dose


class _Task:
    """As much of a task as its audience looks at."""

    def __init__(self, keep: int) -> None:
        self.out = Capture(keep)
        self.err: Capture | None = None


steps = st.lists(
    st.tuples(st.sampled_from(["print", "read", "take", "lose"]), st.integers(1, 90_000)), min_size=1, max_size=60
)


@dose(40)
@given(steps, st.sampled_from([4096, 50_000, 1 << 20]), st.integers(0, 6), st.booleans())
def test_a_reader_that_is_waited_for_gets_every_byte(
    steps: list[tuple[str, int]], keep: int, blocks: int, ends: bool
) -> None:
    spool = Spool("/tmp", most=blocks * BLOCK)
    task = _Task(keep)
    audience = Audience(task)  # type: ignore[arg-type]
    follower = Follower((1, 1), tail=1, hold=True)
    audience.add(follower)
    written = seen = b""
    waited = True  #: until somebody stops waiting
    for what, size in steps:
        if what == "print":
            allowed = task.out.keep - task.out.total
            size = min(size, 65536, allowed) if allowed > 0 else min(size, 65536)
            if allowed > 0 or audience.admits(0, 2 * 65536, spool):
                data = os.urandom(1) * size
                task.out.add(data)
                written += data
        elif what == "read" and follower.sent[0] < task.out.total:
            at, data = task.out.read(follower.sent[0], size)
            assert written[at : at + len(data)] == data
            assert not waited or (data and at == follower.sent[0])
            seen += data
            follower.sent[0] = at + len(data) if data else task.out.total
        elif what == "take":
            audience.took(1, [min(follower.sent[0], follower.taken[0] + size), 0], -1)
        elif what == "lose" and size < 2000:
            audience.unstrict()
            waited = False
        assert spool.used <= blocks * BLOCK
        assert not waited or task.out.memory <= keep + (1 << 20)
    if ends:
        audience.over = True
        audience.park(spool)
    while follower.sent[0] < task.out.total:
        at, data = task.out.read(follower.sent[0], 70_000)
        assert written[at : at + len(data)] == data
        assert not waited or (data and at == follower.sent[0])
        seen += data
        follower.sent[0] = at + len(data) if data else task.out.total
        audience.took(1, [follower.sent[0], 0], -1)
    if waited:
        assert seen == written
    audience.close()
    assert spool.used == 0
    spool.close()


@dose(40)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(1, 2 * BLOCK)), max_size=40))
def test_queues_share_a_file_and_give_their_room_back(steps: list[tuple[int, bool, int]]) -> None:
    spool = Spool("/tmp", most=8 * BLOCK)
    queues = [spool.queue(at) for at in (0, 7, BLOCK - 1)]
    model = [b"", b"", b""]
    for which, adds, size in steps:
        queue = queues[which]
        if adds:
            data = os.urandom(1) * size
            try:
                queue.append(data)
            except OSError:
                assert spool.room() < size + BLOCK
            else:
                model[which] += data
        else:
            queue.free(queue.at + size)
            model[which] = model[which][size:]
        assert queue.end - queue.at == len(model[which])
        if model[which]:
            assert (
                queue.read(queue.at, size) == model[which][: min(size, BLOCK)][: len(queue.read(queue.at, size))]
            )
    for queue, expected in zip(queues, model, strict=True):
        found = b""
        while part := queue.read(queue.at + len(found), BLOCK) if len(found) < queue.end - queue.at else b"":
            found += part
        assert found == expected
        queue.close()
    assert spool.used == 0
    spool.close()


def test_the_file_is_private_has_no_name_and_shrinks(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path))
    queue = spool.queue(0)
    queue.append(b"x" * (3 * BLOCK))
    assert list(tmp_path.iterdir()) == []
    facts = os.fstat(spool._fd)
    assert (facts.st_nlink, facts.st_mode & 0o777, facts.st_size) == (0, 0o600, 3 * BLOCK)
    queue.free(3 * BLOCK)
    assert os.fstat(spool._fd).st_size == 0
    spool.close()


def test_where_files_without_names_are_not_to_be_had_one_is_unlinked(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path))
    before, spool_module.os.O_TMPFILE = os.O_TMPFILE, os.O_DIRECTORY  # type: ignore[misc]
    try:
        spool.queue(0).append(b"x")
    finally:
        spool_module.os.O_TMPFILE = before  # type: ignore[misc]
    assert list(tmp_path.iterdir()) == []
    assert os.fstat(spool._fd).st_mode & 0o777 == 0o600
    spool.close()


def test_a_disk_that_is_nearly_full_is_left_to_others(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path), most=8 * BLOCK, spare=1 << 60)
    assert spool.room() == 0
