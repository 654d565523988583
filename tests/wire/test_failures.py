"""Errors have their place as data, on both sides of a connection, and the same words as ever."""

from __future__ import annotations

import msgspec
import pytest

from rota.errors import BadInput, Denied, NotFound, RotaError
from rota.wire.failures import error_of, failure_of
from rota.wire.greeting import Failure


def sent(error: RotaError) -> RotaError:
    data = msgspec.msgpack.encode(failure_of(7, error))
    return error_of(msgspec.msgpack.decode(data, type=Failure))


@pytest.mark.parametrize(
    "error",
    [
        BadInput("is wrong", hint="mend it"),
        BadInput("is wrong", field="mem"),
        BadInput("is wrong", field="mem", line=3, hint="mend it"),
        BadInput("is wrong", line=3),
        BadInput("fields 'a' and 'b' contradict each other").about("a").at(line=4),
        NotFound("there is no job 9", field="after", line=12),
        Denied("not yours", code="denied"),
    ],
)
def test_an_error_comes_with_its_place(error: RotaError) -> None:
    got = sent(error)
    assert type(got) is type(error)
    assert str(got) == str(error)
    assert (got.code, got.field, got.line, got.text) == (error.code, error.field, error.line, error.text)


def test_a_client_of_an_earlier_release_reads_the_whole_message() -> None:
    values = msgspec.msgpack.decode(msgspec.msgpack.encode(failure_of(7, BadInput("bad", field="mem", line=3))))
    assert values[:5] == ["failure", 7, "bad_input", "line 3: field 'mem': bad", ""]


def test_a_manager_of_an_earlier_release_sends_only_a_message() -> None:
    old = msgspec.msgpack.encode(["failure", 7, "not_found", "line 3: field 'after': there is no job 9", "look"])
    error = error_of(msgspec.msgpack.decode(old, type=Failure))
    assert str(error) == "line 3: field 'after': there is no job 9; look"
    assert (error.field, error.line) == ("", 0)


def test_what_is_inside_knows_the_place_better() -> None:
    error = BadInput("bad").at(field="deps", line=3).at(field="after", line=1, source="jobs.txt")
    assert (error.message, error.field, error.line) == ("jobs.txt line 3: field 'deps': bad", "deps", 3)


def test_an_entry_of_an_array_has_a_line_too() -> None:
    error = BadInput("bad", field="mem").at(line=3, entry=2, source="jobs.json")
    assert error.message == "jobs.json line 3 (entry 2): field 'mem': bad"
    assert BadInput("bad").at(entry=2).message == "entry 2: bad"


def test_an_option_is_called_as_it_was_written() -> None:
    error = BadInput("bad").at(field="mem", label="--mem")
    assert (error.message, error.field) == ("--mem: bad", "mem")
    assert error.called("memory").message == "field 'memory': bad"
