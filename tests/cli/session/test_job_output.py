"""The printers: whole outputs, in order, by lines, and across a lost connection."""

from __future__ import annotations

import errno
import io
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rota.cli.session import grouped_output as grouped_module
from rota.cli.session.grouped_output import GroupedPrinter
from rota.cli.session.interruptible_writer import InterruptibleWriter
from rota.cli.session.job_output import LivePrinter
from rota.client.printed import Absent
from rota.core.states import State
from rota.errors import EnvironmentFault
from rota.spool import SpoolQueue
from rota.wire.job_parts import AttemptView
from rota.wire.messages import Chunk, Ended, Progress
from rota.wire.missing_output import NOT_KEPT, mark


class FakeClient:
    """Knows the outputs that are too large to come along."""

    head = 1000  #: where the middle was left out

    def __init__(self, **outputs: bytes) -> None:
        self._outputs = outputs

    def output_parts(
        self, job: int, *, attempt: int, err: bool, offset: int, marks: bool, absent: list[Absent]
    ) -> list[bytes]:
        whole = self._outputs[f"{'err' if err else 'out'}{job}"]
        if marks and offset <= self.head < len(whole):
            absent.append(Absent(self.head, 84, "not_kept", NOT_KEPT))
            return [whole[offset : self.head], b"\n" + mark(84, NOT_KEPT), whole[self.head :]]
        return [whole[offset : offset + 3], whole[offset + 3 :]]


def ended(job: int, out: bytes = b"", *, state: State = State.COMPLETE, attempt: int = 1, size: int = -1) -> Ended:
    kept = len(out) if size < 0 else size
    return Ended(job, int(state), 0, None, "", "", "cmd", attempt, out, b"", kept, 0)


def whole(job: int, size: int, *, attempt: int = 1) -> Ended:
    """An end after live output of so many bytes."""
    return Ended(
        job,
        int(State.COMPLETE),
        0,
        None,
        "",
        "",
        "cmd",
        attempt,
        out_len=9,
        out_total=size,
        live_out=size,
        live_err=0,
    )


def news(*items: Any) -> Progress:
    chunks = [item for item in items if isinstance(item, Chunk)]
    return Progress([item for item in items if isinstance(item, Ended)], {}, chunks)


def grouped(order: list[int] | None = None, **outputs: bytes) -> tuple[GroupedPrinter, io.BytesIO]:
    out = io.BytesIO()
    return GroupedPrinter(FakeClient(**outputs), order=order, stdout=out), out  # type: ignore[arg-type]


def live(*, lines: bool, **outputs: bytes) -> tuple[LivePrinter, io.BytesIO]:
    out = io.BytesIO()
    return LivePrinter(FakeClient(**outputs), lines=lines, stdout=out), out  # type: ignore[arg-type]


def test_outputs_come_in_the_order_of_the_ends() -> None:
    printer, out = grouped()
    printer.take(news(ended(2, b"two\n"), ended(1, b"one\n")))
    assert out.getvalue() == b"two\none\n"


def test_large_outputs_are_fetched() -> None:
    printer, out = grouped(out1=b"very large")
    printer.take(news(ended(1, b"", size=10)))
    assert out.getvalue() == b"very large"


def test_in_order_later_ones_wait_for_earlier_ones() -> None:
    printer, out = grouped([1, 2, 3])
    printer.take(news(ended(3, b"3"), ended(2, b"2")))
    assert out.getvalue() == b""
    printer.take(news(ended(1, b"1")))
    assert out.getvalue() == b"123"


def test_in_order_a_blocked_job_does_not_hold_up_the_others() -> None:
    printer, out = grouped([1, 2])
    printer.take(news(ended(1, state=State.BLOCKED), ended(2, b"2")))
    assert out.getvalue() == b"2"


def test_in_order_too_much_to_hold_waits_on_disk_for_its_turn(monkeypatch: Any) -> None:
    monkeypatch.setattr(grouped_module, "_HELD", 3)
    printer, out = grouped([1, 2, 3])  # nobody to ask for it again
    printer.take(news(ended(2, b"22"), ended(3, b"333")))
    printer.take(news(ended(1, b"1")))
    assert out.getvalue() == b"122333"


