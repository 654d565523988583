"""`{key}` changes when, and only when, something that an element is made of does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rota.core.pipelines.definition import Definition, Stage
from rota.core.pipelines.graph import NamedElement, in_order, only
from rota.core.pipelines.keys import definition_digest, element_keys
from rota.plan.need import LimitUse

STAGES = (
    Stage(name="track", run="track {name}", redefines="refs/{name}"),
    Stage(name="build", run="build {name} {key}"),
    Stage(name="clean", run="clean", per_session=True),
)
#: base <- lib <- app, and one that has nothing to do with them.
ELEMENTS = (
    NamedElement("base", (), (("url", "one"),)),
    NamedElement("lib", ("base",)),
    NamedElement("app", ("lib", "base")),
    NamedElement("other"),
)
PIPELINE = Definition(stages=STAGES, elements=in_order(ELEMENTS), defaults=(("url", "none"),))


def keys(definition: Definition = PIPELINE, **files: str) -> dict[str, str]:
    found = element_keys(definition, [files.get(element.name, "") for element in definition.elements])
    return {element.name: key for element, key in zip(definition.elements, found, strict=True)}


def changed(definition: Definition = PIPELINE, **files: str) -> set[str]:
    before, after = keys(), keys(definition, **files)
    return {name for name in after if before.get(name) != after[name]}


def with_element(name: str, **changes: object) -> Definition:
    elements = [each._replace(**changes) if each.name == name else each for each in ELEMENTS]  # type: ignore[arg-type]
    return replace(PIPELINE, elements=in_order(elements))


def test_a_key_is_a_sha_256_that_no_two_elements_share() -> None:
    assert all(len(key) == 64 and int(key, 16) >= 0 for key in keys().values())
    assert len(set(keys().values())) == len(ELEMENTS)


def test_a_key_does_not_depend_on_when_or_where_it_is_computed() -> None:
    assert keys()["base"] == "5d7837d4180d76e1e91a8ec6b6d0e2c76c6e5f1ad6f5d44dc970ca97011f0044"


def test_own_keys_change_an_element_and_all_that_depend_on_it() -> None:
    assert changed(with_element("lib", own=(("flag", "1"),))) == {"lib", "app"}
    assert changed(with_element("base", own=(("url", "two"),))) == {"base", "lib", "app"}


def test_a_default_changes_the_elements_that_use_it_and_their_dependents() -> None:
    assert changed(replace(PIPELINE, defaults=(("url", "some"),))) == {"lib", "app", "other"}


def test_the_file_that_a_stage_redefines_is_part_of_the_key() -> None:
    assert changed(lib="ab" * 32) == {"lib", "app"}


def test_another_dependency_changes_the_key_but_their_order_does_not() -> None:
    assert changed(with_element("app", depends=("lib", "base", "other"))) == {"app"}
    assert changed(with_element("app", depends=("base", "lib"))) == set()


def test_texts_of_stages_change_all_keys() -> None:
    for field in ("run", "skip_if", "run_if", "redefines"):
        first = replace(STAGES[0], **{field: "new"})
        assert changed(replace(PIPELINE, stages=(first, *STAGES[1:]))) == {"base", "lib", "app", "other"}


def test_how_a_stage_is_run_and_stages_of_the_session_change_no_key() -> None:
    build = replace(STAGES[1], retries=3, takes=(LimitUse("cpu"),), imperative=True, fields={"mem": "1G"})
    clean = replace(STAGES[2], run="clean more")
    assert changed(replace(PIPELINE, stages=(STAGES[0], build, clean), limits=(("cpu", 2),))) == set()


def test_a_selection_of_elements_changes_no_key() -> None:
    assert keys(only(PIPELINE, ["app"])).items() <= keys().items()


OWN = st.lists(st.tuples(st.sampled_from("ab url u".split(" ")), st.text("abr", max_size=2)), max_size=3)


@given(OWN, st.data())
def test_different_own_keys_never_give_the_same_key(own: list[tuple[str, str]], data: st.DataObject) -> None:
    other = data.draw(OWN)
    one, two = dict(own), dict(other)
    first, second = (
        keys(with_element("other", own=tuple(sorted(pairs.items()))))["other"] for pairs in (one, two)
    )
    meant = [{"url": "none", **pairs, "name": "other"} for pairs in (one, two)]
    assert (first == second) == (meant[0] == meant[1])


def test_a_definition_has_a_digest_that_tells_any_change() -> None:
    assert definition_digest(PIPELINE) == definition_digest(replace(PIPELINE))
    assert definition_digest(PIPELINE) != definition_digest(replace(PIPELINE, limits=(("cpu", 2),)))
