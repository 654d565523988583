"""Jobs that name the files of their output, and what is filled in: array places and used sizes too."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.jobs.element import Element
from rota.plan.size import Size
from rota.runner.start.output_files import expand
from rota.wire import messages as m
from tests.runner.manager import FakeManager

GRANT = m.Grant(7, 2, 1, 1, "true", 7)
SPEC = m.RunSpec(1, 1, "/", "anna", "align", "g", Size(), None, False, False)


def test_patterns_are_filled_in() -> None:
    element = msgspec.structs.replace(GRANT, element=Element(5, 12))
    assert expand("%j-%A-%a-%x-%u-%N-%%j.out", SPEC, GRANT, "node1") == "7-7-0-align-anna-node1-%j.out"
    assert expand("%A_%a.%j", SPEC, element, "node1") == "5_12.7"
    assert expand("100%", SPEC, GRANT, "h") == "100%"
    assert expand("%z%%%", SPEC, GRANT, "h") == "%z%%"


@given(st.text(), st.text(), st.text())
def test_what_is_filled_in_never_adds_a_directory(name: str, user: str, host: str) -> None:
    spec = msgspec.structs.replace(SPEC, name=name, user=user)
    path = expand("a/%x/%u/%N", spec, GRANT, host)
    assert path.count("/") == 3
    assert "\0" not in path
    assert not {"", ".", ".."} & set(path.split("/"))


def test_output_goes_to_the_files_and_rota_keeps_none_of_it(joined: FakeManager) -> None:
    done, again = joined.run("echo out; echo err >&2", "echo more", stdout="o.%j", stderr="e.%j")
    assert (joined.home / f"o.{done.job}").read_text() == "out\n"
    assert (joined.home / f"e.{done.job}").read_text() == "err\n"
    assert (joined.home / f"o.{again.job}").read_text() == "more\n"
    outcome = done.outcome
    assert (outcome.segment, outcome.out_len, outcome.err_len, outcome.out_total) == ("", 0, 0, 0)


def test_a_stream_that_has_no_file_is_kept(joined: FakeManager) -> None:
    (done,) = joined.run("echo out; echo err >&2", stdout="o")
    assert joined.output(done) == (b"", b"err\n")
    (done,) = joined.run(["sh", "-c", "echo out; echo err >&2"], stderr="e")
    assert joined.output(done) == (b"out\n", b"")
    assert (joined.home / "e").read_text() == "err\n"


def test_both_streams_may_share_a_file_and_later_attempts_append(joined: FakeManager) -> None:
    spec = joined.spec(stdout="log", stderr="log")
    command = "echo $ROTA_ATTEMPT out; echo $ROTA_ATTEMPT err >&2"
    for attempt in (1, 2):
        joined.work([joined.grant(1, command, spec, attempt=attempt)], spec)
        joined.until(lambda: len(joined.ended) == len({done.attempt for done in joined.ended}) == attempt)  # noqa: B023
    assert (joined.home / "log").read_text().splitlines() == ["1 out", "1 err", "2 out", "2 err"]


def test_files_are_relative_to_the_directory_of_submission_for_jobs_in_scratch_too(joined: FakeManager) -> None:
    joined.run("echo out", scratch=True, stdout="o")
    assert (joined.home / "o").read_text() == "out\n"


def test_an_absolute_path_is_taken_as_it_is(joined: FakeManager, tmp_path: Path) -> None:
    joined.run("echo out", stdout=f"{tmp_path}/o%%")
    assert (tmp_path / "o%").read_text() == "out\n"


@pytest.mark.parametrize("pattern", ["missing/o", "/dev/null/o", ".", "a\0b", "fifo"])
def test_a_file_that_cannot_be_opened_fails_the_job_for_good_and_is_named(
    joined: FakeManager, pattern: str
) -> None:
    os.mkfifo(joined.home / "fifo")
    (done,) = joined.run("touch ran", stdout=pattern)
    outcome = done.outcome
    assert (outcome.reason, outcome.exit_code, outcome.permanent) == ("output_file", None, True)
    assert outcome.message.startswith("cannot write its output to ")
    assert pattern.replace("\0", "\\0") in outcome.message
    assert not (joined.home / "ran").exists()
    (after,) = joined.run("echo works", stdout="o")
    assert after.outcome.exit_code == 0


def test_a_job_whose_file_cannot_be_opened_behaves_as_failed(joined: FakeManager) -> None:
    (done,) = joined.run("true", stdout="missing/o", on_failure=("run: echo $ROTA_OUTCOME > told",))
    assert [behaved.ok for behaved in done.outcome.behaviours] == [True]
    assert (joined.home / "told").read_text() == "failed\n"


def test_a_named_pipe_with_a_reader_is_written_to(joined: FakeManager) -> None:
    os.mkfifo(joined.home / "fifo")
    reader = os.open(joined.home / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    try:
        joined.run("echo out", stdout="fifo")
        assert os.read(reader, 100) == b"out\n"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(os.stat(joined.home / "fifo").st_mode)


def test_descriptors_of_output_files_do_not_pile_up(joined: FakeManager) -> None:
    fds = f"/proc/{joined.processes[0].pid}/fd"
    joined.run("echo x", stdout="o", stderr="e")
    before = len(os.listdir(fds))
    joined.run(*["echo x"] * 20, stdout="o", stderr="e")
    assert len(os.listdir(fds)) == before


# ------------------------------------------------------------------ elements of arrays, and used sizes


def test_elements_of_an_array_know_their_place(joined: FakeManager) -> None:
    spec = joined.spec(stdout="o_%A_%a")
    show = "echo $ROTA_ARRAY_ID $ROTA_ARRAY_INDEX $ROTA_JOB_ID"
    plain = joined.spec()
    grants = [
        msgspec.structs.replace(joined.grant(10 + n, show, spec), element=Element(10, 3 * n)) for n in range(4)
    ]
    quick = [
        msgspec.structs.replace(joined.grant(20 + n, f"{show} >> quick", plain), element=Element(20, n))
        for n in range(3)
    ]
    alone = joined.grant(30, 'echo "$ROTA_ARRAY_ID:$ROTA_ARRAY_INDEX"', plain)
    joined.work([*grants, *quick, alone], spec, plain, env=b"PATH=/bin:/usr/bin\0ROTA_ARRAY_INDEX=99")
    done = joined.wait_for([10, 11, 12, 13, 20, 21, 22, 30])
    for n in range(4):
        assert (joined.home / f"o_10_{3 * n}").read_text() == f"10 {3 * n} {10 + n}\n"
    assert (joined.home / "quick").read_text().splitlines() == ["20 0 20", "20 1 21", "20 2 22"]
    assert joined.output(done[-1])[0] == b":\n", "a job outside an array has none, not even that of its submitter"


def test_a_lease_takes_a_seat_of_its_used_size_and_is_told_of_it(joined: FakeManager) -> None:
    asked, used = Size(cpus=100, mem=1 << 30), Size(cpus=300, mem=3 << 30)
    spec = joined.spec(size=asked)
    show = "echo $ROTA_CPUS $ROTA_MEM_MB $OMP_NUM_THREADS"
    learned = msgspec.structs.replace(joined.grant(1, show, spec), size=used)
    plain = joined.grant(2, show, spec)
    joined.work([learned, plain], spec, seats=joined.seats(1, asked))
    (as_asked,) = joined.wait_for([2])
    joined.until(lambda: joined.closed)
    assert [done.job for done in joined.ended] == [2], "no seat of its size is open"
    joined.work([], seats=joined.seats(1, used))
    (as_used,) = joined.wait_for([1])
    assert joined.output(as_asked)[0] == b"1 1024 1\n"
    assert joined.output(as_used)[0] == b"3 3072 3\n"


def test_waiting_leases_keep_their_used_size_while_the_manager_is_away(joined: FakeManager) -> None:
    used = Size(cpus=300)
    spec = joined.spec()
    block = joined.grant(1, "while ! test -e go; do sleep 0.02; done", spec)
    learned = msgspec.structs.replace(joined.grant(2, "echo $ROTA_CPUS", spec), size=used)
    joined.work([block, learned], spec)
    joined.until(lambda: joined.started)
    joined.hang_up()
    joined.accept()
    assert {held.job for held in joined.joins[-1].held} == {1, 2}
    joined.work([], seats=joined.seats(1, used))
    (done,) = joined.wait_for([2])
    assert joined.output(done)[0] == b"3\n"
    (joined.home / "go").touch()
    joined.wait_for([1])


def test_a_lease_of_a_used_size_is_settled_like_any_other(manager: FakeManager) -> None:
    process = manager.begin()
    used = Size(cpus=300)
    spec = manager.spec()
    learned = msgspec.structs.replace(manager.grant(1, "sleep 600", spec), size=used)
    manager.work([learned], spec, seats=manager.seats(1, used))
    manager.until(lambda: manager.started)
    process.send_signal(signal.SIGKILL)
    process.wait()
    manager.hang_up()
    manager.begin()
    assert [(done.job, done.outcome.reason) for done in manager.settles[0].ended] == [(1, "lost")]
