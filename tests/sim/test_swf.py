"""Reading the Standard Workload Format: what its fields mean, and what is said of lines that are not in it."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadInput
from rota.sim.swf import SwfJob, parse_swf, why_skipped
from rota.sim.unpacking import pieces, unpacked

HEADER = "; Version: 2\n;MaxProcs:  128 \n; MaxNodes: 64\n; Note: one\n; Note: two\n;\n; just a comment\n"


def line(**fields: object) -> str:
    """One line of a trace; what is not given is not known."""
    names = ["id", "submit", "wait", "run", "allocated", "cpu", "memory", "procs", "requested"]
    given = {"id": 1, "submit": 0, "run": 100, "procs": 4, "requested": 200, **fields}
    return " ".join(str(given.get(name, -1)) for name in [*names, *["-"] * 9]) + "\n"


def job(**fields: object) -> SwfJob:
    (found,) = parse_swf(line(**fields).encode(), "t.swf").jobs
    return found


def test_a_line_is_a_job() -> None:
    assert job() == SwfJob(id=1, submit=0, procs=4, run=100, requested=200)


@pytest.mark.parametrize(
    ("requested", "allocated", "expected"), [(4, 8, 4), (-1, 8, 8), (0, 8, 8), (-1, -1, -1), (4, -1, 4)]
)
def test_processors_are_those_requested_or_else_those_allocated(
    requested: int, allocated: int, expected: int
) -> None:
    assert job(procs=requested, allocated=allocated).procs == expected


@pytest.mark.parametrize(
    ("run", "requested", "expected"),
    [
        (100, 200, (100, 200)),
        (300, 200, (200, 200)),
        (100, -1, (100, 100)),
        (100, 0, (100, 100)),
        (-1, 50, (-1, 50)),
    ],
)
def test_a_run_is_cut_at_what_was_requested_and_is_the_estimate_where_nothing_was(
    run: int, requested: int, expected: tuple[float, float]
) -> None:
    found = job(run=run, requested=requested)
    assert (found.run, found.requested) == expected


def test_the_header_says_how_many_processors_there_are() -> None:
    found = parse_swf((HEADER + line()).encode(), "t.swf")
    assert found.processors() == 128
    assert found.header["note"] == "one\ntwo"
    assert parse_swf(b"; MaxNodes: 64\n", "t.swf").processors() == 64
    assert parse_swf(b"; MaxProcs: -1\n; MaxNodes: 64 nodes\n", "t.swf").processors() == 64
    assert parse_swf(b"; MaxProcs: many\n", "t.swf").processors() is None
    assert parse_swf(b"; MaxProcs: 1,024\n; MaxNodes: 64.5\n", "t.swf").processors() is None, "rather none than 1"


def test_jobs_come_by_submission_ties_as_in_the_file_and_numbers_may_repeat() -> None:
    text = line(id=3, submit=50) + line(id=9, submit=10) + line(id=2, submit=50) + line(id=9, submit=10, procs=1)
    assert [(each.id, each.procs) for each in parse_swf(text.encode(), "t").jobs] == [
        (9, 4),
        (9, 1),
        (3, 4),
        (2, 4),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n  \n", " ; a remark\n"])
def test_line_ends_blank_lines_tabs_and_remarks_do_not_matter(end: str) -> None:
    text = (";x\n" + line(id=1) + line(id=2)).replace("\n", end).replace(" ", "\t")
    assert [each.id for each in parse_swf(b"\xef\xbb\xbf" + text.encode(), "t").jobs] == [1, 2]


def test_numbers_with_a_fraction_are_read() -> None:
    found = job(id="7.0", submit="1.5", run="2.25", procs="4.0", requested="1e3")
    assert found == SwfJob(7, 1.5, 4, 2.25, 1000.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 3\n", "t.swf, line 2: 3 of the 18 fields"),
        (line(run="x" * 90), "t.swf, line 2: field 4 (run time) is 'xxx"),
        (line(submit="nan"), "field 2 (submit time) is 'nan', not a number"),
        (line(submit="inf"), "field 2 (submit time) is 'inf', not a number"),
        (line(submit="1_0"), "field 2 (submit time) is '1_0', not a number"),
        (line(submit="9" * 400), "field 2 (submit time)"),
        (line(procs="2.5"), "field 8 (requested processors) is 2.5, not a whole number"),
        (line(id="1.5"), "field 1 (job number) is 1.5, not a whole number"),
        ("hello, world\n", "line 2: 2 of the 18 fields"),
    ],
)
def test_a_bad_line_is_named(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_swf((";\n" + text).encode(), "t.swf")
    assert message in str(caught.value)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("data", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_an_error(data: bytes) -> None:
    with pytest.raises(BadInput, match="there is nothing in"):
        parse_swf(data, "t.swf")


def test_a_binary_file_is_an_error() -> None:
    with pytest.raises(BadInput, match="not a text file"):
        parse_swf(b"\x7fELF\0\0\0", "t.swf")


def test_a_header_alone_is_a_trace_without_jobs() -> None:
    assert parse_swf(HEADER.encode(), "t.swf").jobs == []


def test_a_compressed_trace_is_unpacked_also_in_several_parts() -> None:
    assert unpacked(gzip.compress(b"one ") + gzip.compress(b"two"), "t") == b"one two"
    assert unpacked(b"plain", "t") == b"plain"


def test_a_damaged_or_cut_compressed_trace_is_an_error() -> None:
    whole = gzip.compress(line().encode() * 100)
    with pytest.raises(BadInput, match="ends too early"):
        unpacked(whole[:-20], "t")
    with pytest.raises(BadInput, match="damaged"):
        unpacked(whole[:20] + b"xxxxxxxx" + whole[28:], "t")


def _peak(call: Callable[[], object]) -> int:
    """The most bytes that were allocated at once meanwhile."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_compressed_trace_is_read_piece_by_piece() -> None:
    text = HEADER.encode() + b"\n" * (32 << 20) + line().encode()
    packed = gzip.compress(text[: 20 << 20], 1) + gzip.compress(text[20 << 20 :], 1)
    assert _peak(lambda: list(pieces(packed, "t.swf"))) > 30 << 20  # as much as it is, when all is held
    assert _peak(lambda: [len(piece) for piece in pieces(packed, "t.swf")]) < 8 << 20
    assert b"".join(pieces(packed, "t.swf")) == text


