"""Keys travel as JSON, and come back as they were."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.populate.inside import rota_tables
from rota.populate.inside.rota_tables import faults
from rota.populate.inside.rota_tables.keys import key_of, plain

_VALUES = (
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False) | st.dates()
    | st.datetimes() | st.times() | st.timedeltas() | st.decimals(allow_nan=False) | st.uuids() | st.binary()
)  # fmt: skip


@given(st.dictionaries(st.text(), _VALUES, max_size=4))
def test_a_key_comes_back_as_it_was(key: dict[str, object]) -> None:
    found = key_of(json.loads(json.dumps(plain(key))))
    assert found == key
    assert [type(value) for value in found.values()] == [type(value) for value in key.values()]


def test_what_is_no_value_of_a_key_is_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        plain({"a": object()})


class _Driver(Exception):
    sqlstate: str | None = None


@pytest.mark.parametrize(
    ("number", "state", "kind"),
    [(number, None, faults.TRANSIENT) for number in (1213, 1205, 2006, 2013)]
    + [("", state, faults.TRANSIENT) for state in ("40001", "40P01", "08006")]
    + [(1062, None, faults.DUPLICATE), ("", "23505", faults.DUPLICATE)]
    + [(1054, None, faults.FAILED), ("", "42703", faults.FAILED)],
)
def test_bad_moments_are_told_from_errors_by_what_servers_say(
    number: object, state: str | None, kind: str
) -> None:
    error = _Driver(number, "words")
    error.sqlstate = state
    assert faults.kind_of(error) == kind
    wrapped = ValueError("the code of a table wrapped it")
    wrapped.__cause__ = error
    assert faults.kind_of(wrapped) == kind


def test_what_runs_inside_is_python_3_9() -> None:
    for path in Path(str(rota_tables.__file__)).parent.glob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 9))
