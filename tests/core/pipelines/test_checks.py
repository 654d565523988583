"""The manager refuses definitions that no file could say, whoever sends them."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from rota.core.pipelines.checks import check_definition
from rota.core.pipelines.definition import Definition, Element, Stage
from rota.core.pipelines.stage_checks import JOB_FIELDS
from rota.errors import BadPipeline, from_code
from rota.plan.need import LimitUse

BUILD = Stage(name="build", run="build {name} {key}")
GOOD = Definition(stages=(BUILD,), elements=(Element("a"), Element("b", (0,))), limits=(("cpu", 2),))


def test_a_definition_arrives_as_it_was_sent() -> None:
    stage = replace(BUILD, takes=(LimitUse("cpu", 2),), fields={"request": ["core=2"], "mem": "1G"})
    sent = replace(GOOD, stages=(stage,), elements=(*GOOD.elements, Element("c", (1, 0), (("u", "v"),))))
    check_definition(sent)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(sent), type=Definition) == sent
    assert msgspec.json.decode(msgspec.json.encode(sent), type=Definition) == sent


def stage(**changes: object) -> Definition:
    return replace(GOOD, stages=(replace(BUILD, **changes),))


def elements(*given: Element) -> Definition:
    return replace(GOOD, elements=given)


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        (replace(GOOD, stages=()), "there are no stages"),
        (replace(GOOD, stages=(BUILD, BUILD)), "two stages 'build'"),
        (replace(GOOD, stages=tuple(replace(BUILD, name=f"s{at}") for at in range(101))), "more than 100 stages"),
        (replace(GOOD, limits=(("cpu", 2), ("cpu", 3))), "a limit twice"),
        (replace(GOOD, limits=(("none", 2),)), "cannot be the name of a limit"),
        (replace(GOOD, limits=tuple((f"l{at}", 1) for at in range(101))), "more than 100 limits"),
        (elements(), "there are no elements"),
        (elements(Element("a"), Element("a")), "two elements 'a'"),
        (elements(Element("a", (0,))), "not in order of its dependencies"),
        (elements(Element("a", (1,)), Element("b")), "not in order of its dependencies"),
        (elements(Element("a"), Element("b", (0, 0))), "not in order of its dependencies"),
        (elements(Element("a"), Element("b", (-1,))), "not in order of its dependencies"),
        (elements(Element("")), "cannot be the name"),
        (elements(Element("a\nb")), "cannot be the name"),
        (elements(Element(" a")), "cannot be the name"),
        (elements(Element("x" * 256)), "cannot be the name"),
        (elements(Element("\ud800")), "cannot be the name"),
        (elements(Element("a/../b")), "cannot be the name"),
        (elements(Element("a", (), (("u", "v"), ("u", "w")))), "has a key twice"),
        (elements(Element("a", (), (("u", "\ud800"),))), "not valid UTF-8"),
        (elements(Element("a", (), (("u", "x" * 65_537),))), "longer than 65536 bytes"),
        (stage(takes=(LimitUse("cpu"), LimitUse("cpu"))), "is named twice"),
        (stage(takes=(LimitUse("cpu", 0),)), "from 1 to"),
        (stage(takes=(LimitUse("cpu", 3),)), "the job could never run"),
        (stage(retries=10_001), "from 0 to"),
        (stage(run="x\0"), "NUL"),
        (stage(run="x" * 131_072), "bytes"),
        (stage(skip_to="build"), "not a later stage"),
        (stage(fields={"priority": 3}), "no such field"),
        (stage(fields={"mem": 4}), "has no unit"),
        (stage(fields={"request": "core=2", "cpus": 2}), "contradicts 'request'"),
        (stage(redefines="refs/{name}"), "is known only after"),
        (replace(GOOD, stages=(BUILD, Stage(name="t", run="x", redefines="r"))), "only the first stage"),
        (stage(run="x", per_session=True, imperative=True), "this one is per session"),
    ],
)  # fmt: skip
def test_what_is_no_pipeline_is_refused(definition: Definition, text: str) -> None:
    with pytest.raises(BadPipeline) as caught:
        check_definition(definition)
    assert text in caught.value.text
    assert caught.value.hint


def test_fields_of_jobs_that_a_stage_may_have_are_fields_of_jobs() -> None:
    from rota.core.fields.table import FIELDS

    assert set(JOB_FIELDS) <= set(FIELDS)


def test_the_error_is_the_users_on_the_other_side_of_the_wire_too() -> None:
    assert from_code("bad_pipeline", "a cycle").exit_status == BadPipeline.exit_status == 2
