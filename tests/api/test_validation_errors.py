"""What is wrong with a request is said with the place, and with what would be right there."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rota.api.routes.jobs import Action, ListQuery, NewJobs
from rota.api.validation_errors import validation_error
from rota.errors import BadInput


def _wrong(values: Any, kind: Any, part: str = "the field", of: str = "the body") -> BadInput:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(values, type=kind)
    return validation_error(part, of, caught.value, kind)


def test_of_a_wrong_word_the_right_ones_are_listed():
    error = _wrong({"sort": "-started_at"}, ListQuery, "the parameter", "the query")
    assert error.message == "the parameter 'sort': there is no '-started_at'"
    assert (error.hint or "").startswith("known are: cpu, -cpu, ended, -ended, id, -id, ")
    error = _wrong({"action": "murder", "select": ["1"]}, Action)
    known = "checkpoint, confirm-dead, hold, kill, release, remove, resume, retry, signal, suspend"
    assert error.hint == f"known are: {known}"


class _Deep(msgspec.Struct, forbid_unknown_fields=True):
    inner: list[Action | None] = []
    words: dict[str, list[ListQuery]] = {}


def test_right_words_are_found_however_deep_the_place_is():
    assert "confirm-dead" in (_wrong({"inner": [None, {"action": "x", "select": []}]}, _Deep).hint or "")
    error = _wrong({"words": {"a": [{"sort": "x"}]}}, _Deep)
    assert "-priority" in (error.hint or "")


def test_a_body_of_the_wrong_kind_is_called_the_body():
    assert _wrong([], NewJobs).message == "the body: expected `object`, got `array`"
    assert _wrong({"jobs": 3}, NewJobs).message == "the field 'jobs': expected `array`, got `int`"


def test_fields_that_are_unknown_or_missing_are_named():
    error = _wrong({"jobs": ["a"], "colour": 1}, NewJobs)
    assert error.message == "there is no field 'colour'"
    assert error.hint == "known are: jobs, defaults, dry_run, submission, input"
    assert _wrong({}, NewJobs).message == "the field 'jobs' is missing"


@pytest.mark.parametrize(
    ("value", "kind", "field"),
    [
        ({"jobs": ["a"], "colour": 1}, NewJobs, "colour"),
        ({}, NewJobs, "jobs"),
        ({"jobs": 3}, NewJobs, "jobs"),
        ([], NewJobs, ""),
        ({"sort": "x"}, ListQuery, "sort"),
        ({"words": {"a": [{"sort": "x"}]}}, _Deep, "sort"),
    ],
)
def test_the_field_is_data_too(value: object, kind: type, field: str) -> None:
    assert _wrong(value, kind).field == field


def test_what_somebody_sent_is_not_repeated_at_length():
    assert len(_wrong({"sort": "x" * 10_000}, ListQuery).message) < 100
    assert len(_wrong({"jobs": [], "y" * 10_000: 1}, NewJobs).message) < 200