def test_what_was_printed_is_not_printed_again_after_a_lost_connection() -> None:
    printer, out = grouped()
    printer.take(news(ended(1, b"one")))
    printer.reconnected(FakeClient())  # type: ignore[arg-type]
    printer.take(news(ended(1, b"one"), ended(2, b"two")))
    assert out.getvalue() == b"onetwo"


def test_live_output_comes_as_it_is_and_the_rest_with_the_end() -> None:
    printer, out = live(lines=False)
    printer.take(news(Chunk(1, 1, 1, 0, b"par")))
    assert out.getvalue() == b"par"
    printer.take(news(Chunk(1, 1, 1, 3, b"tial ")))
    printer.take(news(ended(1, b"rest", size=12)))
    assert out.getvalue() == b"partial rest"


def test_live_output_that_is_told_twice_is_printed_once() -> None:
    printer, out = live(lines=False)
    printer.take(news(Chunk(1, 1, 1, 0, b"abc")))
    printer.reconnected(FakeClient())  # type: ignore[arg-type]
    printer.take(news(Chunk(1, 1, 1, 0, b"abcdef")))
    printer.take(news(ended(1, b"", size=6)))
    assert out.getvalue() == b"abcdef"


def test_an_end_that_was_missed_live_gives_what_is_missing() -> None:
    printer, out = live(lines=False, out2=b"xyz" * 5)
    printer.take(news(Chunk(1, 1, 1, 0, b"abc"), Chunk(2, 1, 1, 0, b"xyz")))
    printer.reconnected(FakeClient(out2=b"xyz" * 5))  # type: ignore[arg-type]
    printer.take(news(ended(1, b"abcdef"), ended(2, b"", size=15)))
    assert out.getvalue() == b"abcxyzdef" + b"xyz" * 4


def test_another_attempt_begins_anew() -> None:
    printer, out = live(lines=False)
    printer.take(news(Chunk(1, 1, 1, 0, b"first ")))
    printer.take(news(Chunk(1, 2, 1, 0, b"second")))
    printer.take(news(ended(1, b"", attempt=2, size=6)))
    assert out.getvalue() == b"first second"


def test_lines_of_several_jobs_are_never_mixed() -> None:
    printer, out = live(lines=True)
    printer.take(news(Chunk(1, 1, 1, 0, b"a"), Chunk(2, 1, 1, 0, b"b\nbb")))
    printer.take(news(Chunk(1, 1, 1, 1, b"a\n"), ended(2, b"", size=4), ended(1, b"", size=3)))
    assert out.getvalue() == b"b\naa\nbb"


def test_live_output_of_large_jobs_waits_on_disk_until_they_have_ended() -> None:
    printer, out = grouped()
    printer.take(news(Chunk(1, 1, 1, 0, b"one"), Chunk(2, 1, 1, 0, b"two")))
    printer.take(news(Chunk(1, 1, 1, 3, b" and more")))
    assert out.getvalue() == b""
    printer.take(news(whole(2, 3), Chunk(1, 1, 1, 12, b"!")))
    assert out.getvalue() == b"two"
    printer.take(news(whole(1, 13)))
    assert (out.getvalue(), printer.incomplete) == (b"twoone and more!", False)


def test_of_a_job_that_is_tried_again_only_the_last_attempt_is_grouped() -> None:
    printer, out = grouped()
    printer.take(news(Chunk(1, 1, 1, 0, b"first")))
    printer.take(news(Chunk(1, 2, 1, 0, b"second")))
    printer.take(news(whole(1, 6, attempt=2)))
    assert out.getvalue() == b"second"


def test_a_disk_that_is_full_while_output_waits_for_its_turn_is_told(monkeypatch: Any) -> None:
    def full(_self: SpoolQueue, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SpoolQueue, "append", full)
    printer, _ = grouped([2, 1])
    with pytest.raises(EnvironmentFault, match="job 1 cannot be put aside until its turn: No space left") as told:
        printer.take(news(Chunk(1, 1, 1, 0, b"one")))
    assert "TMPDIR" in told.value.hint