def test_lines_that_lie_across_pieces_are_whole() -> None:
    text = "".join(line(id=number) for number in range(1, 40_001))
    assert len(text) > 2 << 20
    for data in (text.encode(), gzip.compress(text.encode(), 1)):
        assert [each.id for each in parse_swf(data, "t.swf").jobs] == list(range(1, 40_001))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"1" * (3 << 20), "line 1: longer than 1 MiB"),
        (b"; Note: x\n" + b" " * (3 << 20), "line 2: longer than 1 MiB"),
        (b"; Note: a line of some length, again and again\n" * 30_000, "header of more than 1 MiB"),
    ],
)
def test_what_would_only_fill_the_memory_is_refused(text: bytes, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        parse_swf(gzip.compress(text), "t.swf")


def test_a_document_that_must_be_held_whole_has_a_bound_when_unpacked() -> None:
    packed = gzip.compress(b" " * (3 << 20))
    assert len(unpacked(packed, "t.json")) == 3 << 20
    with pytest.raises(BadInput, match="larger than 2 MiB when unpacked"):
        unpacked(packed, "t.json", most=2 << 20)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"run": 0}, "it did not run"),
        ({"run": -1}, "its run time is not known"),
        ({"procs": 0, "allocated": 0}, "it has no processors"),
        ({"procs": -1, "allocated": -1}, "its number of processors is not known"),
        ({"procs": 9}, "it has 9 processors, and there are 8"),
        ({"submit": -1}, "its submit time is not known"),
        ({"procs": 8}, ""),
    ],
)
def test_what_cannot_take_part_has_its_reason(fields: dict[str, object], reason: str) -> None:
    assert why_skipped(job(**fields), 8) == reason


@given(st.binary(max_size=300) | st.text(alphabet="0123456789 .-;\n\t_ex", max_size=300).map(str.encode))
def test_any_bytes_are_a_trace_or_a_clear_error(data: bytes) -> None:
    try:
        parse_swf(unpacked(data, "t.swf"), "t.swf")
    except BadInput as error:
        assert error.hint
