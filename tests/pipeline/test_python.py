"""Pipelines in Python say the same as files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.pipelines.definition import Definition
from rota.core.pipelines.keys import definition_digest
from rota.errors import BadPipeline
from rota.pipeline import Pipeline, Stage
from rota.pipeline.yaml_file import from_bytes
from tests.pipeline.example import EXAMPLE


class Download(Stage):
    takes = {"download": 1}  # noqa: RUF012


class Track(Download):
    redefines = "refs/{name}"
    run = "git ls-remote {url} > refs/{name}"


class Pull(Download):
    run = "cache get {key}"
    on_ok = "skip-to push"


class Fetch(Download):
    skip_if = "test -d sources/{name}"
    run = "fetch {name}"
    retries = 2


class Build(Stage):
    imperative = True
    needs = "dependencies"
    skip_if = "cache has {key}"
    run = "build {name}"
    takes = {"process": 1, "cache": 1}  # noqa: RUF012
    cpus = 2
    mem = "4G"


class Push(Stage):
    skip_if = 'test -z "$PUSH"'
    also_failed = True
    run = "cache put {key}"
    takes = {"upload": 1}  # noqa: RUF012


class Clean(Stage):
    per = "session"
    run_if = "cache over-quota"
    run = "cache clean"
    takes = {"cache": "exclusive"}  # noqa: RUF012


LIMITS = {"process": 4, "download": 10, "upload": 4, "cache": 1}


def test_small_classes_say_the_same_as_the_file() -> None:
    pipeline = Pipeline(Track, Pull, Fetch, Build, Push, Clean, limits=LIMITS, defaults={"url": "file:///none"})
    pipeline.add("app.bst", depends=["base.bst"])
    pipeline.add("base.bst", url="file:///base")
    said = pipeline.definition()
    assert said == from_bytes(EXAMPLE, source="p.yaml")
    assert definition_digest(said) == definition_digest(from_bytes(EXAMPLE, source="p.yaml"))


def test_a_stage_can_be_made_without_a_class_and_changed() -> None:
    pipeline = Pipeline(Fetch(name="again", retries=5), Stage(name="done", run="true"), limits=LIMITS)
    pipeline.add("a")
    first, second = pipeline.definition().stages
    assert (first.name, first.retries, first.run) == ("again", 5, "fetch {name}")
    assert (second.name, second.run) == ("done", "true")


def test_values_may_be_numbers() -> None:
    pipeline = Pipeline(Stage(name="a", run="{n} {f} {b}"))
    pipeline.add("x", n=3, f=0.5, b=True)
    assert pipeline.definition().elements[0].own == (("b", "true"), ("f", "0.5"), ("n", "3"))


def test_mistakes_are_told_with_stage_element_and_field() -> None:
    class Typo(Stage):
        run = "true"
        retrys = 2

    with pytest.raises(BadPipeline, match="stage 'typo', field 'retrys': there is no such field; did you mean"):
        Pipeline(Typo)
    pipeline = Pipeline(Build)
    pipeline.add("a", depends=["b"])
    with pytest.raises(BadPipeline, match="element 'a': is added twice"):
        pipeline.add("a")
    with pytest.raises(BadPipeline, match="element 'a', field 'depends': there is no element 'b'"):
        pipeline.definition()
    pipeline.add("b", url=object())
    with pytest.raises(BadPipeline, match="not object"):
        pipeline.definition()


def test_what_contains_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    pipeline = Pipeline(Stage(name="a", run="true"))
    pipeline.add("x", v=endless)
    with pytest.raises(BadPipeline, match="nested too deeply"):
        pipeline.definition()


NAMES = st.from_regex(r"[a-z][a-z0-9]{0,3}", fullmatch=True).filter(
    lambda name: name not in ("name", "key", "depends")
)
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=6)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, object]:
    """Pipelines without mistakes."""
    limits = draw(st.dictionaries(NAMES.filter(lambda name: name != "none"), st.integers(1, 9), max_size=3))
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    stages = []
    for at, name in enumerate(names):
        stage: dict[str, object] = {"name": name, "run": draw(st.sampled_from(["true", "a {name}", "b '{v}'"]))}
        if draw(st.booleans()):
            stage |= {"takes": {limit: draw(st.integers(1, units)) for limit, units in limits.items()}}
        if at + 1 < len(names) and draw(st.booleans()):
            stage["on_ok"] = f"skip-to {draw(st.sampled_from(names[at + 1 :]))}"
        flags = draw(st.lists(st.sampled_from(["imperative", "always", "also_failed"]), unique=True))
        stage |= dict.fromkeys(flags, True)
        if draw(st.booleans()):
            stage["needs"] = "dependencies"
        if draw(st.booleans()):
            stage |= {"retries": draw(st.integers(0, 9)), "cpus": draw(st.integers(0, 8)), "backoff": "5s"}
        stages.append(stage)
    elements: dict[str, object] = {}
    for name in draw(st.lists(NAMES, min_size=1, max_size=6, unique=True)):
        depends = draw(st.lists(st.sampled_from(list(elements)), unique=True)) if elements else []
        elements[name] = {"depends": depends, **draw(st.dictionaries(NAMES, WORDS, max_size=2))}
    return {"limits": limits, "stages": stages, "defaults": {"v": draw(WORDS)}, "elements": elements}


@given(documents())
def test_a_file_and_python_say_the_same(document: dict[str, object]) -> None:
    said = from_bytes(_as_yaml(document).encode(), source="p.yaml")
    assert _in_python(document) == said


def _as_yaml(value: object) -> str:
    """JSON, but for characters beyond 16 bits, which JSON writes as two."""
    match value:
        case str():
            return (
                '"'
                + "".join(
                    f"\\U{ord(char):08x}" if char in '"\\' or not " " <= char < "\x7f" else char for char in value
                )
                + '"'
            )
        case dict():
            return "{" + ", ".join(f"{_as_yaml(key)}: {_as_yaml(each)}" for key, each in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_as_yaml, value)) + "]"
    return json.dumps(value)


def _in_python(document: dict[str, object]) -> Definition:
    stages = [Stage(**fields) for fields in document["stages"]]  # type: ignore[attr-defined]
    pipeline = Pipeline(*stages, limits=document["limits"], defaults=document["defaults"])  # type: ignore[arg-type]
    for name, element in document["elements"].items():  # type: ignore[attr-defined]
        pipeline.add(name, **element)
    return pipeline.definition()
