"""What jobs and `modify` may say about limits and numbers, whoever sends it."""

from __future__ import annotations

import pytest

from rota.core.admission.admission import Admission
from rota.core.admission.limit_uses import resolve
from rota.core.admission.modification import respecify
from rota.core.admission.spec_checks import check_spec
from rota.core.fields.limits import WantedLimit
from rota.core.jobs.job import Spec
from rota.core.world import World
from rota.errors import BadInput
from rota.plan.dispatch.planning import Planning
from rota.plan.need import LimitUse
from rota.plan.policy.limits import Limit, Limits
from tests.core.admission.groups import NOBODYS_GROUPS

SPEC = Spec(user="ann", cwd="/home/ann", env=1)


def limits(*declared: Limit) -> Limits:
    made = Limits()
    for limit in declared:
        made.declare(limit)
    return made


@pytest.mark.parametrize("name", ["", "a b", "x\0y", "@evil", "a:b", "x" * 65, "ü"])
def test_a_limit_that_nobody_could_name_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="cannot be a limit"):
        resolve((WantedLimit(name, 1),), limits(), {})


@pytest.mark.parametrize("number", [0, -5, 2**64 - 1])
def test_a_number_of_units_must_be_one(number: int) -> None:
    with pytest.raises(BadInput, match="out of range"):
        resolve((WantedLimit("a", number),), limits(), {})


def test_a_number_on_a_limit_that_nobody_declared_declares_it() -> None:
    declared: dict[str, Limit] = {}
    assert resolve((WantedLimit("a", 3),), limits(), declared) == (LimitUse("a", 1),)
    assert declared == {"a": Limit("a", 3, by_jobs=True)}
    assert resolve((WantedLimit("a"),), limits(), declared) == (LimitUse("a", 1),)


@pytest.mark.parametrize("capacity", [None, 3])
def test_a_limit_that_jobs_declared_stays_theirs_also_without_a_number(capacity: int | None) -> None:
    declared: dict[str, Limit] = {}
    resolve((WantedLimit("a", capacity, declare=True),), limits(), declared, user="root", admin=True)
    theirs = dict(declared)
    for use in (WantedLimit("a", 1), WantedLimit("a", exclusive=True)):
        with pytest.raises(BadInput, match="jobs of root declared it"):
            resolve((use,), limits(), declared, user="bob")
    assert resolve((WantedLimit("a"),), limits(), declared, user="bob") == (LimitUse("a", 1),)
    assert declared == theirs
    resolve((WantedLimit("a", 5, exclusive=True),), limits(), declared, user="ann", admin=True)
    assert declared == {"a": Limit("a", 5, by_jobs=True, owner="root")}


def test_a_number_on_a_declared_limit_is_units_and_no_more_than_it_has() -> None:
    known = limits(Limit("a", 3), Limit("h", hosts=(("one", 1), ("two", 4))), Limit("off", 0))
    assert resolve((WantedLimit("a", 3), WantedLimit("h", 4)), known, {}) == (LimitUse("a", 3), LimitUse("h", 4))
    assert resolve((WantedLimit("off", 3),), known, {}) == (LimitUse("off", 3),), "it may be opened later"
    with pytest.raises(BadInput, match="has 3 units, the job would take 4"):
        resolve((WantedLimit("a", 4),), known, {})


@pytest.mark.parametrize("number", [-5, 2**60, 2**64 - 1])
def test_modify_refuses_an_input_of_a_size_that_no_client_sends(number: int) -> None:
    with pytest.raises(BadInput, match="input_bytes"):
        respecify(SPEC, {"input_bytes": number}, limits(), {}, Admission(World(Planning()), NOBODYS_GROUPS))


def test_behaviours_are_bounded_in_number_and_length() -> None:
    for behaviours in (("run: true",) * 101, ("run: " + "x" * 200_000,), ("run: a\0b",), ("dance",)):
        with pytest.raises(BadInput):
            check_spec(Spec(user="ann", cwd="/", env=1, on_exit=behaviours))
    with pytest.raises(BadInput, match="scratch"):
        check_spec(Spec(user="ann", cwd="/", env=1, on_exit=("cleanup",)))
