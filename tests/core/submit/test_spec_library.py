"""Specifications and environments are stored once each, and before any job that uses them."""

from __future__ import annotations

import msgspec

from rota.core.jobs.job import Spec
from rota.core.submit.spec_library import Library

SPEC = Spec(user="ann", cwd="/", env=1)


def empty() -> Library:
    return Library(specs={}, env_ids={}, next_spec=1, next_env=1)


def test_what_is_equal_has_one_number_and_is_stored_once() -> None:
    library = empty()
    assert (library.spec(SPEC), library.spec(msgspec.structs.replace(SPEC, name="b"))) == (1, 2)
    assert (library.env(b"A=1"), library.env(b"A=2"), library.env(b"A=1")) == (1, 2, 1)
    (grew,) = library.grown()
    assert [row.id for row in grew.specs] == [1, 2]
    assert [row.id for row in grew.envs] == [1, 2]
    assert library.spec(Spec(user="ann", cwd="/", env=1)) == 1
    assert library.grown() == []


def test_what_came_with_a_refused_submission_is_stored_with_the_next() -> None:
    library = empty()
    library.spec(SPEC)
    library.env(b"A=1")  # and then the submission is refused
    assert library.spec(SPEC) == library.env(b"A=1") == 1
    (grew,) = library.grown()
    assert (len(grew.specs), len(grew.envs)) == (1, 1)


def test_an_environment_that_is_no_longer_remembered_is_read() -> None:
    library = empty()
    for number in range(300):
        library.env(b"N=%d" % number)
    assert library.blob(300, lambda number: b"read") == b"N=299"
    assert library.blob(1, lambda number: b"read") == b"read"