@pytest.mark.parametrize("lines", [False, True])
def test_a_gap_in_live_output_is_marked_in_its_place(lines: bool) -> None:
    printer, out = live(lines=lines)
    printer.take(news(Chunk(1, 1, 1, 0, b"begin")))
    printer.take(news(Chunk(1, 1, 1, 105, b"end\n")))
    assert out.getvalue() == b"begin\n[rota: 100 bytes are missing here: not passed on in time]\nend\n"
    assert printer.incomplete


@pytest.mark.parametrize("path", ["/dev/full", ""])
def test_a_disk_that_is_full_where_the_output_goes_is_told(path: str) -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with ExitStack() as stack:
        stream = stack.enter_context(Path(path).open("wb", buffering=0)) if path else Full()
        with pytest.raises(EnvironmentFault, match="output cannot be written: no space left"):
            InterruptibleWriter(stream).write(b"what a job printed")


def test_a_gap_at_the_end_is_marked_too() -> None:
    printer, out = live(lines=False)
    printer.take(news(Chunk(1, 1, 1, 0, b"begin\n")))
    printer.take(news(whole(1, 16)))
    assert out.getvalue() == b"begin\n[rota: 10 bytes are missing here: not passed on in time]\n"
    assert printer.incomplete


def test_a_gap_is_marked_where_the_job_is_printed_in_its_turn() -> None:
    printer, out = grouped([2, 1])
    printer.take(news(Chunk(1, 1, 1, 5, b"rest\n"), whole(1, 10)))
    printer.take(news(ended(2, b"two\n")))
    assert out.getvalue() == b"two\n[rota: 5 bytes are missing here: not passed on in time]\nrest\n"
    assert printer.incomplete


def test_what_was_dealt_with_is_told_and_what_ended_is_not() -> None:
    printer, _ = live(lines=False)
    told: list[tuple[int, int, int, int]] = []
    printer.took = lambda job, attempt, *, out, err: told.append((job, attempt, out, err))
    printer.take(news(Chunk(1, 1, 1, 0, b"abc"), Chunk(1, 1, 2, 0, b"de")))
    printer.take(news(Chunk(1, 1, 1, 3, b"f")))
    assert told == [(1, 1, 3, 2), (1, 1, 4, 2)]


def test_of_what_was_kept_in_part_the_rest_is_fetched_with_its_gap() -> None:
    """100 bytes were printed, of which 16 are kept: 8 at the beginning and 8 at the end."""
    for reached, expected in ((0, "01234567*89abcdef"), (8, "*89abcdef"), (95, "bcdef"), (100, "")):
        printer, out = live(lines=False, out1=b"0123456789abcdef")
        printer.client.head = 8  # type: ignore[attr-defined]
        printer.take(news(Chunk(1, 1, 1, 0, b"x" * reached)))
        printer.reconnected(printer.client)
        printer.take(news(Ended(1, int(State.COMPLETE), 0, None, "", "", "", 1, b"", b"", 16, 0, 100)))
        told = out.getvalue()[reached:].decode()
        missing = 100 - max(reached, 8) - 8
        marked = f"[rota: {missing} bytes are missing here: {NOT_KEPT}]\n"
        assert told.lstrip("\n") == expected.replace("*", "\n" + marked).lstrip("\n")
        assert printer.incomplete == ("*" in expected)


@pytest.mark.parametrize("seen", [b"", b"befo", b"before\nafter\n"])
def test_the_rest_of_a_job_that_ended_before_it_was_watched_is_fetched(seen: bytes) -> None:
    printer, out = live(lines=False, out1=b"before\nafter\n")
    printer.take(news(Chunk(1, 1, 1, 0, seen)))
    attempt = AttemptView(attempt=1, state="complete", stdout_bytes=13, out_bytes=13, stderr_bytes=0, err_bytes=0)
    printer.catch_up(1, attempt)
    assert out.getvalue() == b"before\nafter\n"
    assert not printer.incomplete


def test_nothing_is_fetched_of_a_job_whose_end_was_told() -> None:
    printer, out = live(lines=False)
    printer.take(news(ended(1, b"all")))
    printer.catch_up(1, AttemptView(attempt=1, state="complete", stdout_bytes=3, out_bytes=3))
    assert out.getvalue() == b"all"
