"""What the manager refuses of a specification although no client of ours sends it."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core.admission.spec_checks import check_fields, check_spec
from rota.core.jobs.job import Spec
from rota.errors import BadInput


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"walltime_s": 0.0}, "field 'walltime'"),
        ({"walltime_s": -1.0}, "field 'walltime'"),
        ({"walltime_s": float("nan")}, "field 'walltime'"),
        ({"no_retry_over_s": -1.0}, "field 'no_retry_over'"),
        ({"project": "two\nlines"}, "field 'project': has an unprintable character"),
        ({"project": "p" * (1 << 20)}, "field 'project'"),
        ({"project": "ü" * 200}, "field 'project'"),
        ({"name": "n" * (1 << 20)}, "field 'name'"),
        ({"learn": "a\0b"}, "field 'learn'"),
        ({"dep_groups": ("ok", "g" * 5000)}, "field 'dep_groups'"),
        ({"group": ""}, "field 'group'"),
        ({"cwd": "here"}, "field 'cwd'"),
        ({"cwd": ""}, "field 'cwd'"),
        ({"types": ("noop",) * 33}, "field 'type': has more than 32"),
        ({"types": ("",)}, "field 'type': a text is empty"),
        ({"request": ("core=1",) * 33}, "field 'request': has more than 32"),
        ({"request": ("",)}, "field 'request': a text is empty"),
        ({"request": ("x" * 5000,)}, "too long"),
        ({"where": "a\0b"}, "NUL"),
        ({"where": "x" * 5000}, "too long"),
        ({"gang_same": "room"}, "field 'gang_same': 'gang_same' is about a gang"),
        ({"on_member_failure": "keep"}, "field 'on_member_failure'"),
        ({"at": -1.0}, "field 'at': out of range"),
        ({"at": float("nan")}, "field 'at': out of range"),
        ({"at": float("inf")}, "field 'at': out of range"),
    ],
)
def test_a_field_that_cannot_be_meant_is_named_and_refused_in_one_short_line(
    fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=said) as error:
        check_spec(Spec(**{"user": "ann", "cwd": "/", "env": 1} | fields))
    assert "\n" not in error.value.message
    assert len(error.value.message) < 200


def test_a_name_that_is_too_long_is_refused_before_any_rule_sees_it() -> None:
    with pytest.raises(BadInput, match="field 'project'"):
        check_fields(Spec(user="ann", cwd="/", env=1, project="p" * 256))


def test_what_clients_send_passes() -> None:
    check_spec(
        Spec(
            user="ann", cwd="/", env=1, project="überprojekt 7", walltime_s=1e-3, no_retry_over_s=0.0, name="a\nb"
        )
    )
