"""The printers: whole outputs, in order, by lines, and across a lost connection."""

from __future__ import annotations

import io
from typing import Any

from rota.cli import output
from rota.cli.output import Grouped, Live
from rota.core.states import State
from rota.wire.messages import Chunk, Ended, Progress


class FakeClient:
    """Knows the outputs that are too large to come along."""

    def __init__(self, **outputs: bytes) -> None:
        self._outputs = outputs

    def output_parts(self, job: int, *, attempt: int, err: bool, offset: int) -> list[bytes]:
        whole = self._outputs[f"{'err' if err else 'out'}{job}"][offset:]
        return [whole[:3], whole[3:]]


def ended(job: int, out: bytes = b"", *, state: State = State.COMPLETE, attempt: int = 1, size: int = -1) -> Ended:
    kept = len(out) if size < 0 else size
    return Ended(job, int(state), 0, None, "", "", "cmd", attempt, out, b"", kept, 0)


def news(*items: Any) -> Progress:
    chunks = [item for item in items if isinstance(item, Chunk)]
    return Progress([item for item in items if isinstance(item, Ended)], {}, chunks)


def grouped(order: list[int] | None = None, **outputs: bytes) -> tuple[Grouped, io.BytesIO]:
    out = io.BytesIO()
    return Grouped(FakeClient(**outputs), order=order, stdout=out), out  # type: ignore[arg-type]


def live(*, lines: bool, **outputs: bytes) -> tuple[Live, io.BytesIO]:
    out = io.BytesIO()
    return Live(FakeClient(**outputs), lines=lines, stdout=out), out  # type: ignore[arg-type]


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


def test_in_order_too_much_to_hold_is_fetched_when_its_turn_comes(monkeypatch: Any) -> None:
    monkeypatch.setattr(output, "_HELD", 3)
    printer, out = grouped([1, 2, 3], out3=b"333")
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
